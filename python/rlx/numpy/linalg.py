"""Functions of matrices, the last two axes."""
from .._core import DType
from ._base import call, float_of, public, reduced
from .arrangement import broadcast_to, diagonal
from .creation import eye
from .elementwise import abs, equal, exp, log, not_equal, sign, where
from .reductions import prod, sum


def solve(a, b):
    """x with a x = b."""
    return call("solve", float_of(a), float_of(b))


def inv(a):
    """The inverse of matrices."""
    a = float_of(a)
    return call("solve", a, broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape))


def cholesky(a):
    """The lower factor of a positive definite matrix."""
    return call("cholesky", float_of(a))


def slogdet(a):
    """The sign of the determinant, and the logarithm of its magnitude."""
    a = float_of(a)
    factors, pivots, _ = call("lu", a)
    values = diagonal(factors, axis1=-2, axis2=-1)
    rows = call("iota", pivots, list(pivots.shape), DType.i32, -1)
    swaps = sum(not_equal(pivots, rows), axis=-1)
    sign_ = prod(sign(values), axis=-1) * where(equal(swaps % 2, 0), 1.0, -1.0).astype(a.dtype)
    return sign_, sum(log(abs(values)), axis=-1)


def det(a):
    """The determinant."""
    sign_, logarithm = slogdet(a)
    return sign_ * exp(logarithm)


def norm(x, ord=None, axis=None, keepdims=False):  # noqa: A002
    """The p-norm of vectors along axes, by default of all elements, p = 2 by itself."""
    return reduced("norm", float_of(x), axis, keepdims, p=2 if ord is None else ord)

vector_norm = norm


__all__ = public(globals())
