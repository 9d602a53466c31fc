"""rlx.scipy, rlx.nn's functions and rlx.random against SciPy, and derivatives against finite differences in f64."""
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import rlx
import rlx.numpy as jnp
from rlx import lax, nn
from rlx.scipy import linalg, special, stats

X = np.linspace(-4.3, 4.1, 43)
P = np.linspace(0.02, 0.98, 33)
POSITIVE = np.linspace(0.05, 12, 41)
A, B = np.meshgrid(np.float64([0.3, 1, 2.5, 7]), np.float64([0.5, 1.2, 4]))

ELEMENTS = [("gammaln", (POSITIVE,)), ("gamma", (X[::2],)), ("gammasgn", (X,)), ("factorial", (POSITIVE,)), ("comb", (A + 3, B)), ("poch", (A, B)), ("betaln", (A, B)),
            ("beta", (A, B)), ("betainc", (A, B, 0.4 + 0 * A)), ("gammainc", (A, B)), ("gammaincc", (A, B)), ("zeta", (A + 1.5, B)), ("polygamma", (2, POSITIVE)),
            ("digamma", (POSITIVE,)), ("erf", (X,)), ("erfc", (X,)), ("erfinv", (P * 2 - 1,)), ("expit", (X,)), ("logit", (P,)), ("xlogy", (A, B)), ("xlogy", (0.0, P)),
            ("xlog1py", (A, B)), ("entr", (X,)), ("rel_entr", (A, B)), ("kl_div", (A, B)), ("boxcox", (A, B)), ("boxcox", (POSITIVE, 0.0)), ("boxcox1p", (A, B)), ("ndtr", (X,)),
            ("log_ndtr", (X * 9,)), ("ndtri", (P,)), ("ndtri", (np.float64([1e-30, 1e-9, 0.5, 0, 1, 1 - 1e-9]),)), ("i0", (X,)), ("i0e", (X,)), ("i1", (X,)), ("i1e", (X,)),
            ("erfcx", (X,)), ("softmax", (A,)), ("log_softmax", (A,)), ("betaln", (np.float64([1e38, 1e-30, 1e4, 100, 1e4, 1e5, 1000]), np.float64([2, 1e4, -0.5, 100, 1e4, 1e12, 1001]))),
            ("kl_div", (np.float64([np.nan, 1, -1, -1, 0, 0]), np.float64([1, np.nan, np.nan, 2, -np.inf, 1]))), ("gammasgn", (np.float64([np.nan, -1, 2]),)),
            ("factorial", (np.float64([np.nan, -1, 10]),))]  # fmt: skip


def test_powers_of_gamma_functions_have_the_digits_of_f32():
    n = np.arange(5, dtype=np.float32)
    assert np.array_equal(special.factorial(n + 6).numpy(), np.float32([720, 5040, 40320, 362880, 3628800]))
    assert np.array_equal(special.comb(np.float32(100), n).numpy(), np.float32([1, 100, 4950, 161700, 3921225]))
    assert np.array_equal(special.poch(np.float32([30, 100]), np.float32([2, 3])).numpy(), np.float32([930, 1030200]))


def derivative(function, x, order):
    for _ in range(order):
        function = (lambda f: lambda v: rlx.jvp(f, (v,), (jnp.ones_like(v),))[1])(function)
    return np.asarray(rlx.jit(function)(x))


def test_tails_keep_their_digits():
    """Numbers of mpmath with 60 digits."""
    x = np.array([-30000.0, -50.0, -21.0, -6.0, 1.0])
    slopes = [30000.000033333334, 50.019984031905636, 21.047405496518664, 6.158482604544599, 0.2875999709391784]
    curvatures = [-0.9999999988888889, -0.999600956813196, -0.9977627079921447, -0.9760123632108332, -0.3703137142233946]
    assert np.allclose(derivative(special.log_ndtr, x, 1), slopes, rtol=1e-12, atol=0)
    assert np.allclose(derivative(special.log_ndtr, x, 2), curvatures, rtol=1e-11, atol=0)
    assert np.allclose(special.log_ndtr(np.float16([-6])), -20.736768949974707, rtol=1e-3)
    assert np.allclose(special.erfcx(np.array([1e4])), 5.641895807268084e-05, rtol=1e-15, atol=0)
    assert np.allclose(special.i0(np.array([710.2])), 4.085425282503975e306, rtol=1e-12)
    assert np.allclose(derivative(special.i0, np.array([1e-16, 1e-4, -2.0]), 1), scipy.special.i1([1e-16, 1e-4, -2.0]), rtol=1e-15, atol=0)


