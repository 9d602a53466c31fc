"""Functions of scipy.linalg over rlx.Array, of the last two axes. SciPy's arguments about memory and checks (overwrite_a, check_finite) change
nothing: arrays never change, and NaN gives NaN."""
from .. import numpy as jnp
from .._control import fori_loop
from .._core import DType, Error
from .._custom import custom_jvp
from .._dtypes import is_complex
from ..numpy._base import array_of, call, float_of
from ..numpy import _spectra
from ..numpy.linalg import _of_one_type, norm, pinv  # noqa: F401: SciPy has them, too
from ._matrices import (  # noqa: F401
    circulant, companion, convolution_matrix, dft, fiedler, fiedler_companion, hadamard, hankel, helmert, hilbert, invhilbert, invpascal, leslie,
    pascal, toeplitz,
)  # fmt: skip


def det(a, overwrite_a=False, check_finite=True):
    """The determinant."""
    return jnp.linalg.det(a)


def inv(a, overwrite_a=False, check_finite=True):
    """The inverse of matrices."""
    return jnp.linalg.inv(a)


def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    """U, the singular values and V^H."""
    return jnp.linalg.svd(a, full_matrices, compute_uv)


def schur(a, output="real"):
    """T and the unitary Z of a = Z T Z^H: T is upper triangular, or, of real matrices, has blocks of 2 x 2 for pairs of complex eigenvalues, unless
    the output is complex. Programs call SciPy for it."""
    return _spectra.schur(a, output)


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """The upper factor of a positive definite matrix, or the lower one."""
    return jnp.linalg.cholesky(a, upper=not lower)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """The factor of cholesky, and which it is."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """x with a x = b by the result of cho_factor."""
    c, lower = c_and_lower
    return solve_triangular(c, solve_triangular(c, b, trans=0 if lower else 2, lower=lower), trans=2 if lower else 0, lower=lower)


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, debug=None, check_finite=True):
    """x with a x = b, of a triangle of a; `trans` 1 or "T": its transpose, 2 or "C": its adjoint."""
    a, b = _of_one_type(a, b)
    vector = b.ndim == a.ndim - 1
    b = b[..., None] if vector else b
    if trans in (2, "C"):
        a = jnp.conj(a)
    x = call("triangular_solve", a, b, True, lower, trans not in (0, "N"), unit_diagonal)
    return x[..., 0] if vector else x


def lu_factor(a, overwrite_a=False, check_finite=True):
    """L and U in one matrix, and the row that was exchanged in each step."""
    factors, pivots, _ = call("lu", float_of(a))
    return factors, pivots


def lu(a, permute_l=False, overwrite_a=False, check_finite=True):
    """P, L and U with P L U = a; with `permute_l` P L and U."""
    a = float_of(a)
    factors, _, order = call("lu", a)
    m, n = a.shape[-2:]
    k = min(m, n)
    lower = jnp.tril(factors[..., :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    p = jnp.equal(order[..., None, :], jnp.arange(m)[:, None]).astype(a.dtype)
    upper = jnp.triu(factors[..., :k, :])
    return (p @ lower, upper) if permute_l else (p, lower, upper)


def _rows_of(pivots, count):
    """Which rows stand where after exchanges, one after the other."""
    places = call("iota", pivots, [*pivots.shape[:-1], count], pivots.dtype, -1)

    def exchange(step, rows):
        other = jnp.take(pivots, step, axis=-1)[..., None]
        below = jnp.take_along_axis(rows, other, axis=-1)
        return jnp.where(places == step, below, jnp.where(places == other, jnp.take(rows, step, axis=-1)[..., None], rows))

    return fori_loop(0, pivots.shape[-1], exchange, places)


def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """x with a x = b by the result of lu_factor."""
    lu_and_piv, pivots = lu_and_piv
    b = float_of(b)
    vector = b.ndim == lu_and_piv.ndim - 1
    b = b[..., None] if vector else b
    rows = _rows_of(array_of(pivots), b.shape[-2])[..., None]
    if trans in (0, "N"):
        x = solve_triangular(lu_and_piv, solve_triangular(lu_and_piv, jnp.take_along_axis(b, rows, axis=-2), lower=True, unit_diagonal=True))
    else:
        x = solve_triangular(lu_and_piv, solve_triangular(lu_and_piv, b, trans=trans), trans=trans, lower=True, unit_diagonal=True)
        x = jnp.take_along_axis(x, jnp.argsort(rows, axis=-2), axis=-2)
    return x[..., 0] if vector else x


def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, debug=False, check_finite=True, assume_a="gen"):
    """x with a x = b; `assume_a` "pos" of a positive definite a by its factor."""
    return cho_solve(cho_factor(a, lower), b) if assume_a == "pos" else jnp.linalg.solve(a, b)


def expm(A, *, upper_triangular=False, max_squarings=16):
    """e^a of square matrices: Pade's approximant of degree 13 of a / 2^s, squared s times (Higham 2005)."""
    a = float_of(A)
    b = [64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0, 670442572800.0,
         33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0]  # fmt: skip
    b = [each / b[0] for each in b]
    size = jnp.max(jnp.sum(abs(a), axis=-2), axis=-1)[..., None, None]
    squarings = jnp.clip(jnp.ceil(jnp.log2(jnp.maximum(size, 1e-30) / 4.0)), 0.0, float(max_squarings))
    a = a * call("stop_gradient", jnp.exp2(-squarings)).astype(a.dtype)
    one = jnp.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4, a6 = a2 @ a2, a2 @ a2 @ a2
    u = a @ (a6 @ (a6 * b[13] + a4 * b[11] + a2 * b[9]) + a6 * b[7] + a4 * b[5] + a2 * b[3] + one * b[1])
    v = a6 @ (a6 * b[12] + a4 * b[10] + a2 * b[8]) + a6 * b[6] + a4 * b[4] + a2 * b[2] + one
    result = jnp.linalg.solve(v - u, v + u)
    for step in range(max_squarings):
        result = jnp.where(squarings > step, result @ result, result)
    return result


