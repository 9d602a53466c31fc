"""Integrals of elementary functions, in f64 and c128."""
import functools
import math

from .. import numpy as jnp
from .._custom import custom_jvp
from ..numpy._base import call
from ..numpy.elementwise import cos, erf, exp, log, log1p, sin, where

_ROOT_PI = math.sqrt(math.pi)


def _horner(coefficients, x):
    total = 0.0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


# B2k / (2k + 1)!, k >= 1
_DILOGARITHM = [b / math.factorial(2 * k + 3) for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330))]


@custom_jvp
def spence(x):
    """By the powers of log(x) between 1/2 and 2, else by the reflections x -> 1 - x and 1 / x."""
    high = x > 2
    turned = where(high, 1.0 / where(high, x, 1.0), x)
    low = (turned >= 0) & (turned < 0.5)
    near_0 = where(low & (turned > 0), turned, 0.25)
    u = -where(low, log1p(-where(low, turned, 0.0)), log(where(low | ~(turned >= 0), 1.0, turned)))
    value = u * (1.0 - u / 4.0 + u * u * _horner(_DILOGARITHM, u * u))
    reflected = where(low & (turned > 0), log(near_0) * log1p(-near_0), 0.0)
    value = where(low, math.pi**2 / 6 - reflected - value, value)
    value = where(high, -0.5 * log(where(high, x, 1.0)) ** 2 - value, value)
    return where(x >= 0, value, math.nan)


@spence.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    distance = x - 1.0
    near = abs(distance) < 1e-3  # log(x) / (1 - x) by its series
    series = -_horner([(-1) ** k / (k + 1) for k in range(7)], where(near, distance, 0.0))
    return spence(x), dx * where(near, series, log(where(near, 2.0, x)) / -where(near, 1.0, distance))


_SERIES_END, _LEVELS = 4.0, 64


@custom_jvp
def sici(x):
    """Si(x) and Ci(x): series up to 4, beyond from E1(ix) by its continued fraction (Abramowitz & Stegun 5.1.22)."""
    size = abs(x)
    near, far = jnp.minimum(size, _SERIES_END), jnp.clip(size, _SERIES_END, 1e300)
    square = near * near
    sine = near * _horner([(-1) ** k / (math.factorial(2 * k + 1) * (2 * k + 1)) for k in range(16)], square)
    cosine = square * _horner([(-1) ** (k + 1) / (math.factorial(2 * k + 2) * (2 * k + 2)) for k in range(16)], square)
    z = call("complex", jnp.zeros_like(far), far)
    total = z + (1.0 + 2.0 * _LEVELS)
    for k in range(_LEVELS, 0, -1):
        total = z + (2.0 * k - 1.0) - k * k / total
    tail = call("complex", cos(far), -sin(far)) / total
    si = where(size <= _SERIES_END, sine, math.pi / 2 + tail.imag)
    ci = where(size <= _SERIES_END, jnp.euler_gamma + log(near) + cosine, -tail.real)
    infinite = jnp.equal(size, math.inf)
    si, ci = where(infinite, math.pi / 2, si), where(infinite, 0.0, ci)
    return where(x < 0, -si, si), where(x < 0, math.nan, ci)


@sici.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return sici(x), (dx * jnp.sinc(x / math.pi), dx * (cos(x) / x))


_NODES = 11
_STEP = math.sqrt(math.pi / (_NODES + 1))


def _sums(square):
    """Those of the midpoint rule and of the trapezoid rule but for its middle, of 2 h / pi e^-t^2 / (square - t^2)."""
    rule = lambda places: sum(2 * _STEP / math.pi * math.exp(-((k * _STEP) ** 2)) / (square - (k * _STEP) ** 2) for k in places)  # noqa: E731
    return rule([k + 0.5 for k in range(_NODES + 1)]), rule(range(1, _NODES + 1))


def _between_midpoints(x):
    """Whether x / h is far from whole numbers, where the trapezoid rule has its poles."""
    part = x / _STEP - jnp.floor(x / _STEP)
    return (part >= 0.25) & (part <= 0.75)


def _wofz_of_quadrant(z):
    """w(z) where both parts are not negative, by quadrature with the poles' residues (Al Azah and Chandler-Wilde 2021)."""
    x, y = z.real, z.imag
    high, between = y >= jnp.maximum(x, math.pi / _STEP), (y < x) & _between_midpoints(x)
    between = between & ~high
    square = z * z
    safe = lambda condition, other: where(condition, square, jnp.full_like(square, other))  # noqa: E731
    midpoints, trapezoids = _sums(safe(~between, 0.0))[0], _sums(safe(between, _STEP * _STEP / 4))[1]
    inner = where(high, jnp.full_like(z, 0.0), z)
    decay = exp(inner * complex(0.0, 2 * math.pi / _STEP))
    residue = 2.0 * exp(-inner * inner) * decay
    middle = z * midpoints * 1j
    by_midpoints = where(high, middle, middle + residue / (decay + 1.0))
    apart = where(between, decay - 1.0, jnp.full_like(z, 1.0))
    by_trapezoids = (_STEP / math.pi / where(between, z, jnp.full_like(z, 1.0)) + z * trapezoids) * 1j + residue / apart
    return where(between, by_trapezoids, by_midpoints)


