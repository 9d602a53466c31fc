"""Functions of SciPy over rlx.Array, by its modules."""
from . import fft, integrate, linalg, ndimage, signal, sparse, special, stats

__all__ = ["fft", "integrate", "linalg", "ndimage", "signal", "sparse", "special", "stats"]
