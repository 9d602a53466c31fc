"""Distributions, as in scipy.stats: rlx.scipy.stats.norm.logpdf(x, loc, scale)."""
# mypy: disable-error-code="misc"
import math
from typing import Any, NamedTuple

from .. import _trees
from .. import numpy as jnp
from .._core import Error
from ..numpy._base import call, float_of, of_type
from ..numpy.elementwise import abs, exp, log, log1p, where
from . import special
from .linalg import solve_triangular


class _Distribution:
    """Of a location and a scale. `_log` is the logarithm of the density of the standard one, `_below` its share below x, `_above` that above,
    `_inverse` the other way."""

    def __init__(self, name, log_density, below=None, inverse=None, log_below=None, above=None):
        self.name, self._log, self._below, self._inverse, self._log_below, self._above = name, log_density, below, inverse, log_below, above

    def __repr__(self):
        return f"rlx.scipy.stats.{self.name}"

    def logpdf(self, x, *shape, loc=0.0, scale=1.0):
        """The logarithm of the density."""
        x, shape, loc, scale = self._given(x, shape, loc, scale)
        return self._log((x - loc) / scale, *shape) - log(scale)

    def pdf(self, x, *shape, loc=0.0, scale=1.0):
        """The density."""
        return exp(self.logpdf(x, *shape, loc=loc, scale=scale))

    def cdf(self, x, *shape, loc=0.0, scale=1.0):
        """The share below x."""
        x, shape, loc, scale = self._given(x, shape, loc, scale)
        return self._known(self._below)((x - loc) / scale, *shape)

    def sf(self, x, *shape, loc=0.0, scale=1.0):
        """The share above x."""
        if self._above is None:
            return 1.0 - self.cdf(x, *shape, loc=loc, scale=scale)
        x, shape, loc, scale = self._given(x, shape, loc, scale)
        return self._above((x - loc) / scale, *shape)

    def logsf(self, x, *shape, loc=0.0, scale=1.0):
        """The logarithm of the share above x."""
        return log(self.sf(x, *shape, loc=loc, scale=scale))

    def isf(self, q, *shape, loc=0.0, scale=1.0):
        """The x above which the share q lies."""
        return self.ppf(1.0 - float_of(q), *shape, loc=loc, scale=scale)

    def logcdf(self, x, *shape, loc=0.0, scale=1.0):
        """The logarithm of the share below x."""
        if self._log_below is None:
            return log(self.cdf(x, *shape, loc=loc, scale=scale))
        x, shape, loc, scale = self._given(x, shape, loc, scale)
        return self._log_below((x - loc) / scale, *shape)

    def ppf(self, q, *shape, loc=0.0, scale=1.0):
        """The x below which the share q lies."""
        q, shape, loc, scale = self._given(q, shape, loc, scale)
        return self._known(self._inverse)(q, *shape) * scale + loc

    def _known(self, function):
        if function is None:
            raise Error(f"{self!r}: it has no such function (allowed: logpdf, pdf)")
        return function

    def _given(self, x, shape, loc, scale):
        """SciPy's loc and scale may come by place, behind the parameters of the shape."""
        count = self._log.__code__.co_argcount - 1
        more = list(shape[count:])
        loc, scale = more[0] if more else loc, more[1] if len(more) > 1 else scale
        x = float_of(x)
        return x, [jnp.asarray(each, x.dtype) for each in shape[:count]], loc, jnp.asarray(scale, x.dtype)


def _inside(condition, value):
    return where(condition, value, -math.inf)


def _gamma_log(x, a):
    return _inside(x >= 0, special.xlogy(a - 1.0, where(x >= 0, x, 1.0)) - x - special.gammaln(a))


def _beta_log(x, a, b):
    inside = (x >= 0) & (x <= 1)
    safe = where(inside, x, 0.5)
    return _inside(inside, special.xlogy(a - 1.0, safe) + special.xlog1py(b - 1.0, -safe) - special.betaln(a, b))


def _t_log(x, df):
    return special.gammaln((df + 1.0) / 2) - special.gammaln(df / 2) - 0.5 * log(df * math.pi) - (df + 1.0) / 2 * log1p(x * x / df)


norm = _Distribution("norm", lambda x: -0.5 * x * x - 0.5 * math.log(2 * math.pi), special.ndtr, special.ndtri, special.log_ndtr,
                     lambda x: special.ndtr(-x))