FAR_OUT = [
    ("gamma", (np.array([1e-300, 7.5, 25, 100, 160.25, 170.5, -30.5, -127.7, -150.3, -171.0000001]),),
     [9.999999999999999e299, 1871.2543057977884, 6.204484017332394e23, 9.332621544394415e155, 1.0473977871884765e283, 5.56209241456e305, -2.1357974436941745e-33,
      4.3206709838626126e-215, -1.5097598047749159e-263, 8.057896729372085e-303], 8),
    ("factorial", (np.array([-0.7, 27, 100, 127.6, 170.5]),), [0, 1.0888869450418352e28, 9.332621544394415e157, 5.531833011069594e214, 9.4833675668248e307], 8),
    ("ndtr", (np.array([-37, -20.3, -8, 0, 1e-31, 3, np.inf, -np.inf, np.nan]),),
     [5.725571222524577e-300, 6.429244467698346e-92, 6.220960574271784e-16, 0.5, 0.5, 0.9986501019683699, 1, 0, np.nan], 6),
    ("poch", (np.array([1e16, 1000, 1e8, -3, -3, 1e100, np.inf]), np.array([1e-3, 0.25, 3, 2, 0.5, 1e-3, 2])),
     [1.0375284158180127, 5.622886037710301, 1.0000000300000003e24, 6, 0, 1.2589254117941673, np.inf], 200),
    ("beta", (np.array([25.5, 1e4, -2, 1e-3, 0, np.inf]), np.array([0.3, 0.3, 1, 1e12, 0, 0.3])), [1.136919767373819, 0.18875722438372924, -0.5, 972.1867000610919, np.inf, 0], 60),
    ("betaln", (np.array([0, np.inf, -2]), np.array([0, 0.3, 1])), [np.inf, -np.inf, -math.log(2)], 4),
    ("comb", (np.array([1e6, 1e12, 200, 1e16]), np.array([3, 2.5, 100, 0])), [1.66666166667e17, 3.0090111122490582e29, 9.054851465610328e58, 1], 400),
    ("polygamma", (np.array([40.0, 100, 170]), np.array([100.0, 1000, 20])), [-2.475539438617731e-34, -9.807106203035294e-145, -2.4252478874086773e84], 8),
    ("erfcx", (np.array([-20.3, -3.7, 7.3, 13.9, 14.3, 27.0, -27.0]),),
     [1.859700651326472e179, 1764092.7560908962, 0.07658060847147892, 0.04048494476429228, 0.0393580473372741, 0.02088160799042094, np.inf], 8),
    ("boxcox", (np.array([1.01, 3, 3, 0]), np.array([1e-307, 1e-9, 2e-2, 0])), [0.009950330853168092, 1.0986122892715842, 1.110770663923851, -np.inf], 6),
]  # fmt: skip


@pytest.mark.parametrize("name,args,expected,units", FAR_OUT, ids=[case[0] for case in FAR_OUT])
def test_far_out_arguments_have_all_digits(name, args, expected, units):
    """Numbers of mpmath with 60 digits."""
    seen = np.asarray(getattr(special, name)(*args))
    assert np.allclose(seen, expected, rtol=units * 2**-52, atol=0, equal_nan=True), (seen, expected)


def test_exponential_integrals():
    x = np.concatenate([10.0 ** np.linspace(-12, 2.8, 300), [0, np.inf, np.nan, 1, 2, 2.0000001, 39.999, 40, 700]])
    cases = [(special.exp1, scipy.special.exp1), *((lambda x, n=n: special.expn(n, x), lambda x, n=n: scipy.special.expn(n, x)) for n in (0, 1, 2, 5, 20))]
    for mine, theirs in [*cases, (special.expi, scipy.special.expi), (lambda x: special.expi(-x), lambda x: scipy.special.expi(-x))]:
        assert np.allclose(mine(x), theirs(x), rtol=1e-13, atol=1e-300, equal_nan=True)
        given = x[:250].astype(np.float32)
        expected = theirs(given.astype(np.float64))
        assert np.allclose(mine(given)[expected > 1e-37].astype("float64"), expected[expected > 1e-37], rtol=2e-7, atol=0)
    assert np.isnan(special.exp1(np.float64([-1])).numpy()) and np.isnan(special.expn(np.float64(1.5), np.float64([1])).numpy())
    at = np.array([0.3, 1.7, 3.1, 20])
    for order, sign in ((1, -1), (2, 1)):
        expected = np.exp(-at) / at * (1 if order == 1 else 1 + 1 / at)
        assert np.allclose(derivative(special.exp1, at, order), sign * expected, rtol=1e-12)
    assert np.allclose(derivative(special.expi, at, 1), np.exp(at) / at, rtol=1e-12)
    assert np.allclose(derivative(lambda x: special.expn(3, x), at, 1), -scipy.special.expn(2, at), rtol=1e-12)


