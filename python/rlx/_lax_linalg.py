"""Functions of matrices by the names and arguments of jax.lax.linalg."""
from . import numpy as jnp
from ._control import scan
from ._core import Error
from .numpy._base import array_of, call, float_of
from .numpy.linalg import _of_one_type
from .scipy.linalg import _adjoint, _rows_of, schur as scipy_schur


def cholesky(x, *, symmetrize_input=True):
    """The lower factor of positive definite matrices."""
    return jnp.linalg.cholesky(x, symmetrize_input=symmetrize_input)


def cholesky_update(r_matrix, w_vector):
    """The upper factor of R^T R + w w^T, of an upper factor R with a positive diagonal."""
    r, w = _of_one_type(r_matrix, w_vector)
    updated = jnp.linalg.qr(jnp.concatenate([r, w[None, :]]), "r")
    return updated * jnp.where(jnp.diagonal(updated) < 0, -1.0, 1.0)[:, None]


def eigh(x, *, lower=True, symmetrize_input=True, sort_eigenvalues=True, subset_by_index=None):
    """Eigenvectors, in columns, and ascending eigenvalues of Hermitian matrices; without `symmetrize_input` one triangle is read. A subset: those from
    one number up to another."""
    w, v = jnp.linalg.eigh(x, None if symmetrize_input else "L" if lower else "U")
    first, last = subset_by_index or (0, w.shape[-1])
    return v[..., first:last], w[..., first:last]


def eig(x, *, compute_left_eigenvectors=True, compute_right_eigenvectors=True):
    """Eigenvalues, then the left and the right eigenvectors that are asked for, in columns. Programs call NumPy for it."""
    if not compute_left_eigenvectors and not compute_right_eigenvectors:
        return (jnp.linalg.eigvals(x),)
    w, v = jnp.linalg.eig(x)
    left = _adjoint(jnp.linalg.inv(v)) if compute_left_eigenvectors else v
    left = left / jnp.linalg.norm(left, axis=-2, keepdims=True)
    return w, *([left] if compute_left_eigenvectors else []), *([v] if compute_right_eigenvectors else [])


def schur(x, *, compute_schur_vectors=True):
    """T, and Z where it is asked for, of x = Z T Z^H, as rlx.scipy.linalg.schur."""
    t, z = scipy_schur(x)
    return (t, z) if compute_schur_vectors else (t,)