def block_diag(*parts):
    """A matrix with these along its diagonal."""
    parts = [jnp.atleast_2d(array_of(part)) for part in parts]
    width = sum(part.shape[1] for part in parts)
    rows, begin = [], 0
    for part in parts:
        rows.append(jnp.pad(part, [(0, 0), (begin, width - begin - part.shape[1])]))
        begin += part.shape[1]
    return jnp.concatenate(rows)


def expm_frechet(A, E, *, method=None, compute_expm=True):
    """e^A, and its derivative in the direction E; without `compute_expm` the latter alone."""
    from .._transforms import jvp

    A, E = _of_one_type(A, E)
    both = jvp(expm, (A,), (E,))
    return both if compute_expm else both[1]


def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """Q and R: all columns of Q (full), as many as R has rows (economic), or R alone, in a tuple (r)."""
    if pivoting:
        raise Error("qr: pivoting=True (allowed: False)")
    if mode not in ("full", "economic", "r"):
        raise Error(f"qr: mode is {mode!r} (allowed: full, economic, r)")
    if mode == "r":
        return (jnp.linalg.qr(a, "complete").R,)
    return tuple(jnp.linalg.qr(a, "complete" if mode == "full" else "reduced"))


def hessenberg(a, calc_q=False, overwrite_a=False, check_finite=True):
    """H = Q^H a Q with zeros below the first subdiagonal; with calc_q H and Q, which is unitary."""
    from .. import _lax_linalg

    packed, taus = _lax_linalg.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    zero = jnp.zeros_like(h[..., :1])  # in front, so that the first reflection changes nothing and the others stand below the diagonal
    return h, _lax_linalg.householder_product(jnp.concatenate([zero, packed[..., :-1]], -1), jnp.concatenate([zero[..., 0, :], taus], -1))


def qr_multiply(a, c, mode="right", pivoting=False, conjugate=False):
    """c Q, or with the mode left Q c, and R of a = Q R; with `conjugate` of the conjugate of Q."""
    if mode not in ("left", "right") or pivoting:
        raise Error(f"qr_multiply: mode is {mode!r}, pivoting {pivoting} (allowed: left or right, False)")
    q, r = jnp.linalg.qr(a)
    q = jnp.conj(q) if conjugate else q
    return (q @ c if mode == "left" else array_of(c) @ q), r


def eigh(a, b=None, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, check_finite=True):
    """Eigenvalues, ascending, and eigenvectors, in columns, of the mean of a and its adjoint, whatever `lower` says; those of a x = w b x with a
    positive definite b."""
    if b is None:
        w, v = jnp.linalg.eigh(a)
        return w if eigvals_only else (w, v)
    a, b = _of_one_type(a, b)
    factor = jnp.linalg.cholesky(b)
    half = solve_triangular(factor, a, lower=True)
    w, v = jnp.linalg.eigh(solve_triangular(factor, jnp.conj(half.mT), lower=True))
    return w if eigvals_only else (w, solve_triangular(factor, v, trans="C", lower=True))


