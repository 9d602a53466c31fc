"""Functions of matrices by the names and arguments of jax.lax.linalg."""
from . import numpy as jnp
from ._core import Error
from .numpy._base import array_of, call, float_of
from .numpy.linalg import _of_one_type
from .scipy.linalg import _rows_of


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
