"""Reductions over axes, by default all, and running sums."""
import builtins
import math

from .._conversions import asarray
from .._core import DType, Error
from .._dtypes import is_complex, is_floating, numpy_dtype, OF_PYTHON
from . import _complex
from ._base import along, array_of, axes_of, call, chosen, float_of, place_of, public, reduced, truth_of, written
from .types import result_type


_WIDER = {DType["bool"]: DType.i32, DType.i8: DType.i32, DType.i16: DType.i32, DType.u8: DType.u32, DType.u16: DType.u32}  # as their sums


def _summand(x, dtype):
    x = array_of(x)
    return x.astype(dtype) if dtype is not None else x.astype(_WIDER.get(x.dtype, x.dtype))


def sum(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):  # noqa: A001
    """The sum over axes, by default all: of the elements where a condition holds, beginning with `initial`."""
    result = reduced("sum", chosen(_summand(x, dtype), where, 0), axis, keepdims)
    return written(result if initial is None else result + initial, out)


def prod(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """The product over axes, by default all; as sum."""
    result = reduced("prod", chosen(_summand(x, dtype), where, 1), axis, keepdims)
    return written(result if initial is None else result * initial, out)


def _not_empty(name, x, axis):
    if builtins.any(isinstance(x.shape[a], int) and x.shape[a] == 0 for a in axes_of(x, axis)):
        raise Error(f"{name}: no elements along {axis} of {x._type_text()}")
    return x


def _limit(dtype, largest):
    import ml_dtypes

    if dtype == DType["bool"]:
        return largest
    limits = (ml_dtypes.finfo if is_floating(dtype) else ml_dtypes.iinfo)(numpy_dtype(dtype))
    return (float if is_floating(dtype) else int)(limits.max if largest else limits.min)


def _extreme(name, x, axis, keepdims, out, initial, where):
    x = array_of(x)
    if is_complex(x.dtype):
        return _complex_extreme(name, x, axis, keepdims, out, initial, where)
    if initial is None:
        if where is not None and where is not True:
            raise Error(f"{name}: with `where` an `initial` is needed, which stands for no elements")
        return written(reduced(f"reduce_{name}", _not_empty(name, x, axis), axis, keepdims), out)
    result = reduced(f"reduce_{name}", chosen(x, where, _limit(x.dtype, name == "min")), axis, keepdims)
    return written(call(name, result, asarray(initial, x.dtype)), out)


def _complex_extreme(name, x, axis, keepdims, out, initial, where):
    if initial is None and where is not None and where is not True:
        raise Error(f"{name}: with `where` an `initial` is needed, which stands for no elements")
    if initial is None:
        return written(_complex.extreme(name, _not_empty(name, x, axis), axes_of(x, axis), keepdims), out)
    initial = asarray(initial, x.dtype)
    result = _complex.extreme(name, chosen(x, where, initial), axes_of(x, axis), keepdims)
    return written((_complex.larger if name == "max" else _complex.smaller)(result, call("broadcast_to", initial, list(result.shape))), out)


def max(x, axis=None, out=None, keepdims=False, initial=None, where=None):  # noqa: A001
    """The largest element over axes, by default all, and of `initial`."""
    return _extreme("max", x, axis, keepdims, out, initial, where)


def min(x, axis=None, out=None, keepdims=False, initial=None, where=None):  # noqa: A001
    """The smallest element over axes, by default all, and of `initial`."""
    return _extreme("min", x, axis, keepdims, out, initial, where)


amax, amin = max, min


def _floats(x, dtype):
    return float_of(x) if dtype is None else float_of(array_of(x).astype(dtype))


def _given(result, dtype, out):
    return written(result if dtype is None else result.astype(dtype), out)


def _count(x, where, axis, keepdims):
    """How many elements there are where the condition holds."""
    return reduced("sum", call("broadcast_to", truth_of(where).astype(x.dtype), list(x.shape)), axis, keepdims)


def mean(x, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """The mean over axes, by default all."""
    x = _floats(x, dtype)
    if where is None or where is True:
        return _given(reduced("mean", x, axis, keepdims), dtype, out)
    return _given(sum(x, axis, keepdims=keepdims, where=where) / _count(x, where, axis, keepdims), dtype, out)


_mean = mean


def _is_plain(x, where, mean):
    return (where is None or where is True) and mean is None and not is_complex(x.dtype)


def var(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None, correction=None):
    """The variance over axes, divided by count - ddof; `mean` is what was computed with keepdims."""
    x, ddof = _floats(x, dtype), ddof if correction is None else correction
    if _is_plain(x, where, mean):
        return _given(reduced("var", x, axis, keepdims, correction=ddof), dtype, out)
    changes = x - (_mean(x, axis, keepdims=True, where=where) if mean is None else mean)
    squares = call("square", call("abs", changes) if is_complex(x.dtype) else changes)
    count = _count(squares, True if where is None else where, axis, keepdims)
    return _given(sum(squares, axis, keepdims=keepdims, where=where) / (count - ddof), dtype, out)


def std(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None, correction=None):
    """The standard deviation over axes; as var."""
    x, ddof = _floats(x, dtype), ddof if correction is None else correction
    if _is_plain(x, where, mean):
        return _given(reduced("std_dev", x, axis, keepdims, correction=ddof), dtype, out)
    return _given(call("sqrt", var(x, axis, None, None, ddof, keepdims, where, mean)), dtype, out)


def all(x, axis=None, out=None, keepdims=False, where=None):  # noqa: A001
    """Whether all elements over axes are true (not 0)."""
    return written(reduced("all", chosen(truth_of(x), where, True), axis, keepdims), out)


def any(x, axis=None, out=None, keepdims=False, where=None):  # noqa: A001
    """Whether any element over axes is true (not 0)."""
    return written(reduced("any", chosen(truth_of(x), where, False), axis, keepdims), out)


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


def cumsum(x, axis=None, dtype=None, out=None):
    """The sum of the elements up to each one; without an axis of the flat array."""
    x, axis = along(_summand(x, dtype), axis)
    return written(call("cumsum", x, axis), out)


def cumprod(x, axis=None, dtype=None, out=None):
    """The product of the elements up to each one; as cumsum."""
    x, axis = along(_summand(x, dtype), axis)
    return written(call("cumprod", x, axis), out)


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
    """The differences of neighbours, n times, of bool whether they differ; `prepend` and `append`, also numbers, come before and behind x."""
    x = array_of(x)
    if n < 0:
        raise Error(f"diff: {n} times (allowed: 0 and more)")
    axis = place_of(axis, x.ndim)
    column = [1 if i == axis else size for i, size in enumerate(x.shape)]

    def part(given):
        given = array_of(given) if type(given) not in OF_PYTHON else asarray(given, result_type(x, given))
        return call("broadcast_to", given, column) if given.ndim == 0 else given

    parts = [part(each) for each in (prepend, x, append) if each is not None]
    x = call("concat", parts, axis) if len(parts) > 1 else x
    between = "ne" if x.dtype == DType["bool"] else "sub"
    for _ in range(builtins.min(n, x.shape[axis]) if isinstance(x.shape[axis], int) else n):  # more leave nothing, too
        x = call(between, call("slice_axis", x, axis, 1, x.shape[axis]), call("slice_axis", x, axis, 0, x.shape[axis] - 1))
    return x


def logsumexp(x, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """log(sum(b e^x)) over axes, by default all, without overflow. With `return_sign` log(abs(sum)) and the sign of the sum, without it NaN
    of a sum below 0."""
    x = float_of(x)
    if b is None and where is None and not return_sign:
        return reduced("logsumexp", x, axis, keepdims)
    b = call("ones_like", x) if b is None else array_of(b)
    counts = call("ne", b, 0) if where is None else call("logical_and", call("ne", b, 0), truth_of(where))
    x, b = [call("where", counts, each, otherwise) for each, otherwise in ((x, -math.inf), (b, 0))]
    top = call("stop_gradient", reduced("reduce_max", x, axis, True))
    top = call("where", call("is_finite", top), top, 0.0)
    total = sum(call("exp", x - top) * b, axis, keepdims=keepdims)
    result = call("log", abs(total)) + top.reshape(total.shape)
    if return_sign:
        return result, call("sign", total)
    return call("where", call("lt", total, 0), math.nan, result)


__all__ = public(globals())
