"""Functions of matrices, the last two axes."""
import builtins
import collections
import math
import operator

from .._array import Array
from .._core import DType, Error
from .._custom import custom_jvp
from .._dtypes import is_complex
from . import _spectra, arrangement
from ._base import array_of, call, float_of, place_of, public, reduced
from .arrangement import broadcast_to, concatenate, expand_dims, matrix_transpose, moveaxis, squeeze
from .creation import eye, ones, zeros
from .elementwise import abs, conj, equal, log, not_equal, sign, where
from .information import finfo
from .products import matmul, outer, tensordot, vecdot
from .reductions import argmin, max, min, prod, sum
from .types import result_type


def _of_one_type(a, b):
    """Both of the type of their sum, integers and bool as f32."""
    a, b = array_of(a), array_of(b)
    if a.dtype != b.dtype:
        dtype = result_type(a, b)
        a, b = a.astype(dtype), b.astype(dtype)
    return float_of(a), float_of(b)


def solve(a, b):
    """x with a x = b; b is a vector where it has one axis."""
    a, b = _of_one_type(a, b)
    if b.ndim != 1:
        return call("solve", a, b)
    return squeeze(call("solve", a, expand_dims(b, -1)), -1)


def inv(a):
    """The inverse of matrices."""
    a = float_of(a)
    return call("solve", a, broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape))


def cholesky(a, upper=False, symmetrize_input=True):
    """The lower factor of a positive definite matrix, or the upper one. `symmetrize_input`: of the mean of the matrix and its conjugate
    transpose, so that derivatives are Hermitian, too; else the part above the diagonal is not read."""
    factor = call("cholesky", _hermitian(a, "cholesky") if symmetrize_input else float_of(a))
    return conj(factor.mT) if upper else factor