def test_box_cox_is_differentiable_where_the_exponent_is_none():
    by_lmbda = lambda order, at: derivative(lambda l: special.boxcox(jnp.full_like(l, 3.0), l), np.array([at]), order)
    assert np.allclose([by_lmbda(1, 0.0), by_lmbda(2, 0.0)], [[0.603474480406291], [0.4419896533813024]], rtol=1e-12, atol=0)
    assert np.allclose(by_lmbda(1, 0.02), 0.612387538491712, rtol=1e-12, atol=0)


def test_derivatives_at_the_ends_are_those_of_jax():
    zeros, y = np.float32([0, 0, 0, 0]), np.float32([0, 2, np.inf, 0.5])
    slope = lambda f, x: np.asarray(rlx.vjp(f, jnp.asarray(x))[1](jnp.ones(4))[0])
    assert np.allclose(slope(lambda x: special.xlogy(x, y), zeros), np.log(y))
    assert np.allclose(slope(lambda x: special.xlog1py(x, y), zeros), np.log1p(y))
    assert np.allclose(slope(lambda y: special.xlogy(0.0, y), y[1:].repeat(2)[:4]), 0)
    assert np.allclose(slope(special.entr, y), [np.inf, -np.log(2) - 1, -np.inf, np.log(2) - 1])
    x = np.float32([-1, 0.5, 1, 3])
    assert slope(lambda x: lax.clamp(-1.0, x, 1.0), x).tolist() == [0, 1, 0, 0]
    assert slope(lambda low: lax.clamp(low, x, 5.0), np.float32([-2, 0.75, 1, 4])).tolist() == [0, 1, 0, 1]
    special_points = np.float32([0, np.inf, np.nan, -2])
    assert slope(lambda x: x**0, special_points).tolist() == [0] * 4 and np.asarray(jnp.asarray(special_points) ** 0).tolist() == [1] * 4
    assert np.array_equal(slope(lambda x: x**3, special_points), [0, np.inf, np.nan, 12], equal_nan=True)


@pytest.mark.parametrize("name,args", ELEMENTS, ids=[f"{i}-{case[0]}" for i, case in enumerate(ELEMENTS)])
@pytest.mark.parametrize("dtype,rtol", [("float64", 1e-9), ("float32", 3e-4)])
def test_special_functions(name, args, dtype, rtol):
    given = [np.asarray(x, dtype) if isinstance(x, np.ndarray) else x for x in args]
    expected = getattr(scipy.special, name)(*[np.asarray(x, np.float64) if isinstance(x, np.ndarray) else x for x in given])
    seen = getattr(special, name)(*given)
    assert seen.dtype.name == {"float64": "f64", "float32": "f32"}[dtype]
    tail = dtype == "float32" and name == "ndtri" and len(args[0]) == 6
    assert np.allclose(seen.numpy()[: -1 if tail else None], expected[: -1 if tail else None], rtol=rtol, atol=rtol * 1e-2, equal_nan=True), (seen, expected)


def slope(function, x, v, h=1e-5):
    return (float(function(x + h * v)) - float(function(x - h * v))) / (2 * h)


FUNCTIONS = [(special.gammaln, POSITIVE), (special.gamma, POSITIVE[:20]), (special.erfinv, P), (special.logit, P), (special.entr, P), (special.ndtri, P), (special.log_ndtr, X * 5),
             (lambda x: special.xlogy(x, x + 2), P), (lambda x: special.polygamma(1, x), POSITIVE), (lambda x: special.rel_entr(x, 2 * x + 0.1), P), (special.i0, X[:20]),
             (lambda x: linalg.expm(x.reshape(4, 4)), X[:16]), (lambda x: stats.norm.logpdf(x, 0.5, 2.0), X), (lambda x: stats.t.logpdf(x, 3.0), X),
             (lambda x: stats.beta.logpdf(x, 2.0, 3.0), P), (lambda x: stats.gamma.logpdf(x, 2.0), POSITIVE), (nn.celu, X), (nn.squareplus, X), (nn.log1mexp, POSITIVE),
             (nn.sparse_plus, X), (lambda x: nn.standardize(x), X), (lambda x: nn.logmeanexp(x), X), (lambda x: nn.glu(x[:40]), X), (nn.gelu, X)]  # fmt: skip


