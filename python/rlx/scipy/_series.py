"""Functions by their series and recurrences, in f64."""
import math

from .. import numpy as jnp
from .._control import fori_loop
from .._custom import custom_jvp
from ..numpy._base import call
from ..numpy.elementwise import cos, exp, log1p, sin, sqrt, where

_TERMS_1F1, _TERMS_2F1 = 700, 2000
_END_1F1, _END_2F1 = 300.0, 0.98


def _sum(terms, ratio, like):
    """1 and what comes by the ratios of a term to that before it."""
    one = jnp.ones_like(like)

    def step(k, state):
        term, total = state
        term = term * ratio(k.astype(one.dtype))
        return term, total + term

    return fori_loop(0, terms, step, (one, one))[1]


def hyp1f1(a, b, x):
    """By its series, left of 0 by Kummer's transformation."""
    inside = abs(x) <= _END_1F1
    left, size = x < 0, where(inside, abs(x), 0.0)
    first = where(left, b - a, a)
    total = _sum(_TERMS_1F1, lambda k: (first + k) / (b + k) * (size / (k + 1.0)), first + b + size)
    return where(inside, where(left, exp(-size), 1.0) * total, math.nan)


def _whole_below_1(a):
    return (a <= 0) & jnp.equal(a, jnp.floor(a))


def hyp2f1(a, b, c, x):
    """By its series, left of 0 by Pfaff's transformation, at 1 by Gauss's theorem."""
    from .special import _gamma, gammasgn

    ends = _whole_below_1(a) | _whole_below_1(b)
    left = (x < 0) & ~ends
    moved = where(left, x / (where(left, x, 0.0) - 1.0), x)
    inside = ends | (moved <= _END_2F1)
    at, second = where(inside, moved, 0.0), where(left, c - b, b)
    total = _sum(_TERMS_2F1, lambda k: (a + k) * (second + k) / ((c + k) * (k + 1.0)) * at, a + second + c + at)
    value = where(left, exp(-a * log1p(-where(left, x, 0.0))), 1.0) * total
    at_1 = jnp.equal(x, 1.0) & ~ends
    top, less_a, less_b = where(at_1, c, 1.0), where(at_1, c - a, 1.0), where(at_1, c - b, 1.0)
    sums = where(at_1 & (c - a - b > 0), c - a - b, 1.0)
    limit = _gamma(top) * _gamma(sums) / (_gamma(less_a) * _gamma(less_b))
    limit = where(c - a - b > 0, limit, gammasgn(c) * gammasgn(a) * gammasgn(b) * math.inf)
    return where(at_1, limit, where(inside, value, math.nan))


def _bessel(z, v, start):
    """J0 .. Jv by Miller's recurrence from an order where they vanish, with J0 + 2 J2 + 2 J4 + ... = 1."""
    zero = abs(z) < 1e-100
    z = where(zero, 1.0, z)
    above, here, total, kept = jnp.zeros_like(z), jnp.full_like(z, 1e-300), jnp.zeros_like(z), []
    for k in range(start, 0, -1):
        above, here = here, (2.0 * k / z) * here - above
        scale = where(abs(here) > 1e150, jnp.full_like(z, 1e-200), 1.0)
        above, here, total = above * scale, here * scale, total * scale
        kept = [each * scale for each in kept]
        if k - 1 <= v:
            kept.append(here)
        if k % 2 == 1:
            total = total + (here if k == 1 else 2.0 * here)
    return [where(zero, float(order == 0), each / total) for order, each in enumerate(reversed(kept))]


def _orders(z, v, start):
    return jnp.stack(_bessel(z, v, start))


_ruled = custom_jvp(_orders, nondiff_argnums=(1, 2))


@_ruled.defjvp
def _(v, start, primals, tangents):
    (z,), (dz,) = primals, tangents
    more = _ruled(z, v + 1, start + 1)
    return more[: v + 1], jnp.concatenate([-more[1:2], 0.5 * (more[:v] - more[2 : v + 2])]) * dz


def bessel_jn(z, v, n_iter):
    return _ruled(z, v, max(v, n_iter) + 10)


def sph_harm_y(n, m, theta, phi, diff_n):
    """By the recurrences of normalised Legendre functions, which do not overflow: along the diagonal up to |m|, then up to n <= most."""
    order, x, s = abs(m), cos(theta), sin(theta)
    here = jnp.broadcast_to(jnp.full_like(x, math.sqrt(0.25 / math.pi)), jnp.broadcast_shapes(n.shape, m.shape, theta.shape))
    for k in range(1, diff_n + 1):
        here = where(k <= order, here * (-math.sqrt((2 * k + 1) / (2 * k)) * s), here)
    before = jnp.zeros_like(here)
    for k in range(1, diff_n + 1):
        active = (k > order) & (k <= n)
        scale = sqrt((4.0 * k * k - 1.0) / where(active, k * k - order * order, 1.0))
        back = sqrt(jnp.maximum((k - 1) ** 2 - order * order, 0.0) / abs(4.0 * (k - 1) ** 2 - 1.0))
        here, before = where(active, scale * (x * here - back * before), here), where(active, here, before)
    odd = jnp.equal(jnp.remainder(order, 2.0), 1.0)
    value = where(order > n, 0.0, where((m < 0) & odd, -here, here))
    return call("complex", value * cos(m * phi), value * sin(m * phi))