uniform = _Distribution("uniform", lambda x: _inside((x >= 0) & (x <= 1), x * 0.0), lambda x: jnp.clip(x, 0.0, 1.0), lambda q: q)
expon = _Distribution("expon", lambda x: _inside(x >= 0, -x), lambda x: where(x > 0, -jnp.expm1(-x), 0.0), lambda q: -log1p(-q),
                      above=lambda x: exp(-jnp.maximum(x, 0.0)))
laplace = _Distribution("laplace", lambda x: -abs(x) - math.log(2.0), lambda x: where(x > 0, 1.0 - 0.5 * exp(-abs(x)), 0.5 * exp(-abs(x))),
                        lambda q: where(q > 0.5, -log(2.0 * (1.0 - q)), log(2.0 * q)))  # fmt: skip
logistic = _Distribution("logistic", lambda x: -abs(x) - 2.0 * log1p(exp(-abs(x))), special.expit, special.logit,
                         above=lambda x: special.expit(-x))
cauchy = _Distribution("cauchy", lambda x: -math.log(math.pi) - log1p(x * x), lambda x: 0.5 + jnp.arctan(x) / math.pi, lambda q: jnp.tan(math.pi * (q - 0.5)))
gamma = _Distribution("gamma", _gamma_log, lambda x, a: special.gammainc(a, where(x > 0, x, 0.0)))
chi2 = _Distribution("chi2", lambda x, df: _gamma_log(x * 0.5, df * 0.5) - math.log(2.0), lambda x, df: special.gammainc(df * 0.5, where(x > 0, x * 0.5, 0.0)))
beta = _Distribution("beta", _beta_log, lambda x, a, b: special.betainc(a, b, jnp.clip(x, 0.0, 1.0)))


def _gumbel_r_log(x):
    return -x - exp(-x)


def _log_share(low, high):
    """log of the normal distribution's share between two numbers: on the side where it is not near 1."""
    mirrored = low > 0
    low, high = where(mirrored, -high, low), where(mirrored, -low, high)
    below, all_below = special.log_ndtr(low), special.log_ndtr(high)
    return all_below + log1p(-exp(below - all_below))


def _truncated_log(x, a, b):
    inside = (x >= a) & (x <= b)
    return _inside(inside, -0.5 * x * x - 0.5 * math.log(2 * math.pi) - _log_share(a, b))


def _truncated_log_below(x, a, b):
    inside = (x > a) & (x < b)
    return where(inside, _log_share(a, where(inside, x, b)) - _log_share(a, b), where(x >= b, 0.0, -math.inf))


def _truncated_above(x, a, b):
    inside = (x > a) & (x < b)
    return where(inside, exp(_log_share(where(inside, x, a), b) - _log_share(a, b)), where(x <= a, 1.0, 0.0))


def _wrapped_cauchy_log(x, c):
    log_density = log((1.0 - c) * (1.0 + c)) - math.log(2 * math.pi) - log(1.0 + c * c - 2.0 * c * jnp.cos(x))
    return where((c > 0) & (c < 1), _inside((x >= 0) & (x <= 2 * math.pi), log_density), math.nan)


def _von_mises_log(x, kappa):
    return kappa * (jnp.cos(x) - 1.0) - log(2 * math.pi * special.i0e(kappa))


def _pareto_tail(x, b):
    return where(x >= 1, exp(-b * log(where(x >= 1, x, 1.0))), 1.0)


t = _Distribution("t", _t_log)
pareto = _Distribution("pareto", lambda x, b: _inside(x >= 1, log(b) - (b + 1.0) * log(where(x >= 1, x, 1.0))), lambda x, b: 1.0 - _pareto_tail(x, b),
                       lambda q, b: exp(-log1p(-q) / b), above=_pareto_tail)  # fmt: skip
gumbel_r = _Distribution("gumbel_r", _gumbel_r_log, lambda x: exp(-exp(-x)), lambda q: -log(-log(q)), lambda x: -exp(-x), lambda x: -jnp.expm1(-exp(-x)))
gumbel_l = _Distribution("gumbel_l", lambda x: _gumbel_r_log(-x), lambda x: -jnp.expm1(-exp(x)), lambda q: log(-log1p(-q)), above=lambda x: exp(-exp(x)))
gennorm = _Distribution("gennorm", lambda x, beta: log(0.5 * beta) - special.gammaln(1.0 / beta) - abs(x) ** beta,
                        lambda x, beta: 0.5 * (1.0 + jnp.sign(x) * special.gammainc(1.0 / beta, abs(x) ** beta)))  # fmt: skip
truncnorm = _Distribution("truncnorm", _truncated_log, lambda x, a, b: exp(_truncated_log_below(x, a, b)), None, _truncated_log_below, _truncated_above)
vonmises = _Distribution("vonmises", _von_mises_log)
wrapcauchy = _Distribution("wrapcauchy", _wrapped_cauchy_log)


