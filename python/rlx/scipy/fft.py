"""Cosine transforms, as scipy.fft has them."""
import math

from .. import numpy as jnp
from .._array import place_of
from .._core import Error
from ..numpy._base import float_of


def _checked(name, x, type, n, axis, norm):  # noqa: A002
    """x with the axis, cut or filled with 0, as the last."""
    if type != 2 or norm not in (None, "backward", "ortho"):
        raise Error(f"{name}: type is {type}, norm {norm!r} (allowed: 2; None, backward or ortho)")
    x = jnp.moveaxis(float_of(x), axis, -1)
    if n is None:
        return x
    return jnp.pad(x[..., :n], [(0, 0)] * (x.ndim - 1) + [(0, max(n - x.shape[-1], 0))])


def _turns(n, sign, dtype):
    """e^(sign i pi k / 2 n)."""
    angle = jnp.asarray([sign * math.pi * k / (2 * n) for k in range(n)], dtype)
    return jnp.cos(angle), jnp.sin(angle)


def _scales(n, dtype):
    """What makes the transform orthogonal."""
    return jnp.asarray([1 / math.sqrt(4 * n), *[1 / math.sqrt(2 * n)] * (n - 1)], dtype)


def dct(x, type=2, n=None, axis=-1, norm=None):  # noqa: A002
    """2 times the sum of x[j] cos(pi k (2 j + 1) / 2 n) over j; with norm ortho orthogonal."""
    x = _checked("dct", x, type, n, axis, norm)
    n = x.shape[-1]
    order = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], -1)
    z, (cosine, sine) = jnp.fft.fft(order), _turns(n, -1, x.dtype)
    y = 2 * (jnp.real(z) * cosine - jnp.imag(z) * sine)
    return jnp.moveaxis(y * _scales(n, x.dtype) if norm == "ortho" else y, -1, axis)


def idct(x, type=2, n=None, axis=-1, norm=None):  # noqa: A002
    """The x whose dct this is."""
    y = _checked("idct", x, type, n, axis, norm)
    n = y.shape[-1]
    y = 0.5 * (y / _scales(n, y.dtype) if norm == "ortho" else y)
    other = jnp.concatenate([y[..., :1] * 0, jnp.flip(y[..., 1:], -1)], -1)
    cosine, sine = _turns(n, 1, y.dtype)
    z = jnp.fft.ifft((y * cosine + other * sine) + 1j * (y * sine - other * cosine))
    places = [i // 2 if i % 2 == 0 else n - 1 - i // 2 for i in range(n)]
    return jnp.moveaxis(jnp.take(jnp.real(z).astype(y.dtype), jnp.asarray(places), axis=-1), -1, axis)


def _along(function, x, type, s, axes, norm):  # noqa: A002
    x = float_of(x)
    axes = range(x.ndim) if axes is None and s is None else range(x.ndim - len(s), x.ndim) if axes is None else [place_of(axis, x.ndim) for axis in axes]
    for axis, n in zip(axes, [None] * len(axes) if s is None else s):
        x = function(x, type, n, axis, norm)
    return x


def dctn(x, type=2, s=None, axes=None, norm=None):  # noqa: A002
    """dct along several axes."""
    return _along(dct, x, type, s, axes, norm)


def idctn(x, type=2, s=None, axes=None, norm=None):  # noqa: A002
    """idct along several axes."""
    return _along(idct, x, type, s, axes, norm)


__all__ = ["dct", "dctn", "idct", "idctn"]
