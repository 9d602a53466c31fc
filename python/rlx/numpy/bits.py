"""Bits of integers, and parts of floats."""
import math

from .._conversions import asarray
from .._core import DType, Error
from .._dtypes import is_integer
from ._base import along, array_of, call, float_of, public
from .arrangement import concatenate, moveaxis, reshape
from .creation import zeros
from .elementwise import abs, exp2, floor, isfinite, less, log2, nextafter, where
from .reductions import sum


def bitwise_count(x):
    """How many bits of the magnitude are set."""
    x = array_of(x)
    if x.dtype == DType["bool"]:
        return x.astype("uint8")
    if not is_integer(x.dtype):
        raise Error(f"bitwise_count: {x._type_text()} (allowed: integers)")
    return call("population_count", abs(x)).astype("uint8")


def _weights(order):
    places = range(8) if order == "little" else range(7, -1, -1)
    return asarray([1 << i for i in places], "int32")


def packbits(x, axis=None, bitorder="big"):
    """Eight elements (not 0, or 0) as the bits of one u8; zeros behind the last."""
    x, axis = along(x, axis)
    x = moveaxis(call("ne", x, 0).astype("int32"), axis, -1)
    rest = -x.shape[-1] % 8
    if rest:
        x = concatenate([x, zeros((*x.shape[:-1], rest), x.dtype)], -1)
    bytes_ = sum(reshape(x, (*x.shape[:-1], -1, 8)) * _weights(bitorder), -1)
    return moveaxis(bytes_.astype("uint8"), -1, axis)


def unpackbits(x, axis=None, count=None, bitorder="big"):
    """The bits of u8 as eight elements each, of which the first `count` stay; a negative count leaves so many out."""
    x, axis = along(x, axis)
    if x.dtype != DType.u8:
        raise Error(f"unpackbits: {x._type_text()} (allowed: u8)")
    x = moveaxis(x.astype("int32"), axis, -1)
    bits = call("ne", call("logical_and", x[..., None], _weights(bitorder)), 0).astype("uint8")
    bits = reshape(bits, (*x.shape[:-1], x.shape[-1] * 8))
    if count is not None:
        bits = bits[..., :count]
        if count > bits.shape[-1]:
            bits = concatenate([bits, zeros((*bits.shape[:-1], count - bits.shape[-1]), bits.dtype)], -1)
    return moveaxis(bits, -1, axis)


def frexp(x):
    """A pair of fractions, of magnitude 0.5..1, and exponents of 2, whose product is x."""
    x = float_of(x)
    known = isfinite(x) & call("ne", x, 0)
    size = where(known, abs(x), 1.0)
    exponent = floor(log2(size)) + 1.0
    half = exponent * 0.5  # in two steps, without overflow
    fraction = size * exp2(-floor(half)) * exp2(floor(half) - exponent)
    exponent, fraction = exponent + where(less(fraction, 0.5), -1.0, where(fraction >= 1.0, 1.0, 0.0)), fraction
    fraction = where(less(fraction, 0.5), fraction * 2.0, where(fraction >= 1.0, fraction * 0.5, fraction))
    return where(known, call("sign", x) * fraction, x), where(known, exponent, 0.0).astype("int32")


def spacing(x):
    """The distance from x to its neighbour of larger magnitude."""
    x = float_of(x)
    away = where(less(x, 0), -math.inf, math.inf).astype(x.dtype)
    return where(isfinite(x), nextafter(x, away) - x, math.nan)


__all__ = public(globals())
