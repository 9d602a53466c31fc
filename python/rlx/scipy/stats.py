"""Distributions, as in scipy.stats: rlx.scipy.stats.norm.logpdf(x, loc, scale)."""
# mypy: disable-error-code="misc"
import math

from .. import numpy as jnp
from ..numpy._base import float_of
from ..numpy.elementwise import abs, exp, log, log1p, where
from . import special


class _Distribution:
    """Of a location and a scale. `_log` is the logarithm of the density of the standard one, `_below` its share below x, `_inverse` the other way."""

    def __init__(self, name, log_density, below=None, inverse=None, log_below=None):
        self.name, self._log, self._below, self._inverse, self._log_below = name, log_density, below, inverse, log_below

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
        return 1.0 - self.cdf(x, *shape, loc=loc, scale=scale)

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
            from .._core import Error

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


norm = _Distribution("norm", lambda x: -0.5 * x * x - 0.5 * math.log(2 * math.pi), special.ndtr, special.ndtri, special.log_ndtr)
uniform = _Distribution("uniform", lambda x: _inside((x >= 0) & (x <= 1), x * 0.0), lambda x: jnp.clip(x, 0.0, 1.0), lambda q: q)
expon = _Distribution("expon", lambda x: _inside(x >= 0, -x), lambda x: where(x > 0, -jnp.expm1(-x), 0.0), lambda q: -log1p(-q))
laplace = _Distribution("laplace", lambda x: -abs(x) - math.log(2.0), lambda x: where(x > 0, 1.0 - 0.5 * exp(-abs(x)), 0.5 * exp(-abs(x))),
                        lambda q: where(q > 0.5, -log(2.0 * (1.0 - q)), log(2.0 * q)))  # fmt: skip
logistic = _Distribution("logistic", lambda x: -abs(x) - 2.0 * log1p(exp(-abs(x))), special.expit, special.logit)
cauchy = _Distribution("cauchy", lambda x: -math.log(math.pi) - log1p(x * x), lambda x: 0.5 + jnp.arctan(x) / math.pi, lambda q: jnp.tan(math.pi * (q - 0.5)))
gamma = _Distribution("gamma", _gamma_log, lambda x, a: special.gammainc(a, where(x > 0, x, 0.0)))
chi2 = _Distribution("chi2", lambda x, df: _gamma_log(x * 0.5, df * 0.5) - math.log(2.0), lambda x, df: special.gammainc(df * 0.5, where(x > 0, x * 0.5, 0.0)))
beta = _Distribution("beta", _beta_log, lambda x, a, b: special.betainc(a, b, jnp.clip(x, 0.0, 1.0)))
t = _Distribution("t", _t_log)
pareto = _Distribution("pareto", lambda x, b: _inside(x >= 1, log(b) - (b + 1.0) * log(where(x >= 1, x, 1.0))))


class _Discrete:
    """Of integers. `_log` is the logarithm of the probability."""

    def __init__(self, name, log_probability):
        self.name, self._log = name, log_probability

    def __repr__(self):
        return f"rlx.scipy.stats.{self.name}"

    def logpmf(self, k, *shape, loc=0):
        """The logarithm of the probability."""
        return self._log(float_of(k) - loc, *[float_of(each) for each in shape])

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
