"""Gathers and scatters by JAX's dimension numbers, and sums of segments."""
import enum
from typing import NamedTuple

from . import numpy as jnp
from ._core import DType, Error
from .numpy._base import array_of, call, integers_of


class GatherDimensionNumbers(NamedTuple):
    """Which axes of the result are those of the windows, and which of the operand have no axis there."""

    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()


class ScatterDimensionNumbers(NamedTuple):
    """The same for the updates of a scatter."""

    update_window_dims: tuple
    inserted_window_dims: tuple
    scatter_dims_to_operand_dims: tuple
    operand_batching_dims: tuple = ()
    scatter_indices_batching_dims: tuple = ()


class GatherScatterMode(enum.Enum):
    """What becomes of windows that are not wholly inside."""

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2


_MODES = {"fill": "fill", "drop": "fill", "clip": "clip", "promise_in_bounds": "clip", GatherScatterMode.CLIP: "clip",
          GatherScatterMode.FILL_OR_DROP: "fill", GatherScatterMode.PROMISE_IN_BOUNDS: "clip"}  # fmt: skip


def _mode(name, mode):
    if mode not in _MODES:
        raise Error(f"{name}: mode is {mode!r} (allowed: clip, fill, drop, promise_in_bounds or a GatherScatterMode)")
    return _MODES[mode]


def _attributes(numbers):
    """JAX's dimension numbers of either kind by the registry's names."""
    return dict(zip(GatherDimensionNumbers._fields, ([int(axis) for axis in axes] for axes in numbers)))


def gather(operand, start_indices, dimension_numbers, slice_sizes, *, unique_indices=False, indices_are_sorted=False, mode=None, fill_value=None):
    """Windows of `slice_sizes` that start where the last axis of the indices says. Those not wholly inside are moved; with mode
    fill all their elements are `fill_value`, by itself NaN, the least signed or the largest unsigned integer."""
    x, indices = array_of(operand), integers_of("gather", start_indices)
    fill = {} if fill_value is None else {"fill_value": float(fill_value)}
    return call("gather", x, indices, **_attributes(dimension_numbers), slice_sizes=list(slice_sizes), mode=_mode("gather", mode or "clip"), **fill)


def _scattered(kind, operand, indices, updates, numbers, mode):
    x = array_of(operand)
    if x.dtype == DType["bool"]:
        return _scattered(kind, x.astype(DType.u8), indices, updates, numbers, mode).astype(DType["bool"])
    updates = array_of(updates).astype(x.dtype)
    return call("scatter", x, integers_of("scatter", indices), updates, **_attributes(numbers), kind=kind, mode=_mode("scatter", mode or "drop"))


def _scatter(name, kind, doc):
    def function(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False, unique_indices=False, mode=None):
        return _scattered(kind, operand, scatter_indices, updates, dimension_numbers, mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The operand with windows {doc}. Windows not wholly inside are left out, or moved with mode clip."
    return function


scatter = _scatter("scatter", "set", "replaced by those of the updates, the last of which counts")
scatter_add = _scatter("scatter_add", "add", "to which those of the updates are added")
scatter_mul = _scatter("scatter_mul", "mul", "multiplied by those of the updates")
scatter_min = _scatter("scatter_min", "min", "that are the smaller of their elements and those of the updates")
scatter_max = _scatter("scatter_max", "max", "that are the larger of their elements and those of the updates")


def scatter_sub(operand, scatter_indices, updates, dimension_numbers, **options):
    """The operand with windows from which those of the updates are taken."""
    return scatter_add(operand, scatter_indices, -array_of(updates), dimension_numbers, **options)


def scatter_apply(operand, scatter_indices, func, dimension_numbers, *, update_shape=(), indices_are_sorted=False, unique_indices=False, mode=None):
    """The operand with func(element), once, of all elements in the windows of `update_shape`."""
    x = array_of(operand)
    is_in = _scattered("set", jnp.zeros(x.shape, "bool"), scatter_indices, jnp.ones(update_shape, "bool"), dimension_numbers, mode)
    return call("where", is_in, func(x), x)


def _identity(kind, dtype):
    """What changes nothing."""
    if kind in ("add", "mul"):
        return int(kind == "mul")
    if dtype == DType["bool"]:
        return kind == "min"
    try:
        limits = jnp.iinfo(dtype)
    except (Error, ValueError):
        return float("inf" if kind == "min" else "-inf")
    return limits.max if kind == "min" else limits.min


def _segments(kind, reduction, data, segment_ids, count, bucket_size, mode):
    data, ids = array_of(data), integers_of(f"segment_{kind}", segment_ids)
    count = int(jnp.max(ids)) + 1 if count is None else count
    if count < 0:
        raise Error(f"segment_{kind}: num_segments is {count} (allowed: 0 and more)")
    places, front = ids[..., None], (count,)
    if bucket_size is not None:
        first = (jnp.arange(ids.shape[0]) // bucket_size).astype(ids.dtype)
        places, front = jnp.stack([jnp.broadcast_to(first, ids.shape), ids], -1), (-(-ids.size // bucket_size), count)
    rest = data.shape[1:]
    axes = tuple(range(len(front)))
    numbers = ScatterDimensionNumbers(tuple(range(ids.ndim, ids.ndim + len(rest))), axes, axes)
    start = jnp.full((*front, *rest), _identity(kind, data.dtype), data.dtype)
    if start.size == 0 or ids.size == 0:
        return start if bucket_size is None else jnp.full((count, *rest), _identity(kind, data.dtype), data.dtype)
    result = _scattered(kind, start, places, jnp.broadcast_to(data, (*ids.shape, *rest)), numbers, mode)
    return result if bucket_size is None else reduction(result, axis=0).astype(data.dtype)


def _segment(name, kind, reduction, doc):
    def function(data, segment_ids, num_segments=None, indices_are_sorted=False, unique_indices=False, bucket_size=None, mode=None):
        return _segments(kind, reduction, data, segment_ids, num_segments, bucket_size, mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (f"{doc} the slices of `data` along axis 0 whose id is k, for each k of 0 .. num_segments - 1 (by itself the largest id, which must be "
                        "known). Ids outside are left out. `bucket_size`: of so many slices first, then of these results.")  # fmt: skip
    return function


segment_sum = _segment("segment_sum", "add", jnp.sum, "The sum of")
segment_prod = _segment("segment_prod", "mul", jnp.prod, "The product of")
segment_max = _segment("segment_max", "max", jnp.max, "The largest elements of")
segment_min = _segment("segment_min", "min", jnp.min, "The least elements of")
