"""Distributions and ranks of rlx.scipy.stats against SciPy; derivatives against finite differences."""
import numpy as np
import pytest
import scipy.stats

import rlx
from rlx.scipy import stats

RNG = np.random.default_rng(6)
X, P = np.linspace(-4, 4, 40), np.linspace(0.02, 0.98, 17)
CONTINUOUS = [("gumbel_r", (), X), ("gumbel_l", (), X), ("truncnorm", (-1.0, 2.0), X), ("truncnorm", (3.0, 9.0), X + 7), ("pareto", (2.0,), X + 3), ("norm", (), X * 5),
              ("expon", (), X * 9), ("logistic", (), X * 9)]  # fmt: skip


@pytest.mark.parametrize("name,shape,x", CONTINUOUS, ids=[f"{i}-{case[0]}" for i, case in enumerate(CONTINUOUS)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_distributions(name, shape, x):
    mine, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for function in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
        if name in ("pareto", "expon", "logistic") and function == "logcdf":
            continue  # by the share itself, which has fewer digits
        expected = getattr(theirs, function)(x, *shape, 0.3, 1.5)
        compiled = rlx.jit(lambda x: getattr(mine, function)(x, *shape, 0.3, 1.5))(x)  # noqa: B023
        assert np.allclose(compiled, expected, rtol=1e-8, atol=1e-10), function
    weights = RNG.normal(size=P.shape)
    total = lambda p: (mine.logpdf(p * 2 + 1.5, *shape) * weights).sum()
    slope = (float(total(P + 1e-6)) - float(total(P - 1e-6))) / 2e-6
    assert name == "truncnorm" or np.isclose(float(rlx.grad(total)(P).sum()), slope, rtol=1e-5)
    if name in ("gumbel_r", "gumbel_l", "pareto"):
        assert np.allclose(mine.ppf(P, *shape), theirs.ppf(P, *shape)) and np.allclose(mine.isf(P, *shape), theirs.isf(P, *shape))


def test_distributions_on_a_circle_and_of_a_power():
    for name, parameter, x in (("vonmises", 2.0, X[10:30]), ("wrapcauchy", 0.3, np.linspace(0, 6.28, 9)), ("gennorm", 1.7, X)):
        assert np.allclose(getattr(stats, name).logpdf(x, parameter), getattr(scipy.stats, name).logpdf(x, parameter))
    assert np.allclose(stats.gennorm.cdf(X, 1.7), scipy.stats.gennorm.cdf(X, 1.7))
    assert stats.wrapcauchy.logpdf(np.float64([-1, 7]), 0.3).tolist() == [-np.inf] * 2 and np.isnan(stats.wrapcauchy.pdf(1.0, 1.5).numpy())


def test_distributions_of_integers():
    k = np.arange(-1.0, 9)
    for name, shape in (("nbinom", (3.0, 0.4)), ("betabinom", (6.0, 2.0, 3.0))):
        for loc in (0, 1):
            assert np.allclose(getattr(stats, name).logpmf(k, *shape, loc=loc), getattr(scipy.stats, name).logpmf(k, *shape, loc), rtol=1e-9), name
    counts = RNG.multinomial(7, [0.2, 0.3, 0.5], 6).astype(np.int32)
    counts[0, 0] += 1  # these are not seven
    p = np.float64([0.2, 0.3, 0.5])
    assert np.allclose(stats.multinomial.logpmf(counts, np.int32(7), p), scipy.stats.multinomial.logpmf(counts, 7, p))
    assert np.allclose(stats.multinomial.pmf(counts, np.int32(7), p), scipy.stats.multinomial.pmf(counts, 7, p))


def test_distributions_of_vectors():
    alpha, a, mean = np.float64([1, 2, 3.5]), RNG.normal(size=(3, 3)), RNG.normal(size=3)
    x, cov, points = RNG.dirichlet(alpha, 5), a @ a.T + np.eye(3), RNG.normal(size=(5, 3))
    assert np.allclose(stats.dirichlet.logpdf(x.T, alpha), scipy.stats.dirichlet.logpdf(x.T, alpha))
    assert np.allclose(stats.dirichlet.pdf(x[0, :2], alpha), scipy.stats.dirichlet.pdf(x[0, :2], alpha))
    for args in ((points, mean, cov), (points[0], mean, cov), (points, mean, np.float64(2)), (np.float64(0.3), np.float64(0), np.float64(2))):
        assert np.allclose(stats.multivariate_normal.logpdf(*args), scipy.stats.multivariate_normal.logpdf(*args))
    gradient = rlx.jit(rlx.grad(lambda x: stats.multivariate_normal.logpdf(x, mean, cov).sum()))(points)
    assert np.allclose(gradient, -np.linalg.solve(cov, (points - mean).T).T)
    batch = rlx.vmap(stats.multivariate_normal.logpdf, in_axes=(None, None, 0))(points, mean, np.stack([cov, 2 * cov]))
    assert np.allclose(batch[1], scipy.stats.multivariate_normal.logpdf(points, mean, 2 * cov))


def test_ranks_modes_and_deviations_of_means():
    v, a = RNG.integers(0, 5, size=(4, 9)).astype(np.int32), RNG.normal(size=(4, 3))
    for method in ("average", "min", "max", "dense", "ordinal"):
        for axis in (None, 0, -1):
            assert np.array_equal(rlx.jit(lambda v: stats.rankdata(v, method, axis=axis))(v).numpy().ravel(), scipy.stats.rankdata(v, method, axis=axis).ravel())  # noqa: B023
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            seen, expected = stats.mode(v, axis, keepdims=keepdims), scipy.stats.mode(v, axis, keepdims=keepdims)
            assert np.array_equal(seen.mode, expected.mode) and np.array_equal(seen.count, expected.count) and seen.count.shape == np.shape(expected.count)
            assert np.allclose(stats.sem(a, axis, keepdims=keepdims), scipy.stats.sem(a, axis, keepdims=keepdims))
    a[0, 1] = np.nan
    assert np.allclose(stats.sem(a, nan_policy="omit"), scipy.stats.sem(a, nan_policy="omit"))
    assert np.allclose(stats.rankdata(a, axis=0), scipy.stats.rankdata(a, axis=0), equal_nan=True)
    for call in (lambda: stats.rankdata(v, "best"), lambda: stats.mode(v, nan_policy="omit"), lambda: stats.sem(a, nan_policy="raise")):
        with pytest.raises(rlx.Error, match="allowed: "):
            call()


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("method", [None, "silverman", 0.4, lambda kde: 0.7])
@pytest.mark.parametrize("weighted", [False, True])
def test_densities_of_points(d, method, weighted):
    rng = np.random.default_rng(11)
    data, other, points = rng.normal(size=(d, 30)), rng.normal(size=(d, 20)), rng.normal(size=(d, 7)) * 2
    weights = rng.uniform(0.1, 1, 30) if weighted else None
    mine, theirs = stats.gaussian_kde(data, method, weights), scipy.stats.gaussian_kde(data, method, weights)
    for run in (lambda f: f, rlx.jit):
        assert np.allclose(run(lambda kde, x: kde(x))(mine, points), theirs(points)) and np.allclose(run(lambda kde, x: kde.logpdf(x))(mine, points), theirs.logpdf(points))
    assert np.allclose(mine.covariance, theirs.covariance) and np.allclose(mine.inv_cov, theirs.inv_cov) and (mine.d, mine.n) == (d, 30) and np.allclose(mine.neff, theirs.neff)
    cov = np.eye(d) * 0.5
    assert np.allclose(mine.integrate_gaussian(points[:, 0], cov), theirs.integrate_gaussian(points[:, 0], cov))
    assert np.allclose(mine.integrate_kde(stats.gaussian_kde(other)), theirs.integrate_kde(scipy.stats.gaussian_kde(other)))
    drawn = mine.resample(rlx.random.key(0), (4000,)).numpy()
    assert drawn.shape == (d, 4000) and np.allclose(drawn.mean(1), np.average(data, axis=1, weights=weights), atol=0.1)
    if d == 1:
        assert np.allclose(mine.integrate_box_1d(-0.3, 1.2), theirs.integrate_box_1d(-0.3, 1.2))
    step = np.zeros_like(points)
    step[0, 2] = 1e-6
    slope = rlx.jit(rlx.grad(lambda x: mine.logpdf(x).sum()))(points)
    assert np.isclose(slope[0, 2].item(), (theirs.logpdf(points + step) - theirs.logpdf(points - step)).sum() / 2e-6, rtol=1e-5)
    assert np.allclose(rlx.vmap(lambda x: mine(x[:, None])[0], in_axes=1)(points), theirs(points))
    with pytest.raises(rlx.Error, match=f"allowed: {d} rows"):
        mine(np.zeros((d + 1, 4)))