def eigh_tridiagonal(d, e, *, eigvals_only=False, select="a", select_range=None, tol=None):
    """Eigenvalues and eigenvectors of a Hermitian matrix with the diagonal d and e below it: all, those from number select_range[0] to [1] ("i"), or
    those above and up to these bounds ("v", of arrays that are known)."""
    d, e = _of_one_type(d, e)
    if select not in ("a", "i", "v") or (select != "a") != (select_range is not None):
        raise Error(f"eigh_tridiagonal: select is {select!r}, select_range {select_range} (allowed: a without, i or v with a range)")
    n = d.shape[0]
    matrix = jnp.diag(d) + (jnp.diag(e, -1) + jnp.diag(jnp.conj(e), 1) if n > 1 else 0.0)
    w, v = jnp.linalg.eigh(matrix)
    first, last = 0, n
    if select == "i":
        first, last = select_range[0], select_range[1] + 1
    elif select == "v":
        first, last = (int(jnp.sum(w <= bound)) for bound in select_range)
    return w[first:last] if eigvals_only else (w[first:last], v[:, first:last])


def solve_sylvester(A, B, C, *, method=None, tol=None):
    """X with A X + X B = C, by one system of equations for all elements of X: for some dozens of rows and columns."""
    A, B = _of_one_type(A, B)
    A, C = _of_one_type(A, C)
    B, C = _of_one_type(B, C)
    A = A.astype(C.dtype)
    m, n = C.shape[-2:]
    if A.shape[-2:] != (m, m) or B.shape[-2:] != (n, n):
        raise Error(f"solve_sylvester: {A._type_text()}, {B._type_text()} and {C._type_text()} (allowed: [m,m], [n,n] and [m,n])")
    left = A[..., :, None, :, None] * jnp.eye(n, dtype=C.dtype)[:, None, :]
    right = jnp.eye(m, dtype=C.dtype)[:, None, :, None] * B.mT[..., None, :, None, :]
    system = (left + right).reshape(*jnp.broadcast_shapes(A.shape[:-2], B.shape[:-2]), m * n, m * n)
    return jnp.linalg.solve(system, C.reshape(*C.shape[:-2], m * n, 1)).reshape(C.shape)


def _adjoint(a):
    return jnp.conj(a.mT)


@custom_jvp
def _polar(a):
    u, s, vh = svd(a, full_matrices=False)
    return u @ vh, _adjoint(vh) * s[..., None, :] @ vh


@_polar.defjvp
def _(primals, tangents):
    """The tangent of u is skew within its columns; there it comes of a Sylvester equation, of which p is the matrix."""
    (a,), (da,) = primals, tangents
    u, p = _polar(a)
    w, v = jnp.linalg.eigh(p)
    inside = _adjoint(u) @ da
    turned = _adjoint(v) @ (inside - _adjoint(inside)) @ v
    skew = v @ (turned / (w[..., :, None] + w[..., None, :]).astype(a.dtype)) @ _adjoint(v)
    outside = _adjoint(jnp.linalg.solve(p, _adjoint(da - u @ inside)))
    return (u, p), (u @ skew + outside, inside - skew @ p)


def polar(a, side="right", *, method=None, eps=None, max_iterations=None):
    """u with orthonormal columns (or rows) and a positive semidefinite p, with u p = a, or on the left p u = a. Derivatives are those of full rank, if
    p is no larger than it."""
    if side not in ("right", "left"):
        raise Error(f"polar: side is {side!r} (allowed: right, left)")
    a = float_of(a)
    a = a if side == "right" else _adjoint(a)
    u, p = _polar(a) if a.shape[-2] >= a.shape[-1] else _polar.function(a)
    return (u, p) if side == "right" else (_adjoint(u), p)


_ROOT_STEPS, _CLOSE = 24, 1e-2


def sqrtm(A, blocksize=1):
    """The principal square root of square matrices, real of real ones, by Denman and Beavers' products (Higham 2008, 6.29) in f64. It is NaN where an
    eigenvalue is 0 or a negative number: there Schur's form would be needed, which is not here."""
    a = float_of(A)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise Error(f"sqrtm: {a._type_text()} (allowed: square matrices)")
    wide = a.astype(DType.c128 if is_complex(a.dtype) else DType.f64)
    n, one = a.shape[-1], jnp.eye(a.shape[-1], dtype=wide.dtype)
    error = lambda m: jnp.max(abs(m - one), axis=(-2, -1), keepdims=True)  # noqa: E731

    def step(_, state):
        m, x = state
        size = jnp.exp(-jnp.linalg.slogdet(m).logabsdet / (2 * n))[..., None, None]
        scale = call("stop_gradient", jnp.where(error(m) > _CLOSE, size, 1.0)).astype(m.dtype)
        m = m * (scale * scale)
        inverse = jnp.linalg.inv(m)
        return 0.5 * (one + 0.5 * (m + inverse)), 0.5 * scale * (x @ (one + inverse))

    m, x = fori_loop(0, _ROOT_STEPS, step, (wide, wide))
    return jnp.where(error(m) < 1e-6, x, jnp.nan).astype(a.dtype)
