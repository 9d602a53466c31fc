"""Functions of matrices, the last two axes."""
import builtins
import collections
import math

from .._core import DType, Error
from . import arrangement
from ._base import array_of, call, float_of, public, reduced
from .arrangement import broadcast_to, concatenate, expand_dims, matrix_transpose, moveaxis, squeeze
from .creation import eye
from .elementwise import abs, conj, equal, exp, log, not_equal, sign, where
from .products import matmul, outer, tensordot, vecdot
from .reductions import max, min, prod, sum


def solve(a, b):
    """x with a x = b; b is a vector where it has one axis."""
    a, b = float_of(a), float_of(b)
    if b.ndim != 1:
        return call("solve", a, b)
    return squeeze(call("solve", a, expand_dims(b, -1)), -1)


def inv(a):
    """The inverse of matrices."""
    a = float_of(a)
    return call("solve", a, broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape))


def cholesky(a, upper=False):
    """The lower factor of a positive definite matrix, or the upper one."""
    factor = call("cholesky", float_of(a))
    return conj(factor.mT) if upper else factor


Slogdet = collections.namedtuple("Slogdet", "sign logabsdet")


def slogdet(a):
    """The sign of the determinant, and the logarithm of its magnitude."""
    a = float_of(a)
    factors, pivots, _ = call("lu", a)
    values = diagonal(factors)
    rows = call("iota", pivots, list(pivots.shape), DType.i32, -1)
    swaps = sum(not_equal(pivots, rows), axis=-1)
    sign_ = prod(sign(values), axis=-1) * where(equal(swaps % 2, 0), 1.0, -1.0).astype(a.dtype)
    return Slogdet(sign_, sum(log(abs(values)), axis=-1))


def det(a):
    """The determinant."""
    sign_, logarithm = slogdet(a)
    return sign_ * exp(logarithm)


def norm(x, ord=None, axis=None, keepdims=False):  # noqa: A002
    """The p-norm of vectors along axes, by default of all elements, p = 2 by itself."""
    return reduced("norm", float_of(x), axis, keepdims, p=2 if ord is None else ord)


def vector_norm(x, axis=None, keepdims=False, ord=2):  # noqa: A002
    """The same with the arguments of the array API standard."""
    return norm(x, ord, axis, keepdims)


def matrix_norm(x, keepdims=False, ord="fro"):  # noqa: A002
    """The norm of matrices: fro, or 1, -1, inf, -inf, the largest or smallest sum of magnitudes of a column or row."""
    x = float_of(x)
    if ord == "fro":
        return norm(x, 2, (-2, -1), keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise Error(f"matrix_norm: ord is {ord!r} (allowed: fro, 1, -1, inf, -inf)")
    sums = sum(abs(x), axis=-2 if ord in (1, -1) else -1, keepdims=True)
    result = (max if ord > 0 else min)(sums, axis=(-2, -1), keepdims=True)
    return result if keepdims else squeeze(result, (-2, -1))


def matrix_power(x, n):
    """The product of n equal matrices; of their inverses where n < 0."""
    x = array_of(x) if n >= 0 else inv(x)
    result = broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) if n == 0 else None
    n = builtins.abs(n)
    while n:
        result = x if n & 1 and result is None else matmul(result, x) if n & 1 else result
        x, n = matmul(x, x) if n > 1 else x, n >> 1
    return result


def cross(x, y, axis=-1):
    """The cross product of vectors of three elements along an axis."""
    x, y = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    turned = lambda v, k: concatenate([v[..., k:], v[..., :k]], -1)  # noqa: E731
    return moveaxis(turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1), -1, axis)


def trace(x, offset=0, dtype=None):
    """The sum of the diagonal of the last two axes."""
    return sum(diagonal(x, offset), axis=-1, dtype=dtype)


def diagonal(x, offset=0):
    """The diagonal of the last two axes."""
    return arrangement.diagonal(x, offset, -2, -1)


__all__ = [*public(globals()), "matmul", "matrix_transpose", "outer", "tensordot", "vecdot"]
