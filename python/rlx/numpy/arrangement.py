"""Shapes, order, parts; elements chosen by positions."""
import builtins
import math
import operator

from .._conversions import asarray
from .._core import DType, Dim, Error
from .._dtypes import is_complex, is_floating
from .._indexing import number_of, widened, wrapped
from . import _complex
from ._base import along, array_of, call, float_of, integers_of, of_each, place_of, public, sizes_of, written
from .elementwise import clip, less, remainder, where
from .reductions import sum


def reshape(x, shape, order="C", copy=None):
    """The same elements under another shape; one size may be -1. `order` F: the first axis runs fastest."""
    x = array_of(x)
    if order == "F":
        sizes = [-1 if size == -1 else size for size in reversed(sizes_of(shape))]
        return x.T.reshape(sizes).T
    if order not in ("C", "A", "K"):
        raise Error(f"reshape: order is {order!r} (allowed: C, F, A, K)")
    return x.reshape(shape)


def ravel(x, order="C"):
    """All elements along one axis."""
    return reshape(x, -1, order)


flatten = ravel


def transpose(x, axes=None):
    """The axes in another order, by default the reverse."""
    return array_of(x).transpose(*(axes or ()))


def permute_dims(x, axes):
    return transpose(x, axes)


def matrix_transpose(x):
    """The last two axes exchanged."""
    return array_of(x).mT


def swapaxes(x, axis1, axis2):
    return call("swap_axes", array_of(x), axis1, axis2)


def moveaxis(x, source, destination):
    """Axes moved to other places."""
    x = array_of(x)
    source, destination = [[place_of(axis, x.ndim) for axis in sizes_of(axes)] for axes in (source, destination)]
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return call("transpose", x, order)


def squeeze(x, axis=None):
    """Axes of size 1 removed, by default all."""
    return call("squeeze", array_of(x), () if axis is None else sizes_of(axis))


def expand_dims(x, axis=0):
    """New axes of size 1."""
    x, axes = array_of(x), sizes_of(axis)
    for each in axes:
        place_of(each, x.ndim + len(axes))
    return call("expand_dims", x, axes)


def concatenate(xs, axis=0, dtype=None):
    """Arrays one after another along an axis; without one flat."""
    xs = [array_of(x) if dtype is None else array_of(x).astype(dtype) for x in xs]
    return call("concat", [reshape(x, -1) for x in xs], 0) if axis is None else call("concat", xs, axis)


concat = concatenate


def stack(xs, axis=0, out=None, dtype=None):
    """Arrays side by side along a new axis."""
    return written(call("stack", [array_of(x) if dtype is None else array_of(x).astype(dtype) for x in xs], axis), out)


@of_each
def atleast_1d(x):
    x = array_of(x)
    return reshape(x, (1,)) if x.ndim == 0 else x


@of_each
def atleast_2d(x):
    x = atleast_1d(x)
    return reshape(x, (1, x.shape[0])) if x.ndim == 1 else x


def hstack(xs, dtype=None):
    xs = [atleast_1d(x) for x in xs]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1, dtype)


def vstack(xs, dtype=None):
    return concatenate([atleast_2d(x) for x in xs], 0, dtype)


def split(x, indices_or_sections, axis=0):
    """Equal parts, or those between the given positions."""
    x = array_of(x)
    if isinstance(indices_or_sections, (int, Dim)):
        return list(call("split_evenly", x, operator.index(indices_or_sections), axis))
    ends = [0, *[builtins.min(int(end), x.shape[axis]) for end in indices_or_sections], x.shape[axis]]
    return list(call("split", x, [end - begin for begin, end in zip(ends, ends[1:])], axis))


def unstack(x, axis=0):
    """The slices along an axis."""
    x = array_of(x)
    return tuple(squeeze(part, axis) for part in split(x, x.shape[axis], axis)) if x.shape[axis] else ()


def flip(x, axis=None):
    """The order along axes turned round, by default along all."""
    x = array_of(x)
    axes = range(x.ndim) if axis is None else sizes_of(axis)
    return call("flip", x, list(axes)) if axes else x


