"""Functions of scipy.integrate over rlx.Array."""
from ..numpy import trapezoid

__all__ = ["trapezoid"]
