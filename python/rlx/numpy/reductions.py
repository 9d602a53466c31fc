"""Reductions over axes, by default all, and running sums."""
import builtins

from .._array import asarray
from .._core import DType, Error
from ._base import along, array_of, axes_of, call, float_of, public, reduced, truth_of


_WIDER = {DType["bool"]: DType.i32, DType.i8: DType.i32, DType.i16: DType.i32, DType.u8: DType.u32, DType.u16: DType.u32}  # as their sums


def _summand(x, dtype):
    x = array_of(x)
    return x.astype(dtype) if dtype is not None else x.astype(_WIDER.get(x.dtype, x.dtype))


def sum(x, axis=None, dtype=None, keepdims=False):  # noqa: A001
    """The sum over axes, by default all."""
    return reduced("sum", _summand(x, dtype), axis, keepdims)


def prod(x, axis=None, dtype=None, keepdims=False):
    """The product over axes, by default all."""
    return reduced("prod", _summand(x, dtype), axis, keepdims)


def _not_empty(name, x, axis):
    if builtins.any(isinstance(x.shape[a], int) and x.shape[a] == 0 for a in axes_of(x, axis)):
        raise Error(f"{name}: no elements along {axis} of {x._type_text()}")
    return x


def max(x, axis=None, keepdims=False):  # noqa: A001
    """The largest element over axes, by default all."""
    return reduced("reduce_max", _not_empty("max", array_of(x), axis), axis, keepdims)


def min(x, axis=None, keepdims=False):  # noqa: A001
    """The smallest element over axes, by default all."""
    return reduced("reduce_min", _not_empty("min", array_of(x), axis), axis, keepdims)


amax, amin = max, min


def mean(x, axis=None, dtype=None, keepdims=False):
    """The mean over axes, by default all."""
    return reduced("mean", float_of(x) if dtype is None else array_of(x).astype(dtype), axis, keepdims)


def var(x, axis=None, ddof=0, keepdims=False, correction=None):
    """The variance over axes, divided by count - ddof."""
    return reduced("var", float_of(x), axis, keepdims, correction=ddof if correction is None else correction)


def std(x, axis=None, ddof=0, keepdims=False, correction=None):
    """The standard deviation over axes; as var."""
    return reduced("std_dev", float_of(x), axis, keepdims, correction=ddof if correction is None else correction)


def all(x, axis=None, keepdims=False):  # noqa: A001
    """Whether all elements over axes are true (not 0)."""
    return reduced("all", truth_of(x), axis, keepdims)


def any(x, axis=None, keepdims=False):  # noqa: A001
    """Whether any element over axes is true (not 0)."""
    return reduced("any", truth_of(x), axis, keepdims)


def count_nonzero(x, axis=None, keepdims=False):
    """How many elements over axes are not 0."""
    return reduced("count_nonzero", array_of(x), axis, keepdims)


def _position(name, x, axis, keepdims):
    x = array_of(x)
    if axis is not None:
        return call(name, x, axis, keepdims)
    found = call(name, x.reshape(-1), 0)
    return found.reshape([1] * x.ndim) if keepdims else found


def argmax(x, axis=None, keepdims=False):
    """The position of the largest element, the first of equal ones; without an axis in the flat array."""
    return _position("argmax", x, axis, keepdims)


def argmin(x, axis=None, keepdims=False):
    """The position of the smallest element; as argmax."""
    return _position("argmin", x, axis, keepdims)


def cumsum(x, axis=None, dtype=None):
    """The sum of the elements up to each one; without an axis of the flat array."""
    x, axis = along(_summand(x, dtype), axis)
    return call("cumsum", x, axis)


def cumprod(x, axis=None, dtype=None):
    """The product of the elements up to each one; as cumsum."""
    x, axis = along(_summand(x, dtype), axis)
    return call("cumprod", x, axis)


def _cumulative(function, start, x, axis, dtype, include_initial):
    x = array_of(x)
    if axis is None and x.ndim != 1:
        raise Error(f"cumulative: an array of {x.ndim} axes needs an axis")
    result = function(x, 0 if axis is None else axis, dtype)
    if not include_initial:
        return result
    shape = list(result.shape)
    shape[axis or 0] = 1
    return call("concat", [call("broadcast_to", asarray(start, result.dtype), shape), result], axis or 0)


def cumulative_sum(x, axis=None, dtype=None, include_initial=False):
    """cumsum, with a 0 in front where it is asked for."""
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x, axis=None, dtype=None, include_initial=False):
    """cumprod, with a 1 in front where it is asked for."""
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial)


def diff(x, n=1, axis=-1, prepend=None, append=None):
    """The differences of neighbours, n times; `prepend` and `append` come before and behind x."""
    x = array_of(x)
    axis %= x.ndim
    parts = [each for each in (prepend, x, append) if each is not None]
    x = call("concat", parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        x = call("slice_axis", x, axis, 1, x.shape[axis]) - call("slice_axis", x, axis, 0, x.shape[axis] - 1)
    return x


def logsumexp(x, axis=None, keepdims=False):
    """log(sum(e^x)) over axes, by default all, without overflow."""
    return reduced("logsumexp", float_of(x), axis, keepdims)


__all__ = public(globals())
