"""More of shapes and parts, made of those of arrangement."""
import builtins
import math

from .._conversions import asarray
from .._core import Dim, DType, Error
from .._dtypes import is_complex
from ._base import along, array_of, axes_of, call, float_of, of_each, of_type, place_of, public, sizes_of
from .arrangement import argsort, atleast_1d, concatenate, flip, moveaxis, nonzero, ravel, reshape, sort, split, swapaxes, take, tile
from .creation import arange, zeros
from .products import matmul, tensordot
from .reductions import diff


def append(x, values, axis=None):
    """values behind x along an axis; without one both flat."""
    return concatenate([x, values], axis)


def array_split(x, indices_or_sections, axis=0):
    """As split, the first parts one longer where they cannot be equal."""
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    n, parts = array_of(x).shape[axis], indices_or_sections
    ends = [i * (n // parts) + builtins.min(i, n % parts) for i in range(1, parts)]
    return split(x, ends, axis)


def hsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0 if array_of(x).ndim == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


@of_each
def atleast_3d(x):
    """With axes of size 1 until there are three."""
    x = array_of(x)
    return reshape(x, {0: (1, 1, 1), 1: (1, -1, 1)}[x.ndim]) if x.ndim < 2 else reshape(x, (*x.shape, 1)) if x.ndim == 2 else x


def dstack(xs):
    return concatenate([atleast_3d(x) for x in xs], 2)


def column_stack(xs):
    """Vectors as the columns of a matrix."""
    return concatenate([x if x.ndim > 1 else reshape(x, (-1, 1)) for x in map(array_of, xs)], 1)


def block(parts):
    """An array of nested lists of its parts, those of the innermost along the last axis."""

    def depth_of(part):
        return 1 + depth_of(part[0]) if isinstance(part, list) else 0

    def joined(part, axis):
        return concatenate([joined(each, axis + 1) for each in part], axis) if isinstance(part, list) else with_axes(part)

    def axes_in(part):
        return builtins.max(map(axes_in, part)) if isinstance(part, list) else array_of(part).ndim

    depth = depth_of(parts)
    rank = builtins.max(depth, axes_in(parts))

    def with_axes(part):
        part = array_of(part)
        return reshape(part, [1] * (rank - part.ndim) + list(part.shape))

    return joined(parts, -depth)


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def rot90(x, k=1, axes=(0, 1)):
    """Turned by right angles, from the first of the axes towards the second."""
    k %= 4
    if k == 2:
        return flip(x, list(axes))
    if k == 0:
        return array_of(x)
    return swapaxes(flip(x, axes[1]), *axes) if k == 1 else flip(swapaxes(x, *axes), axes[1])


def rollaxis(x, axis, start=0):
    """The axis moved in front of axis `start`."""
    x = array_of(x)
    axis, start = place_of(axis, x.ndim), start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def resize(x, new_shape):
    """The elements again and again until the shape is full."""
    x, shape = ravel(x), sizes_of(new_shape)
    count = math.prod(shape)
    if count == x.size:
        return reshape(x, shape)
    return reshape(tile(x, -(-count // x.size))[:count], shape) if x.size else zeros(shape, x.dtype)


def _known_places(name, obj, n):
    """Positions, those of a slice, or where a mask of as many elements holds."""
    if isinstance(obj, slice):
        return list(range(*obj.indices(n)))
    given = array_of(obj)
    if given.dtype != DType["bool"] or given.ndim == 0:
        return [int(i) for i in given.reshape(-1).tolist()]
    if given.shape != (n,):
        raise Error(f"{name}: a mask of {given._type_text()} for {n} slices (allowed: one element for each)")
    return [i for i, holds in enumerate(given.tolist()) if holds]


def delete(x, obj, axis=None):
    """Without the slices at positions that are known."""
    x, axis = along(x, axis)
    n = x.shape[axis]
    gone = _known_places("delete", obj, n)
    if outside := [i for i in gone if not -n <= i < n]:
        raise IndexError(f"delete: index {outside[0]} is outside of axis {axis} with size {n}")
    if isinstance(n, Dim):
        return _without(x, sorted({i + n if i < 0 else i for i in gone}), axis)
    gone = {i % n for i in gone}
    return take(x, asarray([i for i in range(n) if i not in gone], dtype="int32"), axis)


def _without(x, places, axis):
    """delete where the size is a symbol: what lies between the places, which are in order."""
    parts, x = [], moveaxis(x, axis, 0)
    for begin, end in zip([0, *[place + 1 for place in places]], [*places, x.shape[0]]):
        parts.append(x[begin:end])
    return moveaxis(concatenate(parts, 0), 0, axis)


def insert(x, obj, values, axis=None):
    """With values in front of positions that are known."""
    x, axis = along(x, axis)
    x = moveaxis(x, axis, 0)
    single = not isinstance(obj, slice) and array_of(obj).ndim == 0
    places = [i + (x.shape[0] if i < 0 else 0) for i in _known_places("insert", obj, x.shape[0])]
    values = of_type(values, x.dtype)
    if single and values.ndim == x.ndim:
        places = places * values.shape[0]
    elif values.ndim == x.ndim and x.ndim > 1:
        values = moveaxis(values, axis, 0)
    new = values + zeros((len(places), *x.shape[1:]), x.dtype)
    order = sorted(range(len(places)), key=lambda i: places[i])
    parts, begin = [], 0
    for i in order:
        parts += [x[begin : places[i]], new[i : i + 1]]
        begin = places[i]
    return moveaxis(concatenate([*parts, x[begin:]], 0), 0, axis)


def diagflat(x, k=0):
    """A matrix with the elements on its diagonal."""
    from .arrangement import diag

    return diag(ravel(x), k)


def trim_zeros(filt, trim="fb"):
    """Without the zeros in front (f) and behind (b); the vector must be known."""
    filt = array_of(filt)
    found = nonzero(filt)[0].tolist()
    if not found:
        return filt[:0]
    return filt[found[0] if "f" in trim else 0 : found[-1] + 1 if "b" in trim else None]


def _with_element(name, x, kth, axis):
    """x, which has such elements along an axis, by itself of the flat array."""
    x = array_of(x)
    n = x.size if axis is None else x.shape[axis]
    if outside := [k for k in sizes_of(kth) if not -n <= k < n]:
        raise Error(f"{name}: element {outside[0]} of {n} (allowed: {-n}..{n - 1})")
    return x


def partition(x, kth, axis=-1):
    """The elements such that those before the k-th are not larger: in order, here."""
    return sort(_with_element("partition", x, kth, axis), axis)


def argpartition(x, kth, axis=-1):
    return argsort(_with_element("argpartition", x, kth, axis), axis)


def lexsort(keys, axis=-1):
    """The positions that sort by the last key, then by the one before."""
    keys = [array_of(key) for key in keys]
    order = argsort(keys[0], axis)
    for key in keys[1:]:
        order = call("take_along_axis", order, argsort(call("take_along_axis", key, order, axis), axis), axis)
    return order


def sort_complex(x):
    """As complex numbers, sorted along the last axis by real parts, then by imaginary parts."""
    x = array_of(x)
    x = x if is_complex(x.dtype) else x.astype("complex128" if x.dtype == DType.f64 else "complex64")
    return call("take_along_axis", x, lexsort((call("imag", x), call("real", x))), -1)


def ediff1d(x, to_end=None, to_begin=None):
    """The differences of neighbours in the flat array."""
    parts = [to_begin, diff(ravel(x)), to_end]
    return concatenate([atleast_1d(part) for part in parts if part is not None], None)


def gradient(x, *varargs, axis=None):
    """The slopes by central differences, one-sided at the ends; one array for each axis. Distances are numbers or vectors of places."""
    x = array_of(x)
    axes = [place_of(each, x.ndim) for each in axes_of(x, axis)]
    steps = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    results = [_slopes(x, each, step) for each, step in zip(axes, steps)]
    return results[0] if len(results) == 1 else results


def _slopes(x, axis, step):
    widths, n = array_of(step), x.shape[axis]
    if isinstance(n, Dim) and widths.ndim == 0:
        return _slopes_of_symbol(x, axis, step)
    if n < 2:
        raise Error(f"gradient: {x._type_text()} has {n} elements along axis {axis} (allowed: 2 and more)")
    x = moveaxis(x, axis, -1)
    if widths.ndim == 0:
        inner = (x[..., 2:] - x[..., :-2]) / (step * 2.0)
        first, last = (x[..., 1:2] - x[..., :1]) / step, (x[..., -1:] - x[..., -2:-1]) / step
    else:
        widths = diff(widths)
        before, after = widths[:-1], widths[1:]
        inner = (x[..., 2:] * before**2.0 - x[..., :-2] * after**2.0 + x[..., 1:-1] * (after**2.0 - before**2.0)) / (before * after * (before + after))
        first, last = (x[..., 1:2] - x[..., :1]) / widths[:1], (x[..., -1:] - x[..., -2:-1]) / widths[-1:]
    return moveaxis(concatenate([first, inner, last], -1), -1, axis)


def _slopes_of_symbol(x, axis, step):
    """The same in one formula, by neighbours that are the element itself at the ends: NaN where there is 1 element."""
    x = moveaxis(float_of(x), axis, -1)
    distances = lambda line: line[..., 2:] - line[..., :-2]  # noqa: E731
    around = lambda line: call("pad_mode", line, [0] * (line.ndim - 1) + [1], [0] * (line.ndim - 1) + [1], "edge")  # noqa: E731
    places = distances(around(arange(x.shape[-1]).astype(x.dtype)))
    return moveaxis(distances(around(x)) / (places * step), -1, axis)


def inner(x, y):
    """The sums of products over both last axes."""
    x, y = array_of(x), array_of(y)
    return x * y if x.ndim == 0 or y.ndim == 0 else tensordot(x, y, ([-1], [-1]))


def matvec(x, v):
    """Matrices times vectors; leading axes broadcast."""
    return matmul(x, array_of(v)[..., None])[..., 0]


def vecmat(v, x):
    """Vectors, conjugated, times matrices."""
    return matmul(call("conj", array_of(v))[..., None, :], x)[..., 0, :]


def apply_over_axes(func, a, axes):
    """func(x, axis) for one axis after another; an axis that it takes away stays with the size 1."""
    a = array_of(a)
    for axis in sizes_of(axes):
        result = func(a, axis)
        a = result if result.ndim == a.ndim else reshape(result, [1 if i == place_of(axis, a.ndim) else size for i, size in enumerate(a.shape)])
    return a


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """The function of each line along an axis."""
    from .._transforms import vmap

    arr = moveaxis(array_of(arr), axis, -1)
    called = lambda line: array_of(func1d(line, *args, **kwargs))  # noqa: E731
    for _ in range(arr.ndim - 1):
        called = vmap(called)
    result = called(arr)
    extra = result.ndim - (arr.ndim - 1)
    return moveaxis(result, list(range(arr.ndim - 1, result.ndim)), [place_of(axis, arr.ndim) + i for i in range(extra)]) if extra else result


__all__ = public(globals())