@pytest.mark.parametrize("function,x", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_derivatives_follow_finite_differences(function, x):
    rng = np.random.default_rng(1)
    weights = rng.normal(size=np.shape(function(rlx.asarray(x)).numpy()))
    total = lambda x: (function(rlx.asarray(x)) * weights).sum()  # noqa: E731
    gradient = rlx.jit(rlx.grad(total))(x).numpy()
    for v in (rng.normal(size=x.shape), np.ones_like(x)):
        assert np.isclose((gradient * v).sum(), slope(total, x, v), rtol=1e-5, atol=1e-6)
    second = rlx.hvp(total, (x,), (np.ones_like(x),)).numpy()
    wide = slope(lambda x: (rlx.grad(total)(x) * 1.0).sum(), x, np.ones_like(x))
    assert np.isclose(second.sum(), wide, rtol=1e-4, atol=1e-5)


CONTINUOUS = [("norm", (), (0.5, 2.0), X), ("uniform", (), (-1.0, 3.0), X), ("expon", (), (0.0, 2.0), X), ("laplace", (), (0.5, 2.0), X), ("logistic", (), (0.5, 2.0), X),
              ("cauchy", (), (0.5, 2.0), X), ("gamma", (2.5,), (0.0, 1.5), POSITIVE), ("beta", (2.0, 3.0), (0.0, 1.0), P), ("chi2", (3.0,), (0.0, 1.0), POSITIVE),
              ("t", (3.0,), (0.0, 1.0), X), ("pareto", (2.0,), (0.0, 1.0), POSITIVE + 1)]  # fmt: skip


@pytest.mark.parametrize("name,shape,place,x", CONTINUOUS, ids=[case[0] for case in CONTINUOUS])
def test_distributions(name, shape, place, x):
    mine, theirs = getattr(stats, name), getattr(scipy.stats, name)
    assert np.allclose(mine.logpdf(x, *shape, *place), theirs.logpdf(x, *shape, *place), rtol=1e-8, atol=1e-10)
    assert np.allclose(mine.pdf(x, *shape, loc=place[0], scale=place[1]), theirs.pdf(x, *shape, *place), rtol=1e-8, atol=1e-10)
    if name != "t":
        assert np.allclose(mine.cdf(x, *shape, *place), theirs.cdf(x, *shape, *place), rtol=1e-8, atol=1e-10)
        assert np.allclose(mine.sf(x, *shape, *place), theirs.sf(x, *shape, *place), rtol=1e-6, atol=1e-9)
    else:
        with pytest.raises(rlx.Error, match="no such function"):
            mine.cdf(x, *shape)
    if name in ("norm", "uniform", "expon", "laplace", "logistic", "cauchy", "pareto"):
        assert np.allclose(mine.ppf(P, *shape, *place), theirs.ppf(P, *shape, *place), rtol=1e-7, atol=1e-9)


def test_distributions_of_integers():
    k = np.arange(-1, 9)
    for name, shape in (("bernoulli", (0.3,)), ("binom", (6, 0.3)), ("poisson", (2.5,)), ("geom", (0.3,))):
        seen = getattr(stats, name).pmf(k, *[np.float64(each) for each in shape])
        assert np.allclose(seen, getattr(scipy.stats, name).pmf(k, *shape), rtol=1e-5, atol=1e-7), name


def test_matrices():
    a = np.random.default_rng(0).normal(size=(5, 5))
    spd, b, v = a @ a.T + np.eye(5), a[:, :2], a[0]
    for lower in (True, False):
        assert np.allclose(linalg.cholesky(spd, lower), scipy.linalg.cholesky(spd, lower))
        assert np.allclose(linalg.cho_solve(linalg.cho_factor(spd, lower), b), np.linalg.solve(spd, b))
        for trans in (0, 1, 2):
            for right in (b, v):
                assert np.allclose(linalg.solve_triangular(a, right, trans=trans, lower=lower), scipy.linalg.solve_triangular(a, right, trans=trans, lower=lower))
    for trans in (0, 1):
        for right in (b, v):
            assert np.allclose(linalg.lu_solve(linalg.lu_factor(a), right, trans), scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), right, trans))
    for part in (a, a[:, :3], a[:3]):
        for mine, theirs in zip(linalg.lu(part), scipy.linalg.lu(part)):
            assert np.allclose(mine, theirs)
    for scale in (1e-3, 1, 30):
        assert np.allclose(linalg.expm(a * scale), scipy.linalg.expm(a * scale), rtol=1e-7)
    assert np.allclose(linalg.expm(np.stack([a, spd * 0.1])), [scipy.linalg.expm(a), scipy.linalg.expm(spd * 0.1)])
    assert np.allclose(linalg.solve(spd, b, assume_a="pos"), np.linalg.solve(spd, b))
    assert np.allclose(linalg.block_diag(a[:2], [[1.0]]), scipy.linalg.block_diag(a[:2], [[1.0]]))
    assert np.allclose(linalg.toeplitz(v, a[1]), scipy.linalg.toeplitz(v, a[1]))