class _Discrete:
    """Of integers. `_log` is the logarithm of the probability."""

    def __init__(self, name, log_probability):
        self.name, self._log = name, log_probability

    def __repr__(self):
        return f"rlx.scipy.stats.{self.name}"

    def logpmf(self, k, *shape, loc=0):
        """The logarithm of the probability."""
        k, *parameters = special._floats(k, *shape)
        return self._log(k - loc, *parameters)

    def pmf(self, k, *shape, loc=0):
        """The probability."""
        return exp(self.logpmf(k, *shape, loc=loc))


def _binomial(k, n, p):
    inside = (k >= 0) & (k <= n)
    k = where(inside, k, 0.0)
    choices = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    return _inside(inside, choices + special.xlogy(k, p) + special.xlog1py(n - k, -p))


bernoulli = _Discrete("bernoulli", lambda k, p: _binomial(k, k * 0.0 + 1.0, p))
binom = _Discrete("binom", _binomial)
poisson = _Discrete("poisson", lambda k, mu: _inside(k >= 0, special.xlogy(where(k >= 0, k, 0.0), mu) - special.gammaln(where(k >= 0, k, 0.0) + 1.0) - mu))
geom = _Discrete("geom", lambda k, p: _inside(k >= 1, special.xlog1py(where(k >= 1, k, 1.0) - 1.0, -p) + log(p)))


def _negative_binomial(k, n, p):
    inside = k >= 0
    k = where(inside, k, 0.0)
    return _inside(inside, special.gammaln(k + n) - special.gammaln(n) - special.gammaln(k + 1.0) + special.xlogy(n, p) + special.xlog1py(k, -p))


def _beta_binomial(k, n, a, b):
    inside = (k >= 0) & (k <= n)
    k = where(inside, k, 0.0)
    return _inside(inside, special.betaln(k + a, n - k + b) - special.betaln(a, b) - log(n + 1.0) - special.betaln(n - k + 1.0, k + 1.0))


nbinom = _Discrete("nbinom", _negative_binomial)
betabinom = _Discrete("betabinom", _beta_binomial)


class _Vectors:
    """Of vectors along the last axis. `_log` is the logarithm of the density."""

    def __init__(self, name, log_density):
        self.name, self._log = name, log_density

    def __repr__(self):
        return f"rlx.scipy.stats.{self.name}"

    def logpdf(self, x, *shape):
        """The logarithm of the density."""
        return self._log(x, *shape)

    def pdf(self, x, *shape):
        """The density."""
        return exp(self._log(x, *shape))


class _Counts(_Vectors):
    """Of vectors of integers."""

    logpmf, pmf = _Vectors.logpdf, _Vectors.pdf


def _dirichlet_log(x, alpha):
    """Of positions along axis 0, as in SciPy; the last of them may be left out."""
    x, alpha = float_of(x), float_of(alpha)
    x = x if x.shape[0] == alpha.shape[0] else jnp.concatenate([x, 1.0 - x.sum(axis=0, keepdims=True)])
    column = alpha.reshape(-1, *[1] * (x.ndim - 1))
    norm_ = special.gammaln(alpha).sum() - special.gammaln(alpha.sum())
    inside = (x >= 0).all(axis=0) & (abs(x.sum(axis=0) - 1.0) < 1e-6)
    return _inside(inside, special.xlogy(column - 1.0, where(x >= 0, x, 1.0)).sum(axis=0) - norm_)


def _multinomial_log(x, n, p):
    x, p = jnp.asarray(x), float_of(p)
    counts, n = x.astype(p.dtype), jnp.asarray(n).astype(p.dtype)
    total = special.gammaln(n + 1.0) + (special.xlogy(counts, p) - special.gammaln(counts + 1.0)).sum(axis=-1)
    return _inside(jnp.equal(counts.sum(axis=-1), n), total)


def _normal_vectors_log(x, mean=0.0, cov=1.0):
    x, mean, cov = float_of(x), float_of(mean), float_of(cov)
    size = x.shape[-1] if x.ndim else 1
    if cov.ndim < 2:
        cov = jnp.eye(size, dtype=cov.dtype) * cov
    factor = jnp.linalg.cholesky(cov)
    rest = (x - mean).reshape(*(x - mean).shape[: max((x - mean).ndim - 1, 0)], size)
    sizes = jnp.broadcast_shapes(rest.shape[:-1], factor.shape[:-2])
    factors, column = jnp.broadcast_to(factor, (*sizes, size, size)), jnp.broadcast_to(rest, (*sizes, size))[..., None]
    white = solve_triangular(factors, column, lower=True)[..., 0]
    spread = log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * (white * white).sum(axis=-1) - 0.5 * size * math.log(2 * math.pi) - spread


