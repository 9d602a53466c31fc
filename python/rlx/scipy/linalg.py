"""Functions of scipy.linalg over rlx.Array, of the last two axes."""
from .. import numpy as jnp
from .._control import fori_loop
from ..numpy._base import array_of, call, float_of
from ..numpy.linalg import _of_one_type, det, eigh, inv, norm, pinv, qr, svd  # noqa: F401: SciPy has them, too


def cholesky(a, lower=False):
    """The upper factor of a positive definite matrix, or the lower one."""
    return jnp.linalg.cholesky(a, upper=not lower)


def cho_factor(a, lower=False):
    """The factor of cholesky, and which it is."""
    return cholesky(a, lower), lower


def cho_solve(factor, b):
    """x with a x = b by the result of cho_factor."""
    c, lower = factor
    return solve_triangular(c, solve_triangular(c, b, trans=0 if lower else 2, lower=lower), trans=2 if lower else 0, lower=lower)


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False):
    """x with a x = b, of a triangle of a; `trans` 1 or "T": its transpose, 2 or "C": its adjoint."""
    a, b = _of_one_type(a, b)
    vector = b.ndim == a.ndim - 1
    b = b[..., None] if vector else b
    if trans in (2, "C"):
        a = jnp.conj(a)
    x = call("triangular_solve", a, b, True, lower, trans not in (0, "N"), unit_diagonal)
    return x[..., 0] if vector else x


def lu_factor(a):
    """L and U in one matrix, and the row that was exchanged in each step."""
    factors, pivots, _ = call("lu", float_of(a))
    return factors, pivots


def lu(a, permute_l=False):
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


def lu_solve(factors, b, trans=0):
    """x with a x = b by the result of lu_factor."""
    factors, pivots = factors
    b = float_of(b)
    vector = b.ndim == factors.ndim - 1
    b = b[..., None] if vector else b
    rows = _rows_of(array_of(pivots), b.shape[-2])[..., None]
    if trans in (0, "N"):
        x = solve_triangular(factors, solve_triangular(factors, jnp.take_along_axis(b, rows, axis=-2), lower=True, unit_diagonal=True))
    else:
        x = solve_triangular(factors, solve_triangular(factors, b, trans=trans), trans=trans, lower=True, unit_diagonal=True)
        x = jnp.take_along_axis(x, jnp.argsort(rows, axis=-2), axis=-2)
    return x[..., 0] if vector else x


def solve(a, b, lower=False, assume_a="gen"):
    """x with a x = b; `assume_a` "pos" of a positive definite a by its factor."""
    return cho_solve(cho_factor(a, lower), b) if assume_a == "pos" else jnp.linalg.solve(a, b)


def expm(a):
    """e^a of square matrices: Pade's approximant of degree 13 of a / 2^s, squared s times (Higham 2005); s is at most 16."""
    a = float_of(a)
    b = [64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0, 670442572800.0,
         33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0]  # fmt: skip
    b = [each / b[0] for each in b]
    size = jnp.max(jnp.sum(abs(a), axis=-2), axis=-1)[..., None, None]
    squarings = jnp.clip(jnp.ceil(jnp.log2(jnp.maximum(size, 1e-30) / 4.0)), 0.0, 16.0)
    a = a * call("stop_gradient", jnp.exp2(-squarings)).astype(a.dtype)
    one = jnp.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4, a6 = a2 @ a2, a2 @ a2 @ a2
    u = a @ (a6 @ (a6 * b[13] + a4 * b[11] + a2 * b[9]) + a6 * b[7] + a4 * b[5] + a2 * b[3] + one * b[1])
    v = a6 @ (a6 * b[12] + a4 * b[10] + a2 * b[8]) + a6 * b[6] + a4 * b[4] + a2 * b[2] + one
    result = jnp.linalg.solve(v - u, v + u)
    for step in range(16):
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


def toeplitz(c, r=None):
    """The matrix whose diagonals are constant: its first column and row."""
    c = array_of(c).reshape(-1)
    r = jnp.conj(c) if r is None else array_of(r).reshape(-1)
    values = jnp.concatenate([c[::-1], r[1:]])
    return values[jnp.arange(c.shape[0])[::-1][:, None] + jnp.arange(r.shape[0])[None, :]]