def test_rows_that_lu_exchanged_are_known_when_a_program_runs():
    a = np.random.default_rng(0).normal(size=(2, 3, 4, 4))
    b = np.random.default_rng(1).normal(size=(2, 3, 4, 2))
    for trans, matrix in ((0, a), (1, a.mT)):
        solved = rlx.jit(lambda a, b, trans=trans: linalg.lu_solve(linalg.lu_factor(a), b, trans))
        assert np.allclose(solved(a, b), np.linalg.solve(matrix, b))
        assert np.allclose(rlx.vmap(rlx.vmap(solved))(a, b[..., 0]), np.linalg.solve(matrix, b[..., :1])[..., 0])
    adjoint = np.linalg.solve(a.mT, np.ones_like(b))  # of the sum of x with a x = b
    assert np.allclose(rlx.grad(lambda b: linalg.lu_solve(linalg.lu_factor(a), b).sum())(b), adjoint)


@pytest.mark.parametrize("left, right, dtype", [("float64", "float32", "float64"), ("float32", "float64", "float64"), ("float64", "int32", "float64"),
                                                ("float32", "complex64", "complex64"), ("int32", "int64", "float32")])  # fmt: skip
def test_matrices_and_right_sides_of_two_types(left, right, dtype):
    a, b = (np.eye(3) * 2).astype(left), np.ones((3, 1)).astype(right)
    for solve in (jnp.linalg.solve, linalg.solve_triangular, lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b)):
        x = solve(rlx.asarray(a), rlx.asarray(b))
        assert x.numpy().dtype == dtype and np.array_equal(x, np.full((3, 1), 0.5))


def test_logarithms_of_weighted_sums():
    x, b = np.random.default_rng(0).normal(size=(3, 4)) * 300, np.random.default_rng(1).normal(size=(3, 4))
    b[0, 0], x[1, 1] = 0, -np.inf
    for options in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}):
        for mine, theirs in ((special.logsumexp(x, b=abs(b), **options), scipy.special.logsumexp(x, b=abs(b), **options)),
                             *zip(special.logsumexp(x, b=b, return_sign=True, **options), scipy.special.logsumexp(x, b=b, return_sign=True, **options))):  # fmt: skip
            assert np.allclose(mine, theirs, rtol=1e-12)
    assert np.isnan(float(special.logsumexp(np.float32([1, 2]), b=np.float32([1, -1]))))  # a sum below 0
    held = special.logsumexp(x, axis=1, where=np.array([True, False, True, True]))
    assert np.allclose(held, scipy.special.logsumexp(x[:, [0, 2, 3]], axis=1), rtol=1e-12)
    slope = rlx.grad(lambda b: special.logsumexp(x[0] / 300, b=b))(abs(b[0]))
    assert np.allclose(slope, np.where(b[0] == 0, 0, np.exp(x[0] / 300) / (abs(b[0]) * np.exp(x[0] / 300)).sum()))


N = 20000
DRAWN = {"exponential": ((), "expon", ()), "laplace": ((), "laplace", ()), "logistic": ((), "logistic", ()), "cauchy": ((), "cauchy", ()), "pareto": ((2.0,), "pareto", (2.0,)),
         "rayleigh": ((2.0,), "rayleigh", (0, 2.0)), "lognormal": ((0.7,), "lognorm", (0.7,)), "maxwell": ((), "maxwell", ()), "triangular": ((0.0, 0.3, 1.0), "triang", (0.3,)),
         "truncated_normal": ((-1.0, 2.0), "truncnorm", (-1.0, 2.0)), "gamma": ((2.5,), "gamma", (2.5,)), "beta": ((2.0, 0.5), "beta", (2.0, 0.5)),
         "chisquare": ((3.0,), "chi2", (3.0,)), "t": ((4.0,), "t", (4.0,)), "f": ((3.0, 8.0), "f", (3.0, 8.0)), "weibull_min": ((2.0, 1.5), "weibull_min", (1.5, 0, 2.0))}


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_follow_their_distribution(name):
    parameters, theirs, shape = DRAWN[name]
    x = getattr(rlx.random, name)(rlx.random.key(7), *parameters, shape=(N,)).numpy().astype(np.float64)
    assert scipy.stats.kstest(x, theirs, shape).pvalue > 1e-4  # the key is fixed
    again = rlx.jit(lambda key: getattr(rlx.random, name)(key, *parameters, shape=(8,)))(rlx.random.key(7))
    assert np.array_equal(again, rlx.jit(lambda key: getattr(rlx.random, name)(key, *parameters, shape=(8,)))(rlx.random.key(7)))


