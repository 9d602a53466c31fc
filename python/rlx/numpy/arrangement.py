"""Shapes, order, parts; elements chosen by positions."""
import builtins

from .._array import asarray
from .._core import Error
from ._base import along, array_of, call, float_of, public, sizes_of
from .elementwise import less, where
from .reductions import sum


def reshape(x, shape, copy=None):
    """The same elements under another shape; one size may be -1."""
    return array_of(x).reshape(shape)


def ravel(x):
    """All elements along one axis."""
    return reshape(x, -1)


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
    source, destination = [[axis % x.ndim for axis in sizes_of(axes)] for axes in (source, destination)]
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return call("transpose", x, order)


def squeeze(x, axis=None):
    """Axes of size 1 removed, by default all."""
    return call("squeeze", array_of(x), () if axis is None else sizes_of(axis))


def expand_dims(x, axis=0):
    """New axes of size 1."""
    return call("expand_dims", array_of(x), sizes_of(axis))


def concatenate(xs, axis=0):
    """Arrays one after another along an axis; without one flat."""
    xs = [array_of(x) for x in xs]
    return call("concat", [reshape(x, -1) for x in xs], 0) if axis is None else call("concat", xs, axis)


concat = concatenate


def stack(xs, axis=0):
    """Arrays side by side along a new axis."""
    return call("stack", [array_of(x) for x in xs], axis)


def atleast_1d(x):
    x = array_of(x)
    return reshape(x, (1,)) if x.ndim == 0 else x


def atleast_2d(x):
    x = atleast_1d(x)
    return reshape(x, (1, x.shape[0])) if x.ndim == 1 else x


def hstack(xs):
    xs = [atleast_1d(x) for x in xs]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(xs):
    return concatenate([atleast_2d(x) for x in xs], 0)


def split(x, indices_or_sections, axis=0):
    """Equal parts, or those between the given positions."""
    x = array_of(x)
    if isinstance(indices_or_sections, int):
        return list(call("split_evenly", x, indices_or_sections, axis))
    ends = [0, *[builtins.min(int(end), x.shape[axis]) for end in indices_or_sections], x.shape[axis]]
    return list(call("split", x, [end - begin for begin, end in zip(ends, ends[1:])], axis))


def unstack(x, axis=0):
    """The slices along an axis."""
    x = array_of(x)
    return tuple(squeeze(part, axis) for part in split(x, x.shape[axis], axis)) if x.shape[axis] else ()


def flip(x, axis=None):
    """The order along axes turned round, by default along all."""
    return call("flip", array_of(x), () if axis is None else sizes_of(axis))


def roll(x, shift, axis=None):
    """The elements shifted, those pushed out coming in at the other end; without an axis those of the flat array."""
    x = array_of(x)
    if axis is None:
        return reshape(call("roll", reshape(x, -1), [shift], [0]), list(x.shape))
    axes = sizes_of(axis)
    return call("roll", x, sizes_of(shift) * (len(axes) if isinstance(shift, int) else 1), axes)


def repeat(x, repeats, axis=None):
    """Each element several times in a row: one number for all, or one for each, which must be known."""
    x, axis = along(x, axis)
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


def take(x, indices, axis=None):
    """The slices at `indices` along an axis; negative ones count from the end."""
    x, axis = along(x, axis)
    return x[(slice(None),) * (axis % x.ndim) + (array_of(indices),)]


def take_along_axis(x, indices, axis=-1):
    """One element of each line along an axis."""
    x, indices = array_of(x), array_of(indices)
    return call("take_along_axis", x, where(less(indices, 0), indices + x.shape[axis], indices), axis)


def pad(x, pad_width, mode="constant", constant_values=0):
    """Elements before and after along each axis. Modes: constant, reflect, edge, wrap, symmetric, linear_ramp."""
    x = array_of(x)
    if isinstance(pad_width, int):
        pad_width = [(pad_width, pad_width)] * x.ndim
    elif isinstance(pad_width[0], int):
        pad_width = [tuple(pad_width) if len(pad_width) == 2 else tuple(pad_width) * 2] * x.ndim
    return call("pad_mode", x, [low for low, _ in pad_width], [high for _, high in pad_width], mode, float(constant_values))


def sort(x, axis=-1, descending=False, stable=True):
    """The elements in order along an axis; without one those of the flat array. NaN is the largest."""
    x, axis = along(x, axis)
    return call("sort", [x], 1, axis, descending)[0]


def argsort(x, axis=-1, descending=False, stable=True):
    """The positions that sort."""
    x, axis = along(x, axis)
    return call("argsort", x, axis, descending)


def searchsorted(a, v, side="left", sorter=None):
    """Where each element of v belongs in the vector a, which is sorted, or in order at the positions `sorter`."""
    a = array_of(a) if sorter is None else take(a, sorter)
    return call("searchsorted", a, array_of(v), side == "right")


def interp(x, xp, fp):
    """The piecewise linear function through points."""
    return call("interp", float_of(x), float_of(xp), float_of(fp))


def diag(x, k=0):
    """The diagonal of a matrix, or a matrix with this diagonal."""
    x = array_of(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if k == 0:
        return call("diag", x)
    return pad(call("diag", x), [(builtins.max(-k, 0), builtins.max(k, 0)), (builtins.max(k, 0), builtins.max(-k, 0))])


def diagonal(x, offset=0, axis1=0, axis2=1):
    """The elements whose indices on two axes agree, up to the offset."""
    x = array_of(x)
    axis, low = (axis2, offset) if offset >= 0 else (axis1, -offset)
    x = x[(slice(None),) * (axis % x.ndim) + (slice(low, None),)] if offset else x
    size = builtins.min(x.shape[axis1], x.shape[axis2])
    for each in (axis1, axis2):
        x = x[(slice(None),) * (each % x.ndim) + (slice(0, size),)]
    return call("diagonal", x, axis1, axis2)


def trace(x, offset=0, axis1=0, axis2=1):
    """The sum of a diagonal."""
    return sum(diagonal(x, offset, axis1, axis2), axis=-1)


def nonzero(x):
    """The positions of the elements that are not 0, one array for each axis. The array must be known."""
    return tuple(asarray(positions.astype("int32")) for positions in array_of(x).numpy().nonzero())


__all__ = public(globals())
