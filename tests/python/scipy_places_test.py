"""rlx.scipy.optimize, interpolate and cluster against SciPy, and derivatives against finite differences."""
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.interpolate
import scipy.optimize

import rlx
import rlx.numpy as jnp
from rlx.scipy import cluster, interpolate, optimize

RNG = np.random.default_rng(3)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def matyas(x):
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


@pytest.mark.parametrize("fun,x0", [(rosenbrock, np.zeros(2)), (rosenbrock, np.full(5, -1.2)), (himmelblau, np.ones(2)), (matyas, np.array([3.0, -2]))])
def test_least_values(fun, x0):
    expected = scipy.optimize.minimize(fun, x0, method="BFGS", options={"gtol": 1e-8})
    for run in (lambda f: f, rlx.jit):
        seen = run(lambda x: optimize.minimize(fun, x, method="BFGS", options={"gtol": 1e-8}))(x0)
        assert seen.success and seen.status == 0 and np.allclose(seen.x, expected.x, atol=1e-5) and abs(seen.fun - expected.fun) < 1e-9
        assert np.allclose(seen.jac, 0, atol=1e-8) and 0 < seen.nit < 100 and seen.nfev == seen.njev > seen.nit
    assert np.allclose(optimize.minimize(fun, x0.astype(np.float32), method="BFGS").x, expected.x, atol=2e-3)


def test_the_inverse_of_the_curvature_of_a_parabola():
    a = RNG.normal(size=(4, 4))
    a = a @ a.T + np.eye(4)
    found = optimize.minimize(lambda x, a: 0.5 * x @ a @ x, jnp.ones(4, "float64"), (a,), method="bfgs", tol=1e-10)
    assert np.allclose(found.hess_inv, np.linalg.inv(a), atol=1e-2)
    starts = RNG.normal(size=(3, 2))
    many = rlx.jit(rlx.vmap(lambda x: optimize.minimize(himmelblau, x, method="BFGS")))(starts)
    assert many.success.all() and np.allclose(many.x, [optimize.minimize(himmelblau, x, method="BFGS").x.numpy() for x in starts], atol=1e-5)


def test_when_nothing_is_found():
    assert optimize.minimize(rosenbrock, np.zeros(3), method="BFGS", options={"maxiter": 3})[1:3] == (False, 1)
    assert optimize.minimize(lambda x: x.sum(), np.zeros(3), method="BFGS")[1:3] == (False, 3)  # without an end
    with pytest.raises(rlx.Error, match="method is 'CG'"):
        optimize.minimize(rosenbrock, np.zeros(3), method="CG")
    with pytest.raises(rlx.Error, match="a vector"):
        optimize.minimize(rosenbrock, np.zeros((3, 1)), method="BFGS")


GRID = (np.array([0.0, 1, 2.5, 4]), np.array([-1.0, 0, 0.5]))
POINTS = np.concatenate([RNG.uniform([-0.5, -1.4], [4.5, 0.9], (40, 2)), [[0, -1], [4, 0.5], [1, 0], [2.5, 0.5]]])


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, 7.0, None])
@pytest.mark.parametrize("rest", [(), (3,)])
def test_values_on_a_grid(method, fill, rest):
    values = RNG.normal(size=(4, 3, *rest))
    expected = scipy.interpolate.RegularGridInterpolator(GRID, values, method, bounds_error=False, fill_value=fill)(POINTS)
    mine = interpolate.RegularGridInterpolator(GRID, values, method, fill_value=fill)
    for run in (mine, rlx.jit(mine), rlx.vmap(lambda x: mine(x)), lambda x: rlx.jit(lambda f, x: f(x))(mine, x)):
        assert np.allclose(run(POINTS), expected, equal_nan=True)
    assert np.allclose(mine((POINTS[:, 0], POINTS[:, 1])), expected, equal_nan=True) and np.allclose(mine(POINTS.reshape(4, 11, 2)).reshape(44, *rest), expected, equal_nan=True)


def test_slopes_between_values_on_a_grid():
    values, x, h = RNG.normal(size=(4, 3)), np.array([1.3, 0.2]), 1e-6
    of = lambda x, values: interpolate.RegularGridInterpolator(GRID, values)(x[None])[0]
    theirs = scipy.interpolate.RegularGridInterpolator(GRID, values)
    expected = [(theirs(x + h * each) - theirs(x - h * each))[0] / (2 * h) for each in np.eye(2)]
    by_x, by_values = rlx.jit(rlx.grad(of, argnums=(0, 1)))(x, values)
    assert np.allclose(by_x, expected) and np.allclose((by_values * values).sum(), theirs(x)) and np.count_nonzero(by_values) == 4
    line = interpolate.RegularGridInterpolator(GRID[:1], values[:, 0])
    assert np.allclose(line(np.array([0.5, 3])), np.interp([0.5, 3], GRID[0], values[:, 0]))
    for call, text in ((lambda: interpolate.RegularGridInterpolator(GRID, values.T), "points for values of f64.3,4"), (lambda: theirs_of(values, "cubic"), "method is 'cubic'"),
                       (lambda: interpolate.RegularGridInterpolator(GRID, values)(np.zeros((5, 3))), "allowed: 2 on the last axis")):  # fmt: skip
        with pytest.raises(rlx.Error, match=text):
            call()


def theirs_of(values, method):
    return interpolate.RegularGridInterpolator(GRID, values, method)


def test_nearest_codes():
    rows, codes = RNG.normal(size=(20, 3)), RNG.normal(size=(5, 3))
    for obs, book in ((rows, codes), (rows[:, 0], codes[:, 0]), (codes, codes)):
        expected = scipy.cluster.vq.vq(obs, book)
        for run in (cluster.vq.vq, rlx.jit(cluster.vq.vq)):
            code, distance = run(obs, book)
            assert np.array_equal(code, expected[0]) and np.allclose(distance, expected[1])
    slope = rlx.grad(lambda obs: cluster.vq.vq(obs, codes)[1].sum())
    away = rows - codes[scipy.cluster.vq.vq(rows, codes)[0]]
    assert np.allclose(slope(rows), away / np.linalg.norm(away, axis=1, keepdims=True)) and np.array_equal(slope(codes), np.zeros_like(codes))
    with pytest.raises(rlx.Error, match="two matrices, or two vectors"):
        cluster.vq.vq(rows, codes[0])