def roll(x, shift, axis=None):
    """The elements shifted, those pushed out coming in at the other end; without an axis those of the flat array."""
    x = array_of(x)
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, 0), list(x.shape))
    shifts, axes = sizes_of(shift), sizes_of(axis)
    return call("roll", x, shifts * (len(axes) if len(shifts) == 1 else 1), axes * (len(shifts) if len(axes) == 1 else 1))


def repeat(x, repeats, axis=None, total_repeat_length=None):
    """Each element several times in a row: one number for all, or one for each, which must be known unless `total_repeat_length` is given: then
    the result has that size, and is cut, or filled with the last element."""
    x, axis = along(x, axis)
    if total_repeat_length is not None:
        ends = call("cumsum", broadcast_to(array_of(repeats), (x.shape[axis],)), 0)
        places = call("iota", x, [total_repeat_length], ends.dtype)
        at = call("searchsorted", ends, places, True)
        return take(x, where(less(at, x.shape[axis]), at, x.shape[axis] - 1), axis)
    if not isinstance(repeats, int):
        counts = array_of(repeats).tolist()
        counts = counts if isinstance(counts, list) else [counts]
        counts = counts * x.shape[axis] if len(counts) == 1 else counts
        return take(x, asarray([i for i, count in enumerate(counts) for _ in range(count)], dtype="int32"), axis)
    return call("repeat", x, repeats, axis)


def tile(x, reps):
    """The whole array several times along each axis."""
    return call("tile", array_of(x), sizes_of(reps))


def broadcast_to(x, shape):
    """x repeated up to a shape."""
    return call("broadcast_to", array_of(x), sizes_of(shape))


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to."""
    result = []
    for sizes in zip(*[[1] * (builtins.max(map(len, shapes), default=0) - len(shape)) + list(shape) for shape in shapes]):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise Error(f"broadcast: the shapes {', '.join(map(str, shapes))} do not fit: sizes {sorted(wide, key=str)}")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def broadcast_arrays(*xs):
    """All arrays repeated up to one shape."""
    xs = [array_of(x) for x in xs]
    shape = broadcast_shapes(*[x.shape for x in xs])
    return [broadcast_to(x, shape) for x in xs]


def _placed(indices, size, mode, x):
    """Positions 0 .. size - 1; what lies outside by NumPy's modes."""
    if mode in (None, "raise", "fill", "promise_in_bounds"):
        return wrapped(indices, size, x)
    if mode not in ("clip", "wrap"):
        raise Error(f"take: mode is {mode!r} (allowed: clip, wrap, fill)")
    if mode == "wrap" and indices.dtype == DType.u64:
        return remainder(indices, number_of(size, indices.dtype, x))
    indices = widened(indices).astype("int64")  # narrow types have no room for the size
    size = number_of(size, indices.dtype, x)
    return clip(indices, 0, size - 1) if mode == "clip" else remainder(indices, size)


def _inside(indices, size, x):
    indices = widened(indices).astype("int64")
    size = number_of(size, indices.dtype, x)
    return (indices >= -size) & (indices < size)


def _filled(result, indices, axis, x, fill_value):
    """The result where its index lies inside."""
    inside = _inside(indices, x.shape[axis], x)
    return where(inside.reshape((1,) * axis + inside.shape + (1,) * (result.ndim - axis - inside.ndim)), result, fill_value)


def take(x, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False, fill_value=None):
    """The slices at `indices` along an axis; negative ones count from the end. `mode` of those outside: clip, wrap, or fill with `fill_value`."""
    x, axis = along(x, axis)
    axis, indices = place_of(axis, x.ndim), array_of(indices)
    indices = indices.astype("int32") if indices.dtype == DType["bool"] else indices
    if mode is None and fill_value is None:
        return written(x[(slice(None),) * axis + (indices,)], out)
    result = call("take", x, _placed(indices, x.shape[axis], mode, x), axis)
    if mode == "fill" or fill_value is not None:
        result = _filled(result, indices, axis, x, fill_value if fill_value is not None else _no_value(x.dtype))
    return written(result, out)


