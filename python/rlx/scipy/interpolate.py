"""Functions of scipy.interpolate over rlx.Array."""
import itertools
import math

from .. import _trees
from .. import numpy as jnp
from .._core import Error
from ..numpy._base import array_of, float_of, public


class RegularGridInterpolator:
    """A function of points, between values on a grid: `points` are its ascending coordinates on each axis. The method is linear or nearest. Outside it
    gives `fill_value`, or with None what the nearest cells would. It is a container of the arrays."""

    def __init__(self, points, values, method="linear", bounds_error=False, fill_value=math.nan):
        values = float_of(values)
        if bounds_error:
            raise Error("RegularGridInterpolator: bounds_error is True (allowed: False; fill_value says what is outside)")
        self.grid = tuple(float_of(each) for each in points)
        sizes = [each.shape[0] for each in self.grid]
        if sizes != list(values.shape[: len(sizes)]) or min(sizes, default=0) < 2:
            raise Error(f"RegularGridInterpolator: {sizes} points for values of {values._type_text()} (allowed: two and more for each of its first axes)")
        self.values, self.method, self.fill_value = values, self._checked(method), fill_value

    @staticmethod
    def _checked(method):
        if method not in ("linear", "nearest"):
            raise Error(f"RegularGridInterpolator: method is {method!r} (allowed: linear, nearest)")
        return method

    def __call__(self, xi, method=None):
        """At points along the last axis of xi, or at a tuple of their coordinates."""
        method = self._checked(self.method if method is None else method)
        axes = len(self.grid)
        xi = jnp.stack(jnp.broadcast_arrays(*[float_of(each) for each in xi]), -1) if isinstance(xi, tuple) else float_of(xi)
        xi = xi[..., None] if axes == 1 and (xi.ndim == 0 or xi.shape[-1] != 1) else xi
        if xi.shape[-1] != axes:
            raise Error(f"RegularGridInterpolator: points of {xi._type_text()} (allowed: {axes} on the last axis)")
        front, xi = xi.shape[:-1], xi.reshape(-1, axes)
        cells, shares, outside = [], [], False
        for axis, grid in enumerate(self.grid):
            x = xi[:, axis]
            cell = jnp.clip(jnp.searchsorted(grid, x).astype("int32") - 1, 0, grid.shape[0] - 2)
            low, high = jnp.take(grid, cell), jnp.take(grid, cell + 1)
            cells.append(cell)
            shares.append((x - low) / (high - low))
            outside = outside | (x < grid[0]) | (x > grid[-1])
        result = self._linear(cells, shares) if method == "linear" else self.values[tuple(cell + (share > 0.5) for cell, share in zip(cells, shares))]
        if self.fill_value is not None:
            result = jnp.where(self._beside(outside), self.fill_value, result)
        return result.reshape(*front, *self.values.shape[axes:])

    def _beside(self, x):
        """One number a point, for all values there."""
        return x.reshape(-1, *[1] * (self.values.ndim - len(self.grid)))

    def _linear(self, cells, shares):
        total = 0.0
        for corner in itertools.product((0, 1), repeat=len(cells)):
            weight = math.prod([share if high else 1.0 - share for high, share in zip(corner, shares)])
            total = total + self.values[tuple(cell + high for cell, high in zip(cells, corner))] * self._beside(weight)
        return total

    def _parts(self):
        return (self.grid, self.values, None if self.fill_value is None else array_of(self.fill_value)), self.method

    @classmethod
    def _made(cls, method, children):
        interpolator = cls.__new__(cls)
        interpolator.grid, interpolator.values, interpolator.fill_value = children
        interpolator.method = method
        return interpolator


_trees.register(RegularGridInterpolator, RegularGridInterpolator._parts, RegularGridInterpolator._made)
__all__ = public(globals())
