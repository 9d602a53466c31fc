"""Samplers of rlx.random against the distributions of SciPy, by the test of Kolmogorov and Smirnov and by moments."""
import numpy as np
import pytest
import scipy.stats

import rlx
from rlx import random

KEY, MANY = random.key(3), (20000,)
SAMPLERS = [("wald", (0.3,), scipy.stats.invgauss(0.3)), ("wald", (20.0,), scipy.stats.invgauss(20.0)), ("generalized_normal", (1.0,), scipy.stats.gennorm(1.0)),
            ("generalized_normal", (3.5,), scipy.stats.gennorm(3.5)), ("pareto", (2.5,), scipy.stats.pareto(2.5)), ("rayleigh", (1.5,), scipy.stats.rayleigh(scale=1.5)),
            ("maxwell", (), scipy.stats.maxwell), ("chisquare", (3.0,), scipy.stats.chi2(3)), ("t", (4.0,), scipy.stats.t(4)), ("f", (4.0, 7.0), scipy.stats.f(4, 7)),
            ("weibull_min", (1.5, 0.8), scipy.stats.weibull_min(0.8, scale=1.5))]  # fmt: skip


@pytest.mark.parametrize("name,parameters,expected", SAMPLERS, ids=[f"{i}-{case[0]}" for i, case in enumerate(SAMPLERS)])
def test_samples_have_their_distribution(name, parameters, expected):
    sample = rlx.jit(lambda key: getattr(random, name)(key, *parameters, shape=MANY))(KEY)
    assert sample.dtype == rlx.float32 and scipy.stats.kstest(sample.numpy().astype(np.float64), expected.cdf).pvalue > 1e-3


def test_samples_of_both_signs():
    x = random.double_sided_maxwell(KEY, 1.0, 2.0, MANY).numpy()
    assert scipy.stats.kstest(abs(x - 1) / 2, scipy.stats.maxwell.cdf).pvalue > 1e-3 and abs((x > 1).mean() - 0.5) < 0.02


def test_counts_of_draws():
    p = np.float32([0.2, 0.5, 0.3])
    counts = rlx.jit(lambda key, p: random.multinomial(key, 10, p, shape=(5000, 3)))(KEY, p).numpy()
    assert (counts.sum(-1) == 10).all() and np.allclose(counts.mean(0), 10 * p, atol=0.1)
    assert np.allclose(np.cov(counts.T), 10 * (np.diag(p) - np.outer(p, p)), atol=0.15)
    some = random.multinomial(KEY, np.int32([4, 7]), np.float32([[0.5, 0.5], [0, 1]]), dtype="int32")
    assert some.numpy().sum(-1).tolist() == [4, 7] and some[1].tolist() == [0, 7] and some.dtype == rlx.int32
    assert random.key_data(KEY).tolist() == KEY.tolist() == random.wrap_key_data(random.clone(KEY)).tolist()