def _no_value(dtype):
    """What stands for no element: NaN, the least integer, of unsigned ones the largest, or True."""
    if is_floating(dtype) or is_complex(dtype):
        return math.nan
    if dtype == DType["bool"]:
        return True
    bits = int(dtype.name[1:])
    return asarray(2**bits - 1 if dtype.name[0] == "u" else -(2 ** (bits - 1)), dtype)


def take_along_axis(x, indices, axis=-1, mode=None, fill_value=None):
    """One element of each line along an axis, by default the last; without one of the flat array. Modes as in take, but that with clip
    negative indices count from the end, too."""
    x, axis = along(x, axis)
    indices = integers_of("take_along_axis", indices)
    if mode == "clip":
        indices = wrapped(indices, x.shape[axis], x)
    result = call("take_along_axis", x, _placed(indices, x.shape[axis], mode, x), axis)
    if mode != "fill" and fill_value is None:
        return result
    return where(_inside(indices, x.shape[axis], x), result, fill_value if fill_value is not None else _no_value(x.dtype))


def sort(x, axis=-1, descending=False, stable=True, kind=None):
    """The elements in order along an axis; without one those of the flat array. NaN is the largest. Complex numbers are in order by their real
    part, then by the imaginary one."""
    x, axis = along(x, axis)
    return _complex.in_order(x, axis, descending)[0] if is_complex(x.dtype) else call("sort", [x], 1, axis, descending)[0]


def argsort(x, axis=-1, descending=False, stable=True, kind=None):
    """The positions that sort."""
    x, axis = along(x, axis)
    return _complex.in_order(x, axis, descending)[1] if is_complex(x.dtype) else call("argsort", x, axis, descending)


def searchsorted(a, v, side="left", sorter=None, method=None):
    """Where each element of v belongs in the vector a, which is sorted, or in order at the positions `sorter`."""
    a = array_of(a) if sorter is None else take(a, sorter)
    return call("searchsorted", a, array_of(v), side == "right")


def interp(x, xp, fp, left=None, right=None, period=None):
    """The piecewise linear function through points; before and behind them `left` and `right`, by themselves the values of the ends. With a
    `period` the points go on for ever."""
    x, xp, fp = float_of(x), float_of(xp), float_of(fp)
    if period is not None:
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        return call("interp", x, xp, concatenate([fp[-1:], fp, fp[:1]]))
    result = call("interp", x, xp, fp)
    result = result if left is None else where(less(x, xp[0]), left, result)
    return result if right is None else where(less(xp[-1], x), right, result)


def diag(x, k=0):
    """The diagonal of a matrix, or a matrix with this diagonal."""
    x = array_of(x)
    if x.ndim not in (1, 2):
        raise Error(f"diag: {x._type_text()} (allowed: one axis or two)")
    if x.ndim == 2:
        return diagonal(x, k)
    if k == 0:
        return call("diag", x)
    down, right = builtins.max(-k, 0), builtins.max(k, 0)
    return call("pad", call("diag", x), [down, right], [right, down])


def diagonal(x, offset=0, axis1=0, axis2=1):
    """The elements whose indices on two axes agree, up to the offset."""
    x = array_of(x)
    axis, low = (axis2, offset) if offset >= 0 else (axis1, -offset)
    x = x[(slice(None),) * place_of(axis, x.ndim) + (slice(low, None),)] if offset else x
    size = builtins.min(x.shape[axis1], x.shape[axis2])
    for each in (axis1, axis2):
        x = x[(slice(None),) * place_of(each, x.ndim) + (slice(0, size),)]
    return call("diagonal", x, axis1, axis2)


def trace(x, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum of a diagonal."""
    return sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def nonzero(x, size=None, fill_value=0):
    """The positions of the elements that are not 0, one array for each axis. The array must be known, unless `size` says how many there are: what
    is missing is `fill_value`."""
    if size is not None:
        return tuple(call("nonzero", array_of(x), size, fill_value))
    return tuple(asarray(positions.astype("int32")) for positions in array_of(x).numpy().nonzero())


__all__ = public(globals())
