"""Iterative solutions of linear equations, as jax.scipy.sparse.linalg has them: of a matrix or a function, and vectors that are trees."""
import functools
import operator

from ... import _trees
from ... import numpy as jnp
from ..._control import while_loop
from ..._core import Error
from ..._solvers import linear_solution
from ..._transforms import stop_gradient
from ...numpy._base import array_of, float_of

_map = _trees.map
_add, _sub = functools.partial(_map, operator.add), functools.partial(_map, operator.sub)


def _times(factor, tree):
    return _map(lambda x: x * factor.astype(x.dtype), tree)


def _dot(x, y):
    """The sum over all leaves of conj(x) y."""
    return sum(_trees.leaves(_map(lambda a, b: (jnp.conj(a) * b).sum(), x, y)))


def _square(x):
    return sum(_trees.leaves(_map(lambda a: (jnp.real(a) ** 2 + jnp.imag(a) ** 2).sum(), x)))


def _map_of(matrix):
    """A linear map of parameters and x, and its parameters."""
    if callable(matrix):
        return lambda _, x: matrix(x), ()
    matrix = array_of(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise Error(f"a linear map is {matrix._type_text()} (allowed: a square matrix, or a function)")
    return lambda matrix, x: matrix @ x, matrix


def _solution(run, A, b, x0, tol, atol, maxiter, M, symmetric):
    """run(A, b, x0, bound of the square of the residual's length, maxiter, M), with derivatives."""
    b = _map(float_of, b)
    x0 = _map(jnp.zeros_like, b) if x0 is None else _map(array_of, x0)
    if _trees.structure(x0) != _trees.structure(b) or [x.shape for x in _trees.leaves(x0)] != [x.shape for x in _trees.leaves(b)]:
        raise Error(f"x0 is {_trees.structure(x0)} of {[x.shape for x in _trees.leaves(x0)]} (allowed: as b, {[x.shape for x in _trees.leaves(b)]})")
    most = 10 * sum(x.size for x in _trees.leaves(b)) if maxiter is None else maxiter
    x0 = _map(stop_gradient, x0)
    near, its = (lambda _, x: x, ()) if M is None else _map_of(M)
    its = _map(stop_gradient, its)

    def solve(matvec, b):
        bound = jnp.maximum(tol**2 * _square(b), atol**2)
        return run(matvec, b, x0, bound, most, lambda x: near(its, x))

    return linear_solution(*_map_of(A), b, solve, solve, symmetric)[0], None


def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """x with A x = b of a Hermitian positive definite A by conjugate gradients, until |b - A x| <= max(tol |b|, atol), and None. M is near A's
    inverse."""
    return _solution(_cg, A, b, x0, tol, atol, maxiter, M, True)


def _cg(A, b, x, bound, most, M):
    r = _sub(b, A(x))
    z = M(r)

    def goes_on(state):
        return (_square(state[1]) > bound) & (state[4] < most)

    def step(state):
        x, r, gamma, p, k = state
        Ap = A(p)
        alpha = gamma / _dot(p, Ap)
        x, r = _add(x, _times(alpha, p)), _sub(r, _times(alpha, Ap))
        z = M(r)
        following = _dot(r, z)
        return x, r, following, _add(z, _times(following / gamma, p)), k + 1

    return while_loop(goes_on, step, (x, r, _dot(r, z), z, array_of(0)))[0]


def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """x with A x = b of any square A by stabilised biconjugate gradients (van der Vorst 1992), and None; as cg."""
    return _solution(_bicgstab, A, b, x0, tol, atol, maxiter, M, False)


def _quotient(x, y):
    """x / y, 0 where both broke down."""
    return jnp.where(jnp.equal(y, 0), 0, x / jnp.where(jnp.equal(y, 0), 1, y)).astype(x.dtype)


def _bicgstab(A, b, x, bound, most, M):
    r = start = _sub(b, A(x))
    one, none = jnp.ones_like(_dot(r, r)), _map(jnp.zeros_like, r)

    def goes_on(state):
        return (_square(state[1]) > bound) & (state[7] < most)

    def step(state):
        x, r, alpha, omega, rho, p, q, k = state
        following = _dot(start, r)
        beta = _quotient(following, rho) * _quotient(alpha, omega)
        p = _add(r, _times(beta, _sub(p, _times(omega, q))))
        toward = M(p)
        q = A(toward)
        alpha = _quotient(following, _dot(start, q))
        s = _sub(r, _times(alpha, q))
        beside = M(s)
        t = A(beside)
        omega = _quotient(_dot(t, s), _dot(t, t))
        x = _add(x, _add(_times(alpha, toward), _times(omega, beside)))
        return x, _sub(s, _times(omega, t)), alpha, omega, following, p, q, k + 1

    return while_loop(goes_on, step, (x, r, one, one, one, none, none, array_of(0)))[0]


def gmres(A, b, x0=None, *, tol=1e-5, atol=0.0, restart=20, maxiter=None, M=None, solve_method="batched"):
    """x with A x = b of any square A by generalised minimal residuals, begun anew after `restart` steps, and None; as cg. `solve_method` changes
    nothing."""
    run = lambda A, b, x, bound, most, M: _gmres(A, b, x, bound, most, M, restart)
    return _solution(run, A, b, x0, tol, atol, maxiter, M, False)


def _gmres(A, b, x, bound, most, M, restart):
    from ...flatten_util import ravel_pytree

    flat, unravel = ravel_pytree(b)
    steps = min(restart, flat.size)

    def goes_on(state):
        return (_square(_sub(b, A(state[0]))) > bound) & (state[1] < most)

    def again(state):
        x, k = state
        residual = ravel_pytree(M(_sub(b, A(x))))[0]
        basis, images = _krylov(lambda v: ravel_pytree(M(A(unravel(v))))[0], residual, steps)
        q, r = jnp.linalg.qr(images)  # the combination of the basis whose image is nearest to the residual
        weights = _back(r, jnp.conj(q).T @ residual)
        return _add(x, unravel(basis @ weights)), k + 1

    return while_loop(goes_on, again, (x, array_of(0)))[0]


def _krylov(function, v, steps):
    """Orthonormal vectors that v and `function` of it, again and again, span, and what `function` makes of them: both as columns."""
    size = jnp.linalg.norm(v)
    basis = [v / jnp.where(size > 0, size, 1)]
    images = []
    for _ in range(steps):
        image = function(basis[-1])
        images.append(image)
        for _ in range(2):  # Gram and Schmidt, twice for rounding
            for each in basis:
                image = image - each * (jnp.conj(each) * image).sum()
        size, whole = jnp.linalg.norm(image), jnp.linalg.norm(images[-1])
        basis.append(jnp.where(size > 1e-6 * whole, image / jnp.where(size > 0, size, 1), 0))
    return jnp.stack(basis[:steps], -1), jnp.stack(images, -1)


def _back(r, y):
    """r^-1 y of an upper triangle, 0 where its diagonal is."""
    diagonal = jnp.diagonal(r)
    none = abs(diagonal) <= 1e-6 * jnp.max(abs(diagonal))
    safe = r + jnp.diag(jnp.where(none, 1 - diagonal, 0).astype(r.dtype))
    from ..linalg import solve_triangular

    return solve_triangular(safe, jnp.where(none, 0, y).astype(r.dtype))
