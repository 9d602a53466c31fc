"""Positions and vectors written as slices: mgrid, ogrid, r_, c_, s_."""
from .._array import Array
from .._conversions import asarray
from ._base import array_of
from .arrangement import broadcast_to, concatenate, reshape, stack
from .creation import arange, linspace, meshgrid


def _ticks(part):
    """The numbers of a slice; a step that is imaginary says how many there are."""
    if isinstance(part.step, complex):
        return linspace(part.start or 0, part.stop, int(abs(part.step)))
    return arange(part.start or 0, part.stop, part.step or 1)


class _Grid:
    """mgrid[0:3, 0:1:5j]: the positions along each axis. A step that is imaginary says how many there are, with both ends."""

    def __init__(self, sparse):
        self.sparse = sparse

    def __getitem__(self, parts):
        if isinstance(parts, slice):
            return _ticks(parts)
        ticks = [_ticks(part) for part in parts]
        if any(each.dtype != ticks[0].dtype for each in ticks):
            ticks = [each.astype("float32") for each in ticks]
        grids = meshgrid(*ticks, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)


class _Joined:
    """r_[1:4, 0, [5, 6]]: slices, numbers and arrays one after another; c_ makes them columns."""

    def __init__(self, columns):
        self.columns = columns

    def __getitem__(self, parts):
        parts = parts if isinstance(parts, tuple) else (parts,)
        if isinstance(parts[0], str):
            from .._core import Error

            raise Error(f"r_: {parts[0]!r} (allowed: slices, numbers, arrays)")
        made = [_ticks(part) if isinstance(part, slice) else part if isinstance(part, Array) else asarray(part) for part in parts]
        if self.columns:
            made = [reshape(each, (-1, 1)) if each.ndim < 2 else each for each in made]
            rows = max(each.shape[0] for each in made)
            return concatenate([broadcast_to(each, (rows, each.shape[1])) for each in made], 1)
        return concatenate([reshape(each, (1,)) if array_of(each).ndim == 0 else each for each in made])


class _Index:
    """s_[1:2, ...]: an index as it is written."""

    def __getitem__(self, index):
        return index


mgrid, ogrid = _Grid(False), _Grid(True)
r_, c_ = _Joined(False), _Joined(True)
s_ = index_exp = _Index()

__all__ = ["mgrid", "ogrid", "r_", "c_", "s_", "index_exp"]
