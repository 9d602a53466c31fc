"""Positions of elements, and elements by positions and conditions."""
import builtins
import math

from .._core import DType, Error
from ._base import along, array_of, call, of_type, public, sizes_of, written
from .arrangement import _placed, atleast_1d, broadcast_arrays, nonzero, ravel, reshape, stack, take
from .creation import arange, meshgrid, ones, tril, triu, zeros
from .elementwise import clip, remainder, where
from .parts import resize
from .types import astype


def compress(condition, a, axis=None):
    """The slices where the condition, which must be known, holds."""
    (a, axis), condition = along(a, axis), array_of(condition)
    if condition.ndim != 1:
        raise Error(f"compress: a condition of {condition._type_text()} (allowed: one axis)")
    return take(a, nonzero(condition)[0], axis)


def extract(condition, arr):
    """The elements where the condition, which must be known, holds."""
    return compress(ravel(condition), ravel(arr))


def argwhere(x, size=None, fill_value=0):
    """The positions of the elements that are not 0, one row for each; as nonzero."""
    x = array_of(x)
    return stack(nonzero(atleast_1d(x), size, fill_value), 1)[:, : x.ndim]


def flatnonzero(x, size=None, fill_value=0):
    return nonzero(ravel(x), size, fill_value)[0]


def choose(a, choices, out=None, mode="clip"):
    """Of each place the element of the array that a names. Numbers outside are the nearest inside, or with mode wrap begin anew."""
    if mode not in ("clip", "wrap"):
        raise Error(f"choose: mode {mode!r} (allowed: clip, wrap)")
    a = remainder(a, len(choices)) if mode == "wrap" else clip(a, 0, len(choices) - 1)
    a, *choices = broadcast_arrays(a, *choices)
    return written(call("take_along_axis", stack(choices), a[None].astype("int32"), 0)[0], out)


def select(condlist, choicelist, default=0):
    """Of each place the element of the first choice whose condition holds."""
    result = default
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        result = where(condition, choice, result)
    return result


def piecewise(x, condlist, funclist):
    """By the function whose condition holds, the last one elsewhere; 0 where there is none for it."""
    x = array_of(x)
    called = [of_type(f(x) if callable(f) else f, x.dtype) for f in funclist]
    otherwise = called.pop() if len(called) > len(condlist) else 0
    result = otherwise
    for condition, value in zip(condlist, called):
        result = where(condition, value, result)
    return astype(result, x.dtype)


def indices(dimensions, dtype="int32", sparse=False):
    """The position of each element along each axis."""
    grids = meshgrid(*[arange(n, dtype=dtype) for n in dimensions], indexing="ij")
    if not sparse:
        return stack(grids) if grids else zeros((0,), dtype)
    return tuple(reshape(arange(n, dtype=dtype), [-1 if i == k else 1 for i in range(len(dimensions))]) for k, n in enumerate(dimensions))


def ix_(*xs):
    """Vectors, each along an axis of its own; of bool the positions of what is true."""
    xs = [nonzero(x)[0] if array_of(x).dtype == DType["bool"] else x for x in xs]
    return tuple(reshape(x, [-1 if i == k else 1 for i in range(len(xs))]) for k, x in enumerate(xs))


def diag_indices(n, ndim=2):
    return (arange(n),) * ndim


def diag_indices_from(x):
    return diag_indices(array_of(x).shape[0], array_of(x).ndim)


def tril_indices(n, k=0, m=None):
    return nonzero(tril(ones((n, n if m is None else m)), k))


def triu_indices(n, k=0, m=None):
    return nonzero(triu(ones((n, n if m is None else m)), k))


def tril_indices_from(x, k=0):
    return tril_indices(array_of(x).shape[-2], k, array_of(x).shape[-1])


def triu_indices_from(x, k=0):
    return triu_indices(array_of(x).shape[-2], k, array_of(x).shape[-1])


def _faster_last(shape, order):
    """The axes from the one that runs slowest to the one that runs fastest."""
    if order not in ("C", "F"):
        raise Error(f"the order of a flat array is {order!r} (allowed: C, F)")
    return list(range(len(shape))) if order == "C" else list(reversed(range(len(shape))))


def unravel_index(indices, shape, order="C"):
    """The index on each axis of positions in the flat array; of positions outside that of the nearest inside, as in jax.numpy."""
    shape = sizes_of(shape)
    count, result = math.prod(shape), [None] * len(shape)
    indices = clip(indices, -count, count - 1)
    for axis in reversed(_faster_last(shape, order)):
        result[axis] = indices % shape[axis]
        indices = indices // shape[axis]
    return tuple(result)


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """The positions in the flat array of indices on each axis. Those outside are errors where they are known, or with `mode`, one for all axes
    or one for each, wrap or clip."""
    position = 0
    modes = [mode] * len(dims) if isinstance(mode, str) else mode
    for axis in _faster_last(dims, order):
        position = _index_inside(array_of(multi_index[axis]), axis, dims[axis], modes[axis]) + position * dims[axis]
    return position


def _index_inside(index, axis, size, mode):
    if mode not in ("raise", "wrap", "clip"):
        raise Error(f"ravel_multi_index: mode {mode!r} (allowed: raise, wrap, clip)")
    if mode == "wrap":
        return remainder(index, size)
    if mode == "clip":
        return clip(index, 0, size - 1)
    if not index._is_traced and (outside := [i for i in ravel(index).tolist() if not 0 <= i < size]):
        raise Error(f"ravel_multi_index: index {outside[0]} on axis {axis} (allowed: 0..{size - 1})")
    return index


def put_along_axis(x, indices, values, axis, inplace=False):
    """With `values` at one place of each line along an axis; a new array."""
    if inplace:
        raise Error("put_along_axis: arrays do not change (allowed: inplace=False)")
    x, indices = array_of(x), array_of(indices)
    axis %= x.ndim
    shape = [indices.shape[i] if i == axis else x.shape[i] for i in range(x.ndim)]
    grid = meshgrid(*[arange(n) for n in shape], indexing="ij")
    places = [indices + zeros(shape, indices.dtype) if i == axis else grid[i] for i in range(x.ndim)]
    return x.at[tuple(places)].set(values)


def fill_diagonal(a, val, wrap=False, inplace=False):
    """With `val` on the diagonal; a new array."""
    if wrap:
        raise Error("fill_diagonal: wrap=True (allowed: False, the diagonal ends where the shortest axis does)")
    if inplace:
        raise Error("fill_diagonal: arrays do not change (allowed: inplace=False)")
    a = array_of(a)
    return a.at[diag_indices(builtins.min(a.shape), a.ndim)].set(val)


def mask_indices(n, mask_func, k=0, size=None):
    """The positions in an (n, n) matrix that mask_func, such as triu, leaves."""
    return nonzero(mask_func(ones((n, n), "int32"), k), size)


def place(x, mask, vals, inplace=False):
    """With the elements where the mask, which must be known, holds replaced by vals, again and again; a new array."""
    return put(x, flatnonzero(mask), vals, inplace=inplace)


def put(x, ind, v, mode=None, inplace=False):  # noqa: A002
    """With the elements at places of the flat array replaced by v, again and again; a new array."""
    if inplace:
        raise Error("put: arrays do not change (allowed: inplace=False)")
    x, ind = array_of(x), ravel(ind)
    if mode is not None:
        ind = _placed(ind, x.size, mode, x)
    return reshape(ravel(x).at[ind].set(resize(v, ind.shape)), list(x.shape))


def fromfunction(function, shape, dtype="float32"):
    """What the function gives for the positions of all elements."""
    return function(*indices(shape, dtype))


__all__ = public(globals())
