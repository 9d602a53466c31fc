"""Samplers of rlx.random against the distributions of SciPy, by the test of Kolmogorov and Smirnov and by moments."""
import numpy as np
import pytest
import scipy.stats

import rlx
import rlx.numpy as jnp
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


DRAWS = [lambda key: random.normal(key, (3,)), lambda key: random.uniform(key, (3,)), random.split, lambda key: random.fold_in(key, 1), random.bits,
         lambda key: random.randint(key, (3,), 0, 9), random.gumbel, random.bernoulli, lambda key: random.categorical(key, np.zeros(3, np.float32)),
         lambda key: random.permutation(key, 5), lambda key: random.choice(key, 5), lambda key: rlx.nn.Linear(3, 4, key=key)]  # fmt: skip


@pytest.mark.parametrize("draw", DRAWS, ids=[str(i) for i in range(len(DRAWS))])
def test_what_is_no_key_is_told_how_to_make_one(draw):
    keys = [(7, "7"), ((2, 3), "a tuple"), (np.random.default_rng(0), "a Generator"), (np.int32(7), "i32[]"), (np.zeros(2, np.int32), "i32[2]"),
            (random.split(KEY, 3), "u32[3,2]")]  # fmt: skip
    for key, seen in keys:
        with pytest.raises(rlx.Error) as caught:
            draw(key)
        assert str(caught.value).startswith(f"rlx.random: the key is {seen} (allowed: ") and "rlx.random.key(0)" in str(caught.value)
    assert np.array_equal(rlx.tree.leaves(draw(KEY))[0], rlx.tree.leaves(draw(KEY.numpy()))[0])


@pytest.mark.parametrize("seed", [1.5, "a", None, 2**64, [1, 2]])
def test_a_key_is_made_of_an_integer(seed):
    with pytest.raises(rlx.Error) as caught:
        random.key(seed)
    assert str(caught.value) == f"key: {seed!r} (allowed: an integer of 0..2^64-1)"


def test_ends_of_a_range_may_be_anything_that_broadcasts():
    numbers = random.uniform(KEY, (2, 3), minval=1.0, maxval=3.0)
    for low, high in ((np.float32(1), np.float64(3)), (np.array(1), jnp.array(3.0)), ([1, 1, 1], np.full((2, 1), 3.0)), (jnp.ones(3), 3)):
        assert np.array_equal(random.uniform(KEY, (2, 3), minval=low, maxval=high), numbers)
    assert np.array_equal(rlx.jit(lambda low: random.uniform(KEY, (2, 3), minval=low, maxval=low + 2))(1.0), numbers)
    spread = random.uniform(KEY, (4000, 3), minval=np.arange(3), maxval=np.arange(3) * 11 + 1).numpy()
    assert all(scipy.stats.kstest(spread[:, i], scipy.stats.uniform(i, 10 * i + 1).cdf).pvalue > 1e-3 for i in range(3))
    with pytest.raises(rlx.Error, match=r"\[4\]"):
        random.uniform(KEY, (2, 3), minval=np.zeros(4))


def test_ends_of_integers_may_be_arrays():
    numbers = random.randint(KEY, (2, 3), -5, 2**31 - 1)
    for low, high in ((np.int64(-5), np.uint32(2**31 - 1)), ([-5] * 3, 2**31 - 1), (jnp.array(-5), jnp.full((2, 1), 2**31 - 1))):
        assert np.array_equal(random.randint(KEY, (2, 3), low, high), numbers)
    assert np.array_equal(rlx.jit(lambda high: random.randint(KEY, (2, 3), -5, high))(2**31 - 1), numbers)
    drawn = random.randint(KEY, (1000, 4), [0, 10, 5, 5], [3, 12, 5, 2]).numpy()
    assert [sorted(set(column)) for column in drawn.T.tolist()] == [[0, 1, 2], [10, 11], [5], [5]]
    whole = random.randint(KEY, (9,), 0, 2**32, "int64")
    assert np.array_equal(random.randint(KEY, (9,), jnp.zeros(1, "int64"), jnp.full(1, 2**33, "int64"), "int64"), whole)


def test_probabilities_may_be_arrays():
    p = np.float32([0.0, 0.25, 1.0])
    assert random.bernoulli(KEY, p).shape == (3,) and np.allclose(random.bernoulli(KEY, p, (20000, 3)).numpy().mean(0), p, atol=0.02)
    expected = random.bernoulli(KEY, 0.25, (9,))
    for given in (np.float64(0.25), np.full(9, 0.25), jnp.array(0.25)):
        assert np.array_equal(random.bernoulli(KEY, given, (9,)), expected)
    assert np.array_equal(rlx.jit(lambda p: random.bernoulli(KEY, p, (9,)))(0.25), expected)
    assert np.array_equal(random.choice(KEY, np.int64(5), (4,)), random.choice(KEY, 5, (4,)))
    assert np.array_equal(random.permutation(KEY, np.int64(5)), random.permutation(KEY, 5))
