"""Images at places between their elements."""
# mypy: disable-error-code="misc"
import functools
import itertools
import operator

from .. import numpy as jnp
from .._core import Error
from .._dtypes import is_integer
from ..lax import round as _round
from ..numpy._base import array_of


def _mirrored(index, size):
    last = max(size - 1, 1)
    return jnp.abs((index + last) % (2 * last) - last) if size > 1 else index * 0


def _reflected(index, size):
    return (_mirrored(2 * index + 1, 2 * size + 1) - 1) // 2


_MODES = {"constant": lambda index, size: index, "nearest": lambda index, size: jnp.clip(index, 0, size - 1), "wrap": lambda index, size: index % size,
          "mirror": _mirrored, "reflect": _reflected}  # fmt: skip


def _near(coordinate, order):
    """Pairs of the places around a coordinate, and their weights."""
    if order == 0:
        return [(coordinate if is_integer(coordinate.dtype) else _round(coordinate).astype("int32"), 1.0)]
    below = jnp.floor(coordinate)
    weight = coordinate - below
    index = below.astype("int32")
    return [(index, 1.0 - weight), (index + 1, weight)]


def map_coordinates(input, coordinates, order, mode="constant", cval=0.0):  # noqa: A002
    """The elements at coordinates, an array for each axis: of order 0 the nearest ones, of order 1 between their neighbours. Outside `mode` counts."""
    x, coordinates = array_of(input), [array_of(each) for each in coordinates]
    if mode not in _MODES or order not in (0, 1) or len(coordinates) != x.ndim:
        raise Error(f"map_coordinates: mode is {mode!r}, order {order}, for {len(coordinates)} coordinates of {x._type_text()} (allowed: "
                    f"{', '.join(_MODES)}; 0 or 1; one for each axis)")  # fmt: skip
    total = 0
    for places in itertools.product(*[_near(each, order) for each in coordinates]):
        element = x[tuple(_MODES[mode](index, size) for (index, _), size in zip(places, x.shape))]
        if mode == "constant":
            inside = [(index >= 0) & (index < size) for (index, _), size in zip(places, x.shape)]
            element = jnp.where(functools.reduce(operator.and_, inside), element, jnp.asarray(cval, x.dtype))
        total = total + functools.reduce(operator.mul, [weight for _, weight in places]) * element
    return (_round(total) if is_integer(x.dtype) and order else total).astype(x.dtype)


__all__ = ["map_coordinates"]