@custom_jvp
def wofz(z):
    """By w(-conj z) = conj w(z) and w(-z) = 2 e^-z^2 - w(z)."""
    x, y = jnp.clip(z.real, -1e100, 1e100), jnp.clip(z.imag, -1e100, 1e100)
    value = _wofz_of_quadrant(call("complex", abs(x), abs(y)))
    left = (x < 0) != (y < 0)
    value = where(left, jnp.conj(value), value)
    below = y < 0
    bounded = where(below, call("complex", x, y), jnp.full_like(value, 0.0))
    return where(below, 2.0 * exp(-bounded * bounded) - value, value)


@wofz.defjvp
def _(primals, tangents):
    (z,), (dz,) = primals, tangents
    w = wofz(z)
    return w, dz * (2j / _ROOT_PI - 2.0 * z * w)


@custom_jvp
def dawsn(x):
    """The imaginary part of w(x)."""
    size = jnp.minimum(abs(x), 1e100)
    between = _between_midpoints(size)
    rest, middle = where(between, 0.0, size), where(between, size, _STEP / 2)
    angle = lambda at: math.pi * (at / _STEP - jnp.round(at / _STEP))  # noqa: E731
    by_midpoints = rest * _sums(rest * rest)[0] + exp(-rest * rest) * jnp.tan(angle(rest))
    by_trapezoids = _STEP / math.pi / middle + middle * _sums(middle * middle)[1] - exp(-middle * middle) / jnp.tan(angle(middle))
    value = _ROOT_PI / 2 * where(between, by_trapezoids, by_midpoints)
    value = where(abs(x) > 1e10, 0.5 / where(abs(x) > 1e10, abs(x), 1.0), value)
    return where(x < 0, -value, value)


@dawsn.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    y = dawsn(x)
    return y, dx * (1.0 - 2.0 * x * y)


_FRESNEL_END = 1.5


def _half_turns(x):
    """pi x^2 / 2, less whole turns, with what the square is rounded by."""
    square = x * x
    return math.pi / 2 * (jnp.remainder(square, 4.0) + call("fma", x, x, -square))


@custom_jvp
def fresnel(x):
    """S(x) and C(x): series up to 1.5, beyond from w."""
    size = abs(x)
    near, far = jnp.minimum(size, _FRESNEL_END), jnp.clip(size, _FRESNEL_END, 1e15)
    quarter = math.pi / 2 * near * near
    power = quarter * quarter
    s = near * quarter * _horner([(-1) ** k / (math.factorial(2 * k + 1) * (4 * k + 3)) for k in range(14)], power)
    c = near * _horner([(-1) ** k / (math.factorial(2 * k) * (4 * k + 1)) for k in range(14)], power)
    at = far * (_ROOT_PI / 2)
    turned = _half_turns(far)
    whole = 0.5 * (1 + 1j) * (1.0 - call("complex", cos(turned), sin(turned)) * _wofz_of_quadrant(call("complex", at, at)))
    s, c = where(size <= _FRESNEL_END, s, whole.imag), where(size <= _FRESNEL_END, c, whole.real)
    return where(x < 0, -s, s), where(x < 0, -c, c)


@fresnel.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    turned = _half_turns(x)
    return fresnel(x), (dx * sin(turned), dx * cos(turned))


@functools.cache
def _legendre():
    import numpy

    return [[float(each) for each in part] for part in numpy.polynomial.legendre.leggauss(40)]


def _owens_t_up_to_1(h, a):
    """By the rule of Gauss up to where e^(-h^2 x^2 / 2) is below all digits. Not negative h, 0 <= a <= 1."""
    end = jnp.minimum(a, 9.0 / jnp.maximum(h, 1e-3))
    total = 0.0
    for node, weight in zip(*_legendre()):
        square = (end * (0.5 * (node + 1.0))) ** 2
        total = total + weight * (exp(-0.5 * h * h * square) / (1.0 + square))
    return exp(-0.5 * h * h) * end * total * (0.25 / math.pi)


@custom_jvp
def owens_t(h, a):
    from .special import _ndtr

    size, slope = jnp.minimum(abs(h), 1e10), abs(a)
    steep = slope > 1
    product = where(steep, jnp.minimum(size * jnp.minimum(slope, 1e300), 1e10), 0.0)
    inside = _owens_t_up_to_1(where(steep, product, size), where(steep, 1.0 / where(steep, slope, 1.0), slope))
    p, q = _ndtr(-size), _ndtr(-product)
    value = where(steep, 0.5 * p + 0.5 * q - p * q - inside, inside)
    value = where(jnp.isnan(h) | jnp.isnan(a), math.nan, value)
    return where(a < 0, -value, value)


@owens_t.defjvp
def _(primals, tangents):
    (h, a), (dh, da) = primals, tangents
    by_a = exp(-0.5 * h * h * (1.0 + a * a)) / (2 * math.pi * (1.0 + a * a))
    by_h = -exp(-0.5 * h * h) * erf(a * h * math.sqrt(0.5)) / (2 * math.sqrt(2 * math.pi))
    return owens_t(h, a), dh * by_h + da * by_a