dirichlet = _Vectors("dirichlet", _dirichlet_log)
multinomial = _Counts("multinomial", _multinomial_log)
multivariate_normal = _Vectors("multivariate_normal", _normal_vectors_log)


def sem(a, axis=0, ddof=1, nan_policy="propagate", *, keepdims=False):
    """The deviation of the mean: the elements' deviation by the root of their number."""
    a = float_of(a)
    if nan_policy == "omit":
        count = (~jnp.isnan(a)).sum(axis=axis, keepdims=keepdims).astype(a.dtype)
        return jnp.nanstd(a, axis=axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count)
    if nan_policy != "propagate":
        raise Error(f"sem: nan_policy is {nan_policy!r} (allowed: propagate, omit)")
    return jnp.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(of_type(a.size if axis is None else a.shape[axis], a.real.dtype))


def rankdata(a, method="average", *, axis=None):
    """The place of each element in their order, from 1. Equal ones have the mean of their places, or with `method` the least (min) or largest (max),
    the number of distinct elements up to there (dense), or one each (ordinal)."""
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise Error(f"rankdata: method is {method!r} (allowed: average, min, max, dense, ordinal)")
    a = jnp.asarray(a)
    a = jnp.moveaxis(a.reshape(-1) if axis is None else a, 0 if axis is None else axis, -1)
    order = jnp.argsort(a, axis=-1, stable=True)
    place = jnp.argsort(order, axis=-1)
    ranks = _ranks(jnp.take_along_axis(a, order, axis=-1), place, method).astype("float32")
    ranks = where(jnp.isnan(a).any(axis=-1, keepdims=True), math.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, axis)


def _ranks(ascending, place, method):
    if method == "ordinal":
        return place + 1
    n = ascending.shape[-1]
    new = jnp.concatenate([jnp.ones_like(ascending[..., :1], dtype="bool"), jnp.not_equal(ascending[..., 1:], ascending[..., :-1])], -1)
    if method == "dense":
        return jnp.take_along_axis(jnp.cumsum(new.astype("int32"), axis=-1), place, axis=-1)
    at = jnp.broadcast_to(jnp.arange(n), new.shape)
    first = call("cummax", where(new, at, 0), -1)
    ends = jnp.concatenate([new[..., 1:], jnp.ones_like(new[..., :1])], -1)
    last = call("cummin", where(ends, at, n), -1, reverse=True)
    low, high = [jnp.take_along_axis(each, place, axis=-1) + 1 for each in (first, last)]
    return low if method == "min" else high if method == "max" else 0.5 * (low + high)


class ModeResult(NamedTuple):
    """The most frequent elements, and how often they are there."""

    mode: Any
    count: Any


def mode(a, axis=0, nan_policy="propagate", keepdims=False):
    """The most frequent element, the least of several, along an axis, and how often it is there."""
    if nan_policy != "propagate":
        raise Error(f"mode: nan_policy is {nan_policy!r} (allowed: propagate)")
    a = jnp.atleast_1d(jnp.asarray(a))
    ndim = a.ndim
    lines = jnp.moveaxis(a.reshape(-1) if axis is None else a, 0 if axis is None else axis, -1)
    ascending = jnp.sort(lines, axis=-1)
    counts = _ranks(ascending, jnp.broadcast_to(jnp.arange(lines.shape[-1]), lines.shape), "max") - _ranks(
        ascending, jnp.broadcast_to(jnp.arange(lines.shape[-1]), lines.shape), "min") + 1  # fmt: skip
    at = jnp.argmax(counts, axis=-1, keepdims=True)
    found = [jnp.take_along_axis(each, at, axis=-1)[..., 0] for each in (ascending, counts)]
    if keepdims:
        found = [each.reshape([1] * ndim) if axis is None else jnp.expand_dims(each, axis) for each in found]
    return ModeResult(*found)


