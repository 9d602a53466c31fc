"""Solutions of equations with derivatives: lax.custom_root, lax.custom_linear_solve, scipy.sparse.linalg. Expected are NumPy's solutions, those of
rlx.numpy.linalg.solve, and derivatives of the formulas on paper."""
import numpy as np
import pytest

import rlx
import rlx.numpy as jnp
from rlx import lax
from rlx.scipy.sparse import linalg

RNG = np.random.default_rng(5)
A, b = RNG.normal(size=(6, 6)), RNG.normal(size=6)
SPD, GENERAL, C = A @ A.T + np.eye(6), A + 4 * np.eye(6), A + 1j * RNG.normal(size=(6, 6))
METHODS = [("cg", SPD), ("bicgstab", GENERAL), ("gmres", GENERAL)]


@pytest.mark.parametrize("name,matrix", METHODS, ids=[case[0] for case in METHODS])
def test_iterations_solve_and_their_derivatives_are_those_of_the_equation(name, matrix):
    mine = lambda matrix, b: getattr(linalg, name)(0.5 * (matrix + matrix.T) if name == "cg" else matrix, b, tol=1e-11)[0]
    theirs = lambda matrix, b: jnp.linalg.solve(0.5 * (matrix + matrix.T) if name == "cg" else matrix, b)
    cubes = lambda solution: lambda matrix, b: (solution(matrix, b) ** 3.0).sum()
    assert np.allclose(mine(matrix, b), np.linalg.solve(matrix, b))
    assert np.allclose(rlx.vmap(mine, in_axes=(None, 0))(matrix, np.stack([b, 2 * b]))[1], np.linalg.solve(matrix, 2 * b))
    for seen, expected in zip(*[rlx.jit(rlx.grad(cubes(solution), argnums=(0, 1)))(matrix, b) for solution in (mine, theirs)]):
        assert np.allclose(seen, expected, rtol=1e-6, atol=1e-9)
    scaled = lambda solution: lambda s: cubes(solution)(matrix * s, b * s * s * s)
    s = np.float64(1.3)
    assert np.isclose(*[float(rlx.jvp(scaled(solution), (s,), (s,))[1]) for solution in (mine, theirs)], rtol=1e-6)
    assert np.isclose(*[float(rlx.grad(rlx.grad(scaled(solution)))(s)) for solution in (mine, theirs)], rtol=1e-6)


def test_iterations_take_functions_trees_guesses_and_complex_numbers():
    tree = {"a": b, "b": np.float64(3)}
    solution = linalg.cg(lambda v: {"a": jnp.asarray(SPD) @ v["a"], "b": v["b"] * 2}, tree, tol=1e-10)[0]
    assert np.allclose(solution["a"], np.linalg.solve(SPD, b)) and np.isclose(float(solution["b"]), 1.5)
    gradient = rlx.grad(lambda b: linalg.cg(lambda v: jnp.asarray(SPD) @ v, b, tol=1e-11)[0].sum())(b)
    assert np.allclose(gradient, np.linalg.solve(SPD, np.ones(6)))
    for name, matrix in (("cg", C @ C.conj().T + np.eye(6)), ("bicgstab", C), ("gmres", C)):
        assert np.allclose(getattr(linalg, name)(matrix, b + 1j, tol=1e-10, maxiter=500)[0], np.linalg.solve(matrix, b + 1j), atol=1e-7)
    near = np.diag(1 / np.diag(SPD))
    for name in ("cg", "bicgstab", "gmres"):
        seen = getattr(linalg, name)(SPD, b, x0=np.ones(6), tol=1e-10, M=near)[0]
        assert np.allclose(seen, np.linalg.solve(SPD, b)), name
    assert np.allclose(linalg.gmres(SPD, b, tol=1e-10, restart=3, maxiter=400)[0], np.linalg.solve(SPD, b))
    assert np.allclose(linalg.gmres(np.eye(4), b[:4])[0], b[:4]) and not np.allclose(linalg.cg(SPD, b, maxiter=1)[0], np.linalg.solve(SPD, b))
    for arguments in ((A[:3], b), (SPD, b, np.ones(5))):
        with pytest.raises(rlx.Error, match="allowed: (a square matrix|as b)"):
            linalg.cg(*arguments)


def by_matrix(matvec, b):
    return jnp.linalg.solve(rlx.jacfwd(matvec)(b), b)


def test_linear_solutions_with_a_solver_of_ones_own():
    matrix = jnp.asarray(GENERAL)
    total = lambda s: (lax.custom_linear_solve(lambda v: (matrix * s) @ v, jnp.asarray(b) * s * s * s, by_matrix) ** 2).sum()
    expected = (np.linalg.solve(GENERAL, b) ** 2).sum()  # times s^4
    s = jnp.asarray(1.5, "float64")
    assert np.isclose(float(total(s)), 1.5**4 * expected) and np.isclose(float(rlx.jit(rlx.grad(total))(s)), 4 * 1.5**3 * expected)
    assert np.isclose(float(rlx.grad(rlx.grad(total))(s)), 12 * 1.5**2 * expected)
    with_more = lambda b: lax.custom_linear_solve(lambda v: matrix @ v, b, lambda f, b: (by_matrix(f, b), 7), lambda f, b: (by_matrix(f, b), 8), has_aux=True)
    assert with_more(jnp.asarray(b))[1] == 7
    assert np.allclose(rlx.grad(lambda b: with_more(b)[0].sum())(b), np.linalg.solve(GENERAL.T, np.ones(6)))


def test_roots_have_the_derivatives_of_their_equation():
    newton = lambda f, x: rlx.fori_loop(0, 60, lambda _, x: x - f(x) / (3 * x * x + 1), x)
    root = lambda a: lax.custom_root(lambda x: x**3 + x - a * a, jnp.asarray(1.0, "float64"), newton, lambda g, y: y / g(jnp.ones_like(y)))
    a = jnp.asarray(2.0, "float64")
    x = float(root(a))
    first = 4 / (3 * x * x + 1)
    assert np.isclose(x**3 + x, 4) and np.isclose(float(rlx.jit(rlx.grad(root))(a)), first)
    assert np.isclose(float(rlx.grad(rlx.grad(root))(a)), (2 - 6 * x * first * first) / (3 * x * x + 1))
    assert np.allclose(rlx.vmap(rlx.grad(root))(np.array([2.0, 2.0])), first)
