"""Exponential integrals (Abramowitz & Stegun 5.1), in f64."""
import math

from .. import numpy as jnp
from .._custom import custom_jvp
from ..numpy.elementwise import digamma, exp, log, where

_NEAR, _FAR = 2.0, 40.0  # up to here a series, from here on a fraction; that of expi goes on to the second
_TERMS, _LEVELS, _MANY = 30, 48, 120


def _series(x):
    """The sum of x^k / (k k!) over k >= 1, for x <= 40."""
    total = 0.0
    for k in range(_MANY, 0, -1):
        total = (total + 1.0 / k) * (x / k) if k > 1 else (total + 1.0) * x
    return total


def _fraction(n, x):
    """e^x En(x) of x >= 2, by 5.1.22."""
    total = x + n + 2.0 * _LEVELS
    for k in range(_LEVELS, 0, -1):
        total = x + n + 2.0 * (k - 1) - k * (n + k - 1.0) / total
    return 1.0 / total


def _near_0(n, x, factorial):
    """En(x) of 0 < x <= 2 and n >= 1, by 5.1.12; `factorial` is (n - 1)!."""
    total, power = 0.0, jnp.ones_like(x)
    for m in range(_TERMS):
        here = jnp.equal(n, m + 1.0)
        total = total - where(here, 0.0, power / where(here, 1.0, m - n + 1.0))
        power = power * (-x) / (m + 1.0)
    sign = where(jnp.equal(jnp.remainder(n, 2.0), 0.0), -1.0, 1.0)
    return sign * jnp.power(x, n - 1.0) / factorial * (digamma(n) - log(x)) + total


@custom_jvp
def expn(n, x):
    """En(x) of integers n >= 0."""
    from .special import _gamma

    whole = where((n >= 0) & jnp.equal(n, jnp.floor(n)), n, 1.0)
    above = where(whole >= 1, whole, 1.0)
    far = where(x > _NEAR, x, _NEAR)
    near = where((x > 0) & (x <= _NEAR), x, 1.0)
    value = where(x > _NEAR, exp(-far) * _fraction(above, far), _near_0(above, near, _gamma(above)))
    value = where(jnp.equal(x, 0.0), where(above > 1, 1.0 / where(above > 1, above - 1.0, 1.0), math.inf), value)
    value = where(jnp.equal(whole, 0.0), exp(-x) / x, value)
    return where((x < 0) | (n < 0) | jnp.not_equal(n, whole) | jnp.isnan(x), math.nan, where(jnp.equal(x, math.inf), 0.0, value))


@expn.defjvp
def _(primals, tangents):
    (n, x), (_, dx) = primals, tangents
    before = where(n >= 1, expn(where(n >= 1, n - 1.0, 0.0), x), (1.0 + 1.0 / x) * exp(-x) / x)
    return expn(n, x), -dx * before


@custom_jvp
def expi(x):
    """Ei(x)."""
    below = -expn(jnp.ones_like(x), where(x < 0, -x, 1.0))
    inside = where((x > 0) & (x < _FAR), x, 1.0)
    near = jnp.euler_gamma + log(inside) + _series(inside)
    far, total = where(x >= _FAR, x, _FAR), 0.0
    for k in range(int(_FAR), 0, -1):
        total = (total + 1.0) * k / far
    half = exp(0.5 * far)  # e^x alone is infinite earlier
    value = where(x < 0, below, where(x < _FAR, near, half * ((1.0 + total) / far) * half))
    return where(jnp.equal(x, 0.0), -math.inf, where(jnp.equal(x, math.inf), math.inf, where(jnp.isnan(x), math.nan, value)))


@expi.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return expi(x), dx * (exp(x) / x)