def _hermitian(a, name="eigh"):
    a = float_of(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise Error(f"{name}: {a._type_text()} (allowed: square matrices)")
    return (a + conj(a.mT)) * 0.5


eigvals = _spectra.eigvals
Eig = collections.namedtuple("Eig", "eigenvalues eigenvectors")


def eig(a):
    """Eigenvalues and eigenvectors, in columns of length 1, of any square matrices; complex, in LAPACK's order. Programs call NumPy for it."""
    return Eig(*_spectra.eig(a))


QR = collections.namedtuple("QR", "Q R")
Eigh = collections.namedtuple("Eigh", "eigenvalues eigenvectors")
SVD = collections.namedtuple("SVD", "U S Vh")
Slogdet = collections.namedtuple("Slogdet", "sign logabsdet")


def qr(a, mode="reduced"):
    """Q with orthonormal columns and R upper triangular with Q R = a. Modes: reduced, complete, r (R alone)."""
    if mode not in ("reduced", "complete", "r"):
        raise Error(f"qr: mode is {mode!r} (allowed: reduced, complete, r)")
    result = QR(*call("qr", float_of(a), mode == "complete"))
    return result.R if mode == "r" else result


def eigh(a, UPLO=None, symmetrize_input=True):
    """Eigenvalues, ascending, and eigenvectors, in columns, of a symmetric or Hermitian matrix: of the mean of a and its adjoint, or of the
    lower (UPLO="L") or upper (UPLO="U") triangle of a alone."""
    if UPLO not in (None, "L", "U"):
        raise Error(f"eigh: UPLO is {UPLO!r} (allowed: None, L, U)")
    UPLO = UPLO or (None if symmetrize_input else "L")
    return Eigh(*call("eigh", _hermitian(a) if UPLO is None else float_of(a) if UPLO == "L" else conj(float_of(a).mT)))


def eigvalsh(a, UPLO=None, symmetrize_input=True):
    """The eigenvalues of eigh."""
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """U, s and V^H with U diag(s) V^H = a, s descending; without compute_uv s alone. That a is Hermitian changes nothing."""
    return SVD(*call("svd", float_of(a), full_matrices)) if compute_uv else svdvals(a)


def svdvals(a):
    """The singular values, descending."""
    return SVD(*call("svd", float_of(a))).S


def _threshold(s, shape, rtol):
    """What singular values must be above to count; one relative threshold for each matrix."""
    if rtol is None:
        rtol = builtins.max(shape[-2:]) * finfo(s.dtype).eps
    return max(s, axis=-1, keepdims=True) * (expand_dims(rtol, -1) if isinstance(rtol, Array) else rtol)


def matrix_rank(a, rtol=None, hermitian=False, tol=None):
    """How many singular values are above rtol times the largest, by default max(M, N) roundings, or above `tol`."""
    a = float_of(a)
    if a.ndim < 2:
        return reduced("any", not_equal(a, 0), None, False).astype(DType.i32)
    s = svdvals(a)
    return sum(s > (_threshold(s, a.shape, rtol) if tol is None else tol), axis=-1) if s.shape[-1] else zeros(s.shape[:-1], DType.i32)


def pinv(a, rtol=None, hermitian=False, rcond=None):
    """The inverse of Moore and Penrose, by the singular values above rtol times the largest. A rtol for each matrix gives no derivative."""
    a, rtol = float_of(a), rcond if rtol is None else rtol
    if not isinstance(rtol, Array):
        return call("pinv", a, -1 if rtol is None else rtol)
    parts = svd(a, full_matrices=False)
    used = parts.S > _threshold(parts.S, a.shape, rtol)
    inverse = where(used, 1 / where(used, parts.S, 1), 0).astype(a.dtype)
    return matmul(conj(parts.Vh.mT) * expand_dims(inverse, -2), conj(parts.U.mT))


def lstsq(a, b, rcond=None):
    """x of least size with least |a x - b|, the squares of what is left (of full rank alone), the rank, and the singular values."""
    a, b = float_of(a), float_of(b)
    x = matmul(pinv(a, rcond), b)
    rank, left = matrix_rank(a, rcond), sum(abs(b - matmul(a, x)) ** 2.0, axis=0)
    return x, where(equal(rank, a.shape[1]), left, math.nan).reshape(-1), rank, svdvals(a)


def _factors(a):
    """The diagonal of U, and whether rows were exchanged an even number of times."""
    a = float_of(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise Error(f"a determinant of {a._type_text()} (allowed: square matrices)")
    factors, pivots, _ = call("lu", a)
    rows = call("iota", pivots, list(pivots.shape), DType.i32, -1)
    return diagonal(factors), equal(sum(not_equal(pivots, rows), axis=-1) % 2, 0)


def slogdet(a, method=None):
    """The sign of the determinant, and the logarithm of its magnitude, by factors L U whatever the method."""
    values, even = _factors(a)
    size = abs(values)
    signs = values / where(equal(size, 0), 1, size) if is_complex(values.dtype) else sign(values)  # of complex ones it has a derivative
    return Slogdet(prod(signs, axis=-1) * where(even, 1.0, -1.0).astype(values.dtype), sum(log(size), axis=-1))


@custom_jvp
def _det(a):
    values, even = _factors(a)
    return prod(values, axis=-1) * where(even, 1.0, -1.0).astype(values.dtype)


@_det.defjvp
def _(primals, tangents):
    """The trace of adj(a) da, of a singular matrix too. A pivot of 0 divides nothing where it is the last one: so columns are exchanged."""
    (a,), (da,) = primals, tangents
    n = a.shape[-1]
    least = expand_dims(argmin(abs(_factors(a)[0]), axis=-1), -1)
    place = call("iota", least, [*least.shape[:-1], n], DType.i32, -1)
    columns = expand_dims(where(equal(place, least), n - 1, where(equal(place, n - 1), least, place)), -2)
    exchanged, tangent = [arrangement.take_along_axis(each, columns, axis=-1) for each in (a, da)]
    factors, _, rows = call("lu", exchanged)
    values, even = _factors(exchanged)
    sign_of = where(equal(even, equal(squeeze(least, -1), n - 1)), 1.0, -1.0).astype(a.dtype)  # of both exchanges
    others = expand_dims(prod(values[..., :-1], axis=-1), (-2, -1))
    safe = where(equal(others, 0), eye(n, dtype=a.dtype), factors)
    by_lower = call("triangular_solve", safe, arrangement.take_along_axis(tangent, expand_dims(rows, -1), axis=-2), True, True, False, True)
    last = by_lower[..., -1:, :] * others
    above = by_lower[..., :-1, :] * (others * values[..., -1:, None]) - safe[..., :-1, -1:] * last
    inner = call("triangular_solve", safe[..., :-1, :-1], above, True, False, False, False)
    total = trace(concatenate([inner, last], -2))
    return _det(a), where(equal(squeeze(others, (-2, -1)), 0), 0, total * sign_of).astype(a.dtype)


def det(a):
    """The determinant. Derivatives of up to 3 rows are right of any matrix, of more rows the first one is, the others of regular ones."""
    a = float_of(a)
    n = a.shape[-1] if a.ndim > 1 and a.shape[-1] == a.shape[-2] else None
    if n == 0:
        return ones(a.shape[:-2], a.dtype)
    if n == 1:
        return a[..., 0, 0]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    return sum(a[..., 0, :] * cross(a[..., 1, :], a[..., 2, :]), axis=-1) if n == 3 else _det(a)


def cond(x, p=None):
    """The norm of x times that of its inverse; by itself the largest over the smallest singular value."""
    if p in (None, 2, -2):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)


def norm(x, ord=None, axis=None, keepdims=False):  # noqa: A002
    """The p-norm of vectors along one axis, that of matrices along two, or of all elements, p = 2. Without `axis` an `ord` is that of a vector or
    matrix x."""
    x = float_of(x)
    if axis is None and ord is not None:
        if x.ndim not in (1, 2):
            raise Error(f"norm: ord of {x._type_text()} needs an axis")
        axis = tuple(range(x.ndim))
    if ord is not None and isinstance(axis, (tuple, list)) and len(axis) == 2:
        result = matrix_norm(moveaxis(x, axis, (-2, -1)), ord=ord)
        return expand_dims(result, sorted(place_of(each, x.ndim) for each in axis)) if keepdims else result
    return vector_norm(x, axis, keepdims, 2 if ord is None else ord)


def vector_norm(x, axis=None, keepdims=False, ord=2):  # noqa: A002
    """The p-norm along axes, by default of all elements."""
    x = float_of(x)
    return reduced("norm", abs(x) if is_complex(x.dtype) else x, axis, keepdims, p=ord)


def matrix_norm(x, keepdims=False, ord="fro"):  # noqa: A002
    """The norm of matrices: fro; nuc, 2 or -2, the sum, the largest or the smallest of the singular values; 1, -1, inf or -inf, the largest or
    smallest sum of magnitudes of a column or row."""
    x = float_of(x)
    if ord == "fro" or ord is None:
        return vector_norm(x, (-2, -1), keepdims)
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise Error(f"matrix_norm: ord is {ord!r} (allowed: fro, nuc, 1, -1, 2, -2, inf, -inf)")
    if ord in ("nuc", 2, -2):
        s = svdvals(x)
        result = sum(s, axis=-1) if ord == "nuc" else max(s, axis=-1) if ord == 2 else min(s, axis=-1)
        return expand_dims(result, (-2, -1)) if keepdims else result
    sums = sum(abs(x), axis=-2 if ord in (1, -1) else -1)
    return (max if ord > 0 else min)(expand_dims(sums, -1), axis=(-2, -1), keepdims=keepdims)


def multi_dot(xs, *, precision=None):
    """The product of matrices, in the order that multiplies least; the first and the last may be vectors."""
    xs = [array_of(x) for x in xs]
    if len(xs) < 3:
        return matmul(*xs) if xs[1:] else xs[0]
    sizes = [xs[0].shape[0] if xs[0].ndim == 2 else 1, *[x.shape[0] for x in xs[1:]], xs[-1].shape[-1] if xs[-1].ndim == 2 else 1]
    best = {(i, i + 1): (0, None) for i in range(len(xs))}
    for length in range(2, len(xs) + 1):
        for i in range(len(xs) - length + 1):
            k = i + length
            best[i, k] = builtins.min((best[i, j][0] + best[j, k][0] + sizes[i] * sizes[j] * sizes[k], j) for j in range(i + 1, k))

    def product(i, k):
        return xs[i] if k == i + 1 else matmul(product(i, best[i, k][1]), product(best[i, k][1], k))

    return product(0, len(xs))


def tensorinv(a, ind=2):
    """The inverse of a as a map from its last axes to its first `ind` ones."""
    a = float_of(a)
    count = math.prod(a.shape[ind:])
    return inv(a.reshape(-1, count)).reshape(*a.shape[ind:], *a.shape[:ind])


def tensorsolve(a, b, axes=None):
    """x with tensordot(a, x, x.ndim) = b; `axes` of a come last."""
    a, b = float_of(a), float_of(b)
    a = a if axes is None else moveaxis(a, axes, range(a.ndim - len(axes), a.ndim))
    return solve(a.reshape(-1, b.size), b.reshape(-1)).reshape(a.shape[b.ndim :])


def matrix_power(x, n):
    """The product of n equal matrices; of their inverses where n < 0."""
    n = operator.index(n)
    x = array_of(x) if n >= 0 else inv(x)
    result = broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) if n == 0 else None
    n = builtins.abs(n)
    while n:
        result = x if n & 1 and result is None else matmul(result, x) if n & 1 else result
        x, n = matmul(x, x) if n > 1 else x, n >> 1
    return result


def cross(x, y, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors along `axis` of all, or along axes of x, y and the result: of three elements, or of two, whose last number it is."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] != y.shape[-1] or x.shape[-1] not in (2, 3):
        raise Error(f"cross: {x._type_text()} and {y._type_text()} (allowed: three elements each, or two, along the axis)")
    if x.shape[-1] == 2:
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    turned = lambda v, k: concatenate([v[..., k:], v[..., :k]], -1)  # noqa: E731
    return moveaxis(turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1), -1, axisc)


def trace(x, offset=0, dtype=None):
    """The sum of the diagonal of the last two axes."""
    return sum(diagonal(x, offset), axis=-1, dtype=dtype)


def diagonal(x, offset=0):
    """The diagonal of the last two axes."""
    return arrangement.diagonal(x, offset, -2, -1)


__all__ = [*public(globals()), "eigvals", "matmul", "matrix_transpose", "outer", "tensordot", "vecdot"]