def _square(name, a):
    a = float_of(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise Error(f"{name}: {a._type_text()} (allowed: square matrices)")
    return a


def _reflection(x, k):
    """v, 0 before k and 1 there, and tau: the adjoint of I - tau v v^H makes of a vector x one that is real at k and 0 behind, as LAPACK's larfg."""
    rows = jnp.arange(x.shape[-1])
    size = jnp.max(jnp.where(rows >= k, jnp.abs(x), 0.0), -1, keepdims=True)  # squares of x itself may be infinite or 0
    size = jnp.where(size > 0, size, 1.0)
    x = x / size
    first = jnp.sum(jnp.where(rows == k, x, 0), -1, keepdims=True)
    rest = jnp.sum(jnp.where(rows > k, jnp.square(jnp.abs(x)), 0.0), -1, keepdims=True)
    stays = (rest == 0) & (first.imag == 0)
    length = jnp.sqrt(jnp.where(stays, 1.0, rest + jnp.square(jnp.abs(first))))
    beta = jnp.where(first.real < 0, length, -length).astype(x.dtype)
    v = jnp.where(rows == k, 1, jnp.where((rows > k) & ~stays, x / (first - beta), 0))
    return v, jnp.where(stays, 0, (beta - first) / beta)


def hessenberg(a):
    """H with zeros below the first subdiagonal, where those of a = Q H Q^H stand for Q, and the factors of these: see householder_product."""
    a = _square("hessenberg", a)
    n = a.shape[-1]

    def step(a, k):
        v, tau = _reflection(a[..., k], k + 1)
        v, tau = v[..., :, None], tau[..., None]
        a = a - jnp.conj(tau) * v * (_adjoint(v) @ a)
        return a - tau * (a @ v) * _adjoint(v), (v[..., 0], tau[..., 0, 0])

    h, (vectors, taus) = scan(step, a, jnp.arange(max(n - 1, 0)))
    vectors = jnp.concatenate([jnp.moveaxis(vectors, 0, -1), jnp.zeros((*a.shape[:-1], min(n, 1)), a.dtype)], -1)
    return jnp.triu(h, -1) + jnp.tril(vectors, -2), jnp.moveaxis(taus, 0, -1)


def householder_product(a, taus):
    """The first columns of the product of I - tau v v^H, whose vectors v stand below the diagonal of a, where they have 1."""
    a, taus = _of_one_type(a, taus)
    (m, n), count = a.shape[-2:], taus.shape[-1]
    vectors = jnp.tril(a[..., :count], -1) + jnp.eye(m, count, dtype=a.dtype)

    def step(q, reflection):
        v, tau = reflection[0][..., :, None], reflection[1][..., None, None]
        return q - tau * v * (_adjoint(v) @ q), None

    q = jnp.broadcast_to(jnp.eye(m, n, dtype=a.dtype), a.shape)
    return scan(step, q, (jnp.moveaxis(vectors, -1, 0), jnp.moveaxis(taus, -1, 0)), reverse=True)[0]


def tridiagonal(a, *, lower=True):
    """Of one triangle of a Hermitian matrix Q T Q^H: the matrix with Q in it, as of hessenberg, the diagonal of T, the one beside it, and the
    factors. Of the upper triangle all stands as if both axes were turned round."""
    a = _square("tridiagonal", a)
    if not lower:
        results = tridiagonal(jnp.flip(a, (-2, -1)))
        return (jnp.flip(results[0], (-2, -1)), *(jnp.flip(each, -1) for each in results[1:]))
    strict = jnp.tril(a, -1)
    packed, taus = hessenberg(strict + _adjoint(strict) + jnp.where(jnp.eye(a.shape[-1], dtype="bool"), a.real, 0).astype(a.dtype))
    return jnp.tril(packed) + jnp.triu(a, 1), jnp.diagonal(packed).real, jnp.diagonal(packed, -1).real, taus


def tridiagonal_solve(dl, d, du, b):
    """x with T x = b for each column of b, where T has the diagonals dl, d and du: dl[0] and the last of du do not count. Rows change places
    where the lower one has the larger element, as in LAPACK's gtsv."""
    given = [array_of(each) for each in (dl, d, du, b)]
    if len({each.shape for each in given[:3]}) > 1 or given[1].shape != given[3].shape[:-1]:
        raise Error(f"tridiagonal_solve: {', '.join(each._type_text() for each in given)} (allowed: [..., m] three times, [..., m, k])")
    dtype = jnp.result_type(*given)
    dl, d, du, b = [jnp.moveaxis(float_of(each.astype(dtype)), given[1].ndim - 1, 0) for each in given]
    dl, d, du = dl[..., None], d[..., None], du[..., None]
    zero = jnp.zeros_like(d[0])

    def eliminate(row, below):  # each: three elements, from the first that is not 0, and what stands right of the equation
        swaps = jnp.abs(below[0]) > jnp.abs(row[0])
        top, other = [[jnp.where(swaps, x, y) for x, y in zip(*pair)] for pair in ((below, row), (row, below))]
        rest = [x - other[0] / top[0] * y for x, y in zip(other, top)]
        return (rest[1], rest[2], zero, rest[3]), top

    last, tops = scan(eliminate, (d[0], du[0], zero, b[0]), (dl[1:], d[1:], du[1:], b[1:]))
    x = last[3] / last[0]

    def substitute(behind, row):
        x = (row[3] - row[1] * behind[0] - row[2] * behind[1]) / row[0]
        return (x, behind[0]), x

    before = scan(substitute, (x, jnp.zeros_like(x)), tops, reverse=True)[1]
    return jnp.moveaxis(jnp.concatenate([before, x[None]]), 0, -2)


def lu(x):
    """L and U in one matrix, the rows exchanged in each step, and where the rows of x stand then."""
    factors, pivots, rows = call("lu", float_of(x))
    return factors, pivots.astype("int32"), rows.astype("int32")


def lu_pivots_to_permutation(pivots, permutation_size):
    """Which rows stand where after the exchanges of `lu`."""
    return _rows_of(array_of(pivots), permutation_size)


def qr(x, *, pivoting=False, full_matrices=True):
    """Q and R; without `full_matrices` as many columns as rows of R."""
    if pivoting:
        raise Error("qr: pivoting is True (allowed: False)")
    return tuple(jnp.linalg.qr(x, "complete" if full_matrices else "reduced"))


def svd(x, *, full_matrices=True, compute_uv=True, subset_by_index=None):
    """U, s and V^H; without compute_uv s alone. A subset: the singular values from one number up to another."""
    if not compute_uv:
        s = jnp.linalg.svdvals(x)
        return s if subset_by_index is None else s[..., slice(*subset_by_index)]
    if subset_by_index is None:
        return tuple(jnp.linalg.svd(x, full_matrices))
    u, s, vh = jnp.linalg.svd(x, False)
    at = slice(*subset_by_index)
    return u[..., at], s[..., at], vh[..., at, :]


def symmetric_product(a_matrix, c_matrix, *, alpha=1.0, beta=0.0, symmetrize_output=False):
    """alpha A A^T + beta C, all of it."""
    a, c = _of_one_type(a_matrix, c_matrix)
    return alpha * (a @ a.mT) + beta * c


def triangular_solve(a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False):
    """x with a x = b (left_side) or x a = b, of a triangle of a, of its transpose or its conjugate; b may be a vector."""
    a, b = _of_one_type(a, b)
    a = jnp.conj(a) if conjugate_a else a
    vector = b.ndim == a.ndim - 1
    b = (b[..., :, None] if left_side else b[..., None, :]) if vector else b
    x = call("triangular_solve", a, b, left_side, lower, transpose_a, unit_diagonal)
    return (x[..., 0] if left_side else x[..., 0, :]) if vector else x