def test_small_gamma_parameters_follow_their_distribution():
    key, kinds = rlx.random.key(1), scipy.stats
    x = rlx.random.gamma(key, 0.3, shape=(N,)).numpy().astype(np.float64)
    assert kinds.kstest(x, "gamma", (0.3,)).pvalue > 1e-4
    logarithms = rlx.random.loggamma(key, 0.01, shape=(N,)).numpy().astype(np.float64)
    assert kinds.kstest(logarithms, "loggamma", (0.01,)).pvalue > 1e-4
    for x in (rlx.random.beta(key, 0.01, 0.02, shape=(N,)).numpy(), rlx.random.dirichlet(key, np.float32([0.01, 0.02]), (N,)).numpy()[:, 0]):
        limits = [1e-30, 1e-10, 0.5, 1 - 1e-5]
        assert np.allclose([(x <= limit).mean() for limit in limits], kinds.beta(0.01, 0.02).cdf(limits), atol=0.02)


def test_normal_numbers_far_out_follow_their_distribution_on_both_sides():
    for low, high in ((5.0, 7.0), (-7.0, -5.0), (8.0, 9.0)):
        x = rlx.random.truncated_normal(rlx.random.key(7), low, high, (N,)).numpy().astype(np.float64)
        assert scipy.stats.kstest(x, "truncnorm", (low, high)).pvalue > 1e-4


def test_random_integers_follow_their_distribution():
    for name, parameters, theirs in (("poisson", (2.5,), scipy.stats.poisson(2.5)), ("geometric", (0.3,), scipy.stats.geom(0.3)), ("binomial", (6, 0.3), scipy.stats.binom(6, 0.3))):
        x = getattr(rlx.random, name)(rlx.random.key(3), *parameters, shape=(N,)).numpy().astype(int)
        count = np.bincount(x, minlength=9)[1:7]
        expected = theirs.pmf(np.arange(1, 7)) * N
        assert (np.abs(count - expected) < 5 * np.sqrt(expected) + 5).all(), name
    signs = rlx.random.rademacher(rlx.random.key(0), (N,)).numpy()
    assert set(signs) == {-1, 1} and abs(signs.mean()) < 0.05
    assert abs(rlx.random.poisson(rlx.random.key(0), 5000.0, (N,)).numpy().mean() - 5000) < 5


def test_choices_and_permutations():
    key = rlx.random.key(5)
    assert sorted(rlx.random.permutation(key, 50).tolist()) == list(range(50))
    x = np.arange(12.0).reshape(3, 4).astype(np.float32)
    assert sorted(map(tuple, rlx.random.permutation(key, x).tolist())) == sorted(map(tuple, x.tolist()))
    assert np.array_equal(np.sort(rlx.random.permutation(key, x, 1, independent=True).numpy(), 1), x)
    p = np.float32([0.1, 0.2, 0.7])
    drawn = np.bincount(rlx.random.choice(key, 3, (N,), p=p).numpy(), minlength=3) / N
    assert np.allclose(drawn, p, atol=0.02)
    few = rlx.random.choice(key, 10, (10,), replace=False).tolist()
    assert sorted(few) == list(range(10))
    assert 2 in rlx.random.choice(key, 3, (1,), replace=False, p=np.float32([0, 0, 1])).tolist()
    with pytest.raises(rlx.Error, match="without replacement"):
        rlx.random.choice(key, 3, (4,), replace=False)


def test_random_vectors():
    key = rlx.random.key(2)
    cov = np.float32([[2, 0.5], [0.5, 1]])
    x = rlx.random.multivariate_normal(key, np.float32([1, -1]), cov, (N,)).numpy()
    assert np.allclose(np.cov(x.T), cov, atol=0.08) and np.allclose(x.mean(0), [1, -1], atol=0.05)
    d = rlx.random.dirichlet(key, np.float32([1, 2, 5]), (N,)).numpy()
    assert np.allclose(d.mean(0), np.float32([1, 2, 5]) / 8, atol=0.01) and np.allclose(d.sum(1), 1, atol=1e-5)
    q = rlx.random.orthogonal(key, 6, (3,)).numpy()
    assert np.allclose(q @ q.transpose(0, 2, 1), np.eye(6), atol=1e-5)
    b = rlx.random.ball(key, 3, shape=(N,)).numpy()
    radius = np.sqrt((b**2).sum(1))
    assert radius.max() <= 1 and abs((radius**3).mean() - 0.5) < 0.02


def test_initializers_have_their_variance():
    key, shape = rlx.random.key(0), (300, 200)
    for name, variance in (("glorot_normal", 2 / 500), ("glorot_uniform", 2 / 500), ("lecun_normal", 1 / 300), ("lecun_uniform", 1 / 300), ("he_normal", 2 / 300), ("he_uniform", 2 / 300)):
        assert math.isclose(float(getattr(nn.initializers, name)()(key, shape).var()), variance, rel_tol=0.03), name
    q = nn.initializers.orthogonal()(key, (20, 10)).numpy()
    assert np.allclose(q.T @ q, np.eye(10), atol=1e-5)
    q = nn.initializers.orthogonal()(key, (5, 20)).numpy()
    assert np.allclose(q @ q.T, np.eye(5), atol=1e-5)
    assert float(nn.initializers.zeros(key, (3,)).sum()) == 0 and float(nn.initializers.constant(2.0)(key, (3,)).sum()) == 6


