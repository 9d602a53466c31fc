"""Functions of SciPy over rlx.Array: special, linalg, stats."""
from . import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