class gaussian_kde:
    """A density by normal distributions about the columns of `dataset` (or its numbers), with `weights`. `bw_method`, by which their covariance is
    narrower than that of the data: scott, silverman, a number, or a function of this. A container of arrays."""

    def __init__(self, dataset, bw_method=None, weights=None):
        self.dataset = jnp.atleast_2d(float_of(dataset))
        d, n = self.dataset.shape
        if n < 2:
            raise Error(f"gaussian_kde: {self.dataset._type_text()} (allowed: two points and more)")
        weights = jnp.full(n, 1.0, self.dataset.dtype) if weights is None else float_of(weights).astype(self.dataset.dtype)
        if weights.shape != (n,):
            raise Error(f"gaussian_kde: weights of {weights._type_text()} for {n} points (allowed: as many)")
        self.weights = weights / jnp.sum(weights)
        self.neff = 1.0 / jnp.sum(self.weights**2)
        factor = self._factor("scott" if bw_method is None else bw_method)
        centred = self.dataset - (self.dataset @ self.weights)[:, None]
        self.covariance = (centred * self.weights) @ centred.T / (1.0 - 1.0 / self.neff) * factor**2
        self.inv_cov = jnp.linalg.inv(self.covariance)

    def _factor(self, method):
        if callable(method):
            return method(self)
        if method not in ("scott", "silverman") and isinstance(method, str):
            raise Error(f"gaussian_kde: bw_method is {method!r} (allowed: scott, silverman, a number, a function)")
        bases = {"scott": self.neff, "silverman": self.neff * (self.d + 2) / 4.0}
        return bases[method] ** (-1.0 / (self.d + 4)) if isinstance(method, str) else method

    @property
    def d(self):
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self):
        """The number of points."""
        return self.dataset.shape[1]

    def _columns(self, points):
        points = jnp.atleast_2d(float_of(points))
        points = points.T if points.shape[0] == 1 and points.shape[1] == self.d and self.d != 1 else points
        if points.shape[0] != self.d:
            raise Error(f"gaussian_kde: points of {points._type_text()} (allowed: {self.d} rows)")
        return points

    def logpdf(self, x):
        """The logarithm of the density at columns of x."""
        return _log_mixture(self._columns(x), self.dataset, self.weights, self.covariance)

    def pdf(self, x):
        """The density."""
        return exp(self.logpdf(x))

    evaluate = __call__ = pdf

    def integrate_gaussian(self, mean, cov):
        """The integral of the density times that of a normal distribution."""
        mean, cov = jnp.atleast_1d(float_of(mean)), jnp.atleast_2d(float_of(cov))
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise Error(f"gaussian_kde: {mean._type_text()} and {cov._type_text()} (allowed: {self.d} elements, and as many rows and columns)")
        return exp(_log_mixture(mean[:, None], self.dataset, self.weights, self.covariance + cov))[0]

    def integrate_box_1d(self, low, high):
        """The share between two numbers, of one dimension."""
        if self.d != 1:
            raise Error(f"integrate_box_1d: there are {self.d} dimensions (allowed: 1)")
        size = jnp.sqrt(self.covariance[0, 0])
        below = lambda x: special.ndtr((x - self.dataset[0]) / size)  # noqa: E731
        return jnp.sum(self.weights * (below(high) - below(low)))

    def integrate_kde(self, other):
        """The integral of the product of two densities."""
        if other.d != self.d:
            raise Error(f"integrate_kde: there are {self.d} and {other.d} dimensions (allowed: as many)")
        return exp(_log_mixture(other.dataset, self.dataset, self.weights, self.covariance + other.covariance)) @ other.weights

    def resample(self, key, shape=()):
        """Points drawn by a key: an array of the shape (d, *shape)."""
        from .. import random

        which, apart = random.split(key)
        centres = random.choice(which, self.n, shape, p=self.weights)
        factor = jnp.linalg.cholesky(self.covariance)
        noise = random.normal(apart, (self.d, *shape), self.dataset.dtype)
        return jnp.take(self.dataset, centres, axis=1) + jnp.tensordot(factor, noise, 1)

    def _parts(self):
        return (self.dataset, self.weights, self.neff, self.covariance, self.inv_cov), None

    @classmethod
    def _made(cls, _, parts):
        made = cls.__new__(cls)
        made.dataset, made.weights, made.neff, made.covariance, made.inv_cov = parts
        return made


def _log_mixture(points, centres, weights, covariance):
    """The logarithm of the density of normal distributions about columns, at columns."""
    factor = jnp.linalg.cholesky(covariance)
    at, about = (solve_triangular(factor, each, lower=True) for each in (points, centres))
    squares = jnp.sum((at[:, :, None] - about[:, None, :]) ** 2, axis=0)
    size = jnp.sum(log(jnp.diagonal(factor))) + 0.5 * centres.shape[0] * math.log(2 * math.pi)
    return special.logsumexp(log(weights) - 0.5 * squares, axis=-1) - size


_trees.register(gaussian_kde, gaussian_kde._parts, gaussian_kde._made)