def test_functions_of_networks():
    x = X.astype(np.float32)
    for name, expected in (("celu", np.where(x > 0, x, np.expm1(x))), ("hard_tanh", np.clip(x, -1, 1)), ("squareplus", (x + np.sqrt(x * x + 4)) / 2), ("leaky_relu", np.where(x > 0, x, 0.01 * x)),
                           ("swish", x * scipy.special.expit(x)), ("hard_sigmoid", np.clip(x / 6 + 0.5, 0, 1)), ("soft_sign", x / (1 + abs(x))), ("sparse_sigmoid", np.clip((x + 1) / 2, 0, 1)),
                           ("standardize", (x - x.mean()) / np.sqrt(x.var() + 1e-5)), ("logmeanexp", np.log(np.exp(x).mean())), ("log_softmax", scipy.special.log_softmax(x))):
        assert np.allclose(getattr(nn, name)(x), expected, rtol=1e-5, atol=1e-6), name
    mask = x > 0
    assert np.allclose(nn.softmax(x, where=mask), np.where(mask, np.exp(x) / np.exp(x[mask]).sum(), 0), atol=1e-6)
    assert np.array_equal(nn.one_hot([0, 2, 5], 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 5, 4, 8)).astype(np.float32)
    seen = nn.dot_product_attention(q, k, v, is_causal=True)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8)
    scores = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    assert np.allclose(seen, np.einsum("bhqk,bkhd->bqhd", scipy.special.softmax(scores, -1), v), atol=1e-5)
    seen = nn.dot_product_attention(q[:, :3], k, v, is_causal=True)  # query i sees the keys 0 to i, however many keys there are
    assert np.allclose(seen, np.einsum("bhqk,bkhd->bqhd", scipy.special.softmax(scores[:, :, :3], -1), v), atol=1e-5)


def test_softmax_takes_axes():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for axis in (0, (0, 2), (1,), (-1, 0), None):
        assert np.allclose(nn.softmax(x, axis), scipy.special.softmax(x, axis), atol=1e-6), axis
        assert np.allclose(nn.log_softmax(x, axis), scipy.special.log_softmax(x, axis), atol=1e-5), axis


def test_names_of_lax():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    y = np.random.default_rng(1).normal(size=(2, 4, 5)).astype(np.float32)
    assert np.allclose(lax.dot_general(y, y, (((2,), (2,)), ((0,), (0,)))), np.einsum("bij,bkj->bik", y, y), atol=1e-5)
    assert np.array_equal(lax.dynamic_slice(x, (1, 2), (2, 2)), x[1:3, 2:4]) and np.array_equal(lax.dynamic_slice_in_dim(x, 1, 2, 1), x[:, 1:3])
    expected = x.copy()
    expected[1] = 7
    assert np.array_equal(lax.dynamic_update_index_in_dim(x, np.full(4, 7), 1, 0), expected)
    assert np.array_equal(lax.pad(x, 9.0, [(1, 0, 1), (-1, 2, 0)])[:, -1], [9.0] * 6) and np.array_equal(lax.rev(x, (0,)), x[::-1])
    assert np.array_equal(lax.select_n(np.int32([0, 1, 2]), [1, 2, 3], [4, 5, 6], [7, 8, 9]), [1, 5, 9]) and np.array_equal(lax.clamp(-1.0, x, 1.0), np.clip(x, -1, 1))
    keys, values = lax.sort_key_val(np.int32([3, 1, 2]), np.int32([7, 8, 9]))
    assert keys.tolist() == [1, 2, 3] and values.tolist() == [8, 9, 7]
    assert np.allclose(lax.reduce_sum(x, (0,)), x.sum(0), atol=1e-6) and np.allclose(lax.cumlogsumexp(x, 1), np.logaddexp.accumulate(x, 1), atol=1e-5)
    assert np.array_equal(lax.slice(x, (0, 1), (3, 4), (2, 1)), x[::2, 1:]) and lax.collapse(y, 0, 2).shape == (8, 5) and np.allclose(lax.rsqrt(x * x), 1 / abs(x), rtol=1e-5)
    image, kernel = np.random.default_rng(2).normal(size=(1, 6, 5, 2)).astype(np.float32), np.random.default_rng(3).normal(size=(3, 3, 2, 4)).astype(np.float32)
    seen = lax.conv_general_dilated(image, kernel, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).numpy()
    padded = np.pad(image, [(0, 0), (0, 1), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2]
    assert np.allclose(seen, np.einsum("nhwckl,klco->nhwo", windows, kernel), atol=1e-4)
    total, ys = lax.scan(lambda c, v: (c + v, c), jnp.zeros(4), x)
    assert np.allclose(total, x.sum(0), atol=1e-6) and ys.shape == (3, 4)


def test_convolutions_take_their_parameters_in_the_order_of_the_kernel():
    x, w = np.random.default_rng(2).normal(size=(1, 7, 6, 2)), np.random.default_rng(3).normal(size=(3, 2, 2, 4))
    options = {"padding": [(2, 0), (1, 3)], "lhs_dilation": (1, 2), "rhs_dilation": (2, 1)}
    expected = lax.conv_general_dilated(x, w, (2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)
    turned = {name: value[::-1] for name, value in options.items()}
    seen = lax.conv_general_dilated(x, w.transpose(1, 0, 2, 3), (1, 2), dimension_numbers=("NHWC", "WHIO", "NHWC"), **turned)
    assert np.allclose(seen, expected)
    numbers = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))  # of batch and features, then of height and width
    assert np.allclose(lax.conv_general_dilated(x, w, (2, 1), dimension_numbers=numbers, **options), expected)


def test_convolutions_of_parts_of_the_batch_and_of_a_wider_type():
    x, w = np.random.default_rng(2).normal(size=(6, 2, 9)), np.random.default_rng(3).normal(size=(4, 2, 3))
    seen = lax.conv_general_dilated(x, w, (2,), "SAME", batch_group_count=2)
    parts = [lax.conv_general_dilated(x[3 * i : 3 * i + 3], w[2 * i : 2 * i + 2], (2,), "SAME") for i in range(2)]
    assert np.allclose(seen, np.concatenate(parts, 1))
    assert np.allclose(lax.conv_general_dilated(x[:, :, 0], w[:, :, 0], (), []), x[:, :, 0] @ w[:, :, 0].T)  # without axes of space
    half = np.full((1, 300, 8), 30, np.float16)  # 8 * 300 * 900 is beyond f16
    assert lax.conv_general_dilated(half, half, (1,), "VALID", preferred_element_type="float32").item() == 8 * 300 * 900
    with pytest.raises(rlx.Error, match="batch_group_count is 4 for a batch of 6 with feature_group_count 1"):
        lax.conv_general_dilated(x, w, (2,), "SAME", batch_group_count=4)


def test_windows_are_reduced_by_any_function():
    x = np.random.default_rng(4).normal(size=(2, 9, 8))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (1, 2), (0, 0)], constant_values=-np.inf), (1, 5, 3))
    expected = windows[:, ::2, :, :, ::2, ::2].max((-3, -2, -1))  # elements 0, 2, 4 and 0, 2 of windows that begin at 0, 2, 4, ...
    for largest in (lax.max, jnp.maximum, lambda a, b: jnp.where(a > b, a, b)):
        seen = lax.reduce_window(x, -np.inf, largest, (1, 3, 2), (1, 2, 1), [(0, 0), (1, 2), (0, 0)], window_dilation=(1, 2, 2))
        assert np.array_equal(seen, expected)
    assert np.allclose(lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 2, 2), "SAME"), np.pad(x, [(0, 0), (0, 1), (0, 0)]).reshape(2, 5, 2, 4, 2).sum((2, 4)))
    assert np.allclose(lax.reduce_window(x, 1.0, lax.mul, (1, 2, 2), (1, 1, 2), "VALID"), (x[:, :-1] * x[:, 1:])[..., ::2] * (x[:, :-1] * x[:, 1:])[..., 1::2])
    whole = np.int32([[5, -7, 2]])
    assert np.array_equal(lax.reduce_window(whole, np.iinfo(np.int32).max, lax.min, (1, 2), (1, 1), [(0, 0), (1, 0)], base_dilation=(1, 2)), [[5, 5, -7, -7, 2]])
    assert lax.reduce_window(x, 0.0, lax.add, (3, 1, 1), (1, 1, 1), "VALID").shape == (0, 9, 8)
    slope = rlx.grad(lambda v: lax.reduce_window(v, -np.inf, lax.max, (2,), (2,), "VALID").sum())(np.float32([3, 3, 1, 2]))
    assert np.array_equal(slope, [1, 0, 0, 1])  # the first of ties


def test_lax_rounds_halves_away_from_zero():  # as jax.lax.round; the even ones by name
    x = np.float32([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, 8388609, np.inf, -0.2])
    assert np.array_equal(lax.round(x), [1, 2, 3, -1, -3, 0, 8388609, np.inf, 0]) and np.isnan(float(lax.round(np.float32(np.nan))))
    assert np.array_equal(lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.round(x))
