"""Functions of scipy.special over rlx.Array, of each element; operands broadcast, integers count as f32."""
import builtins
import math

from .. import numpy as jnp
from .._custom import custom_jvp
from .._core import DType, Error
from ..numpy._base import call, float_of, integers_of, public
from ..numpy.elementwise import digamma, erf, erfc, exp, expm1, log, log1p, sqrt, where
from ..numpy.reductions import logsumexp
from . import _exponential_integrals, _integrals, _series

psi = digamma
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _floats(*xs):
    """All as floats of one type; numbers of Python take the type of what they meet."""
    arrays = [x if isinstance(x, (bool, int, float)) else float_of(x) for x in xs]
    if builtins.all(isinstance(x, (bool, int, float)) for x in arrays):
        return [float_of(x) for x in arrays]
    dtype = jnp.result_type(*[x if not isinstance(x, (bool, int)) else float(x) for x in arrays])
    return [jnp.asarray(float(x), dtype) if isinstance(x, (bool, int, float)) else x.astype(dtype) for x in arrays]


def _safe(condition, x, otherwise):
    """x where the condition holds: what is computed of it elsewhere, and its derivative, is finite."""
    return where(condition, x, jnp.asarray(otherwise, x.dtype))


def gammaln(x):
    """log |gamma(x)|."""
    return call("lgamma", float_of(x))


def gammasgn(x):
    """The sign of gamma(x); NaN at -1, -2, ..."""
    x = float_of(x)
    whole = jnp.floor(x)
    odd = jnp.not_equal(jnp.remainder(whole, 2.0), 0.0)
    sign = where(x < 0, where(odd, -1.0, 1.0), where(jnp.signbit(x), -1.0, 1.0)).astype(x.dtype)
    return where(jnp.isnan(x) | ((x < 0) & jnp.equal(x, whole)), math.nan, sign)


def _in_f64(function, *xs):
    """The function of the operands in f64, rounded to their type: what cancels in an exponent would leave f32 few digits."""
    xs = _floats(*xs)
    return function(*(x.astype(DType.f64) for x in xs)).astype(xs[0].dtype)


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_FAR = 8.0  # from here on Stirling's series has all digits of f64


def _stirling(x):
    """log gamma(x) less (x - 1/2) log(x) - x + log(2 pi) / 2, of x >= 8."""
    inverse, total = 1.0 / x, 0.0
    for coefficient in reversed(_STIRLING):
        total = total * (inverse * inverse) + coefficient
    return total * inverse


def _gamma_factors(x):
    """Two factors of gamma(x), x >= 0, finite up to 250: an exponent of gammaln would lose as many digits as it has."""
    far = x > _FAR
    z, rest = jnp.minimum(_safe(far, x, _FAR), 250.0), _safe(~far, x, 1.0)
    power = jnp.power(z, 0.5 * z - 0.25)
    small = rest < 1
    product, rest = where(small, 1.0 / _safe(small, rest, 1.0), 1.0), where(small, rest + 1.0, rest)
    for _ in range(6):  # gamma(x) = (x - 1) gamma(x - 1)
        beyond = rest > 2
        rest = where(beyond, rest - 1.0, rest)
        product = where(beyond, product * rest, product)
    return where(far, math.sqrt(2 * math.pi) * exp(_stirling(z)) * power, product * exp(gammaln(rest))), where(far, power / exp(z), 1.0)


@custom_jvp
def _gamma(x):
    negative, fraction = x < 0, x - jnp.round(x)
    first, second = _gamma_factors(abs(x))
    # gamma(x) gamma(-x) = -pi / (x sin(pi x))
    mirrored = math.pi / abs(jnp.sin(math.pi * _safe(negative, fraction, 0.5))) / _safe(negative, abs(x) * first, 1.0) / second
    return gammasgn(x) * where(negative, mirrored, first * second)


@_gamma.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    y = _gamma(x)
    return y, dx * (y * digamma(x))


def gamma(x):
    """The integral of t^(x - 1) e^-t from 0 to infinity, and its continuation."""
    return _in_f64(_gamma, x)


def factorial(n, exact=False):
    """n!; 0 for n < 0."""
    # n + 1 is rounded
    product = lambda n: where(n < 1, _gamma(where(n < 1, n, 0.0) + 1.0), n * _gamma(_safe(n >= 1, n, 1.0)))
    return _in_f64(lambda n: where(n < 0, 0.0, product(_safe(~(n < 0), n, 0.0))), n)


def _log_rise(z, m):
    """log |gamma(z + m) / gamma(z)|. Far from 0 the two would cancel: by Stirling's series there (Didonato and Morris 1992)."""
    both = z + m
    far = (z >= _FAR) & (both >= _FAR) & (jnp.maximum(z, both) < math.inf)
    start, end, change = _safe(far, z, _FAR), _safe(far, both, _FAR), _safe(far, m, 0.0)
    near = abs(change) < 0.5 * start
    ratio = where(near, log1p(where(near, change / start, 0.0)), log(end / start))
    rise = (start - 0.5) * ratio + change * (log(end) - 1.0) + (_stirling(end) - _stirling(start))
    rise = where(far, rise, where(jnp.equal(z, math.inf), m * math.inf, gammaln(both) - gammaln(z)))
    return where(jnp.equal(m, 0.0), 0.0, rise)


def _whole(x):
    return jnp.equal(x, jnp.floor(x))


def _between_poles(z, m):
    """Whether gamma has poles at z and z + m, and the sign of its ratio there: gamma(1 - z) / gamma(1 - z - m) times (-1)^m."""
    return (z <= 0) & (z + m <= 0) & _whole(z) & _whole(m), where(jnp.equal(jnp.remainder(m, 2.0), 0.0), 1.0, -1.0)


def comb(N, k, exact=False, repetition=False):
    """How many ways there are to choose k of N things; with `repetition` each as often as wanted."""
    N, k = _floats(N, k)
    if repetition:
        return comb(N + k - 1.0, k)
    return _in_f64(_comb, N, k)


def _comb(N, k):
    fits = (k <= N) & (N >= 0) & (k >= 0)
    n, m = _safe(fits, N, 1.0), _safe(fits, k, 1.0)
    m = jnp.minimum(m, n - m)
    return where(fits, exp(_log_rise(n - m + 1.0, m) - gammaln(m + 1.0)), 0.0)


def _poch(z, m):
    poles, sign = _between_poles(z, m)
    sign = where(poles, sign, gammasgn(z + m) * gammasgn(z))
    product = sign * exp(_log_rise(where(poles, 1.0 - z - m, z), m))
    return where((z <= 0) & _whole(z) & ~poles & ~jnp.isnan(m), 0.0, product)


def poch(z, m):
    """gamma(z + m) / gamma(z)."""
    return _in_f64(_poch, z, m)


def _betaln(a, b):
    p, q = jnp.minimum(a, b), jnp.maximum(a, b)
    poles, _ = _between_poles(p, q)
    return gammaln(where(poles, q, p)) - _log_rise(where(poles, 1.0 - p - q, q), where(poles, q, p))


def _beta(a, b):
    p, q = jnp.minimum(a, b), jnp.maximum(a, b)
    poles, sign = _between_poles(p, q)
    return where(poles, sign * gammasgn(q), gammasgn(a) * gammasgn(b) * gammasgn(a + b)) * exp(_betaln(a, b))


def betaln(a, b):
    """log |B(a, b)|."""
    return _in_f64(_betaln, a, b)


def beta(a, b):
    """gamma(a) gamma(b) / gamma(a + b)."""
    return _in_f64(_beta, a, b)


def betainc(a, b, x):
    """The incomplete beta integral from 0 to x, divided by the complete one."""
    return call("betainc", *_floats(a, b, x))


def gammainc(a, x):
    """The incomplete gamma integral from 0 to x, divided by gamma(a)."""
    return call("igamma", *_floats(a, x))


def gammaincc(a, x):
    """1 - gammainc."""
    return call("igammac", *_floats(a, x))


def multigammaln(a, d):
    """log of the gamma function of d dimensions."""
    a = float_of(a)
    return sum((gammaln(a - i / 2.0) for i in range(d)), a * 0.0 + d * (d - 1) / 4.0 * math.log(math.pi))


def zeta(x, q=1.0):
    """The sum over k >= 0 of (q + k)^-x."""
    return call("zeta", *_floats(x, q))


def polygamma(n, x):
    """The n-th derivative of digamma."""
    return _in_f64(_polygamma, n, x)


def _polygamma(n, x):
    first, second = _gamma_factors(_safe(n > 0, n, 1.0) + 1.0)  # n! alone overflows
    derivative = where(jnp.equal(jnp.remainder(n, 2.0), 0.0), -1.0, 1.0) * (first * zeta(_safe(n > 0, n, 1.0) + 1.0, x) * second)
    return where(jnp.equal(n, 0.0), digamma(x), derivative)


def erfinv(y):
    """x with erf(x) = y."""
    return call("erf_inv", float_of(y))


def expit(x):
    """1 / (1 + e^-x)."""
    return call("sigmoid", float_of(x))


def logit(p):
    """log(p / (1 - p))."""
    p = float_of(p)
    return log(p) - log1p(-p)


def softmax(x, axis=None):
    """e^x divided by its sum over axes."""
    x = float_of(x)
    return exp(x - logsumexp(x, axis, keepdims=True)) if axis is None or isinstance(axis, tuple) else call("softmax", x, axis)


def log_softmax(x, axis=None):
    """log of softmax."""
    x = float_of(x)
    return x - logsumexp(x, axis, keepdims=True)


def _product(log, base):
    """x log(y), 0 where x is 0; there, too, its derivative by x is log(y). That of `log` is 1 / (y + base)."""

    @custom_jvp
    def product(x, y):
        zero = jnp.equal(x, 0.0) & ~jnp.isnan(y)
        return where(zero, x * 0.0, x * log(_safe(~zero, y, 1.0)))

    @product.defjvp
    def _(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return product(x, y), dx * log(y) + dy * x / (y + base)

    return product


_x_log_y, _x_log1p_y = _product(log, 0.0), _product(log1p, 1.0)


def xlogy(x, y):
    """x log(y), 0 where x is 0."""
    return _x_log_y(*_floats(x, y))


def xlog1py(x, y):
    """x log(1 + y), 0 where x is 0."""
    return _x_log1p_y(*_floats(x, y))


@custom_jvp
def _x_log_x(x):
    return _x_log_y(x, x)


@_x_log_x.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _x_log_x(x), dx * (log(x) + 1.0)


def entr(x):
    """-x log(x); 0 at 0, -infinity below."""
    x = float_of(x)
    return where(x < 0, -math.inf, -_x_log_x(_safe(~(x < 0), x, 1.0)))


def rel_entr(p, q):
    """p log(p / q); 0 where p is 0 and q >= 0, infinity where else one is not above 0."""
    p, q = _floats(p, q)
    both, zero = (p > 0) & (q > 0), jnp.equal(p, 0.0) & (q >= 0)
    safe_p, safe_q = _safe(both, p, 1.0), _safe(both, q, 1.0)
    return where(jnp.isnan(p) | jnp.isnan(q), math.nan, where(both, safe_p * (log(safe_p) - log(safe_q)), where(zero, 0.0, math.inf)))


def kl_div(p, q):
    """rel_entr(p, q) - p + q."""
    p, q = _floats(p, q)
    outside = ((p < 0) | (q < 0)) & ~jnp.isnan(p) & ~jnp.isnan(q)
    return where(outside, math.inf, rel_entr(p, q) - p + q)


def _power_change(log_x, lmbda):
    """(e^(lmbda log_x) - 1) / lmbda. Where the exponent is small by its series, whose derivatives by lmbda hold at 0, too."""
    exponent = lmbda * log_x
    small = (abs(exponent) < 1e-2) | jnp.equal(lmbda, 0.0)
    inside = where(abs(exponent) < 1e-2, exponent, 0.0)
    series = 1.0 + inside / 2.0 * (1.0 + inside / 3.0 * (1.0 + inside / 4.0 * (1.0 + inside / 5.0 * (1.0 + inside / 6.0))))
    return where(small, log_x * series, expm1(_safe(~small, exponent, 1.0)) / _safe(~small, lmbda, 1.0))


def boxcox(x, lmbda):
    """(x^lmbda - 1) / lmbda, log(x) where lmbda is 0."""
    x, lmbda = _floats(x, lmbda)
    return _power_change(log(x), lmbda)


def boxcox1p(x, lmbda):
    """boxcox(1 + x, lmbda)."""
    x, lmbda = _floats(x, lmbda)
    return _power_change(log1p(x), lmbda)


def ndtr(x):
    """The share of a normal distribution below x."""
    return _widely(_ndtr, x)


@custom_jvp
def _ndtr(x):
    """By gelu(x) = x ndtr(x), which has the digits of the tail that x sqrt(1/2) rounds off. Beyond 40 nothing changes."""
    tiny = abs(x) < 1e-30
    inside = where(tiny, 1.0, jnp.clip(x, -40.0, 40.0))
    return where(tiny, 0.5, call("gelu", inside) / inside)


@_ndtr.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _ndtr(x), dx * exp(_norm_logpdf(x))


def _norm_logpdf(x):
    return -0.5 * x * x - _HALF_LOG_2PI


class _Tail:
    """Far below 0 ndtr is the density times `series` / -far (Abramowitz & Stegun 26.2.12)."""

    def __init__(self, x):
        edge = -20.0 if x.dtype.name == "f64" else -8.0
        self.near = x > edge
        self.inside, self.far = _safe(self.near, x, 0.0), _safe(~self.near, x, edge)
        inverse = 1.0 / (self.far * self.far)
        self.series = 1.0
        for odd in range(17, 0, -2):
            self.series = 1.0 - odd * inverse * self.series


def log_ndtr(x):
    """log of ndtr, far below 0 too."""
    return _widely(_log_ndtr, x)


def _widely(function, x):
    """Of narrow floats in f32, where what is between the steps neither vanishes nor overflows."""
    x = float_of(x)
    return function(x) if x.dtype.name in ("f32", "f64") else function(x.astype("float32")).astype(x.dtype)


@custom_jvp
def _log_ndtr(x):
    tail = _Tail(x)
    inside = tail.inside
    middle = where(inside > 0, log1p(-_ndtr(-abs(inside))), log(_ndtr(where(inside > 0, 0.0, inside))))
    return where(tail.near, middle, _norm_logpdf(tail.far) - log(-tail.far) + log(tail.series))


@_log_ndtr.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    tail = _Tail(x)
    return _log_ndtr(x), dx * where(tail.near, exp(_norm_logpdf(tail.inside) - _log_ndtr(tail.inside)), -tail.far / tail.series)


def ndtri(p):
    """x with ndtr(x) = p."""
    return _ndtri(float_of(p))


@custom_jvp
def _ndtri(p):
    small = _safe((p > 0) & (p < 1), where(p < 0.5, p, 1.0 - p), 0.25)
    goal = log(small)
    x = -sqrt(-2.0 * goal)
    for _ in range(7):  # Newton's steps on log ndtr, which is concave
        y = log_ndtr(x)
        x = x - (y - goal) * exp(y - _norm_logpdf(x))
    x = where(p < 0.5, x, -x)
    x = where(jnp.equal(p, 0.5), 0.0, x)
    edge = where(jnp.equal(p, 0.0), -math.inf, where(jnp.equal(p, 1.0), math.inf, math.nan))
    return where((p > 0) & (p < 1), x, edge)


@_ndtri.defjvp
def _(primals, tangents):
    (p,), (dp,) = primals, tangents
    x = _ndtri(p)
    return x, dp * exp(-_norm_logpdf(x))


def i0e(x):
    """e^-|x| I0(x), I0 the modified Bessel function of order 0."""
    return call("bessel_i0e", float_of(x))


def i1e(x):
    """e^-|x| I1(x), I1 the modified Bessel function of order 1."""
    return call("bessel_i1e", float_of(x))


def i0(x):
    """The modified Bessel function of order 0."""
    return _i0(float_of(x))


@custom_jvp
def _i0(x):
    half = exp(abs(x) * 0.5)  # the whole one is infinite earlier than the result
    return half * (half * i0e(x))


@_i0.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _i0(x), dx * i1(x)


def i1(x):
    """The modified Bessel function of order 1."""
    x = float_of(x)
    half = exp(abs(x) * 0.5)
    return half * (half * i1e(x))


def expn(n, x):
    """The integral of e^(-x t) / t^n over t >= 1, of integers n >= 0."""
    return _in_f64(_exponential_integrals.expn, n, x)


def exp1(x):
    """The integral of e^-t / t from x to infinity."""
    return expn(1.0, x)


def expi(x):
    """The integral of e^t / t from -infinity to x, its principal value."""
    return _in_f64(_exponential_integrals.expi, x)


def spence(z):
    """The integral of log(t) / (1 - t) from 1 to z; NaN below 0."""
    return _in_f64(_integrals.spence, z)


def _pair_in_f64(function, x):
    x = float_of(x)
    return tuple(each.astype(x.dtype) for each in function(x.astype(DType.f64)))


def sici(x):
    """The integral of sin(t) / t from 0 to x, and that of cos(t) / t from infinity to x, which is NaN below 0."""
    return _pair_in_f64(_integrals.sici, x)


def fresnel(x):
    """The integrals of sin(pi t^2 / 2) and of cos(pi t^2 / 2) from 0 to x."""
    return _pair_in_f64(_integrals.fresnel, x)


def dawsn(x):
    """e^(-x^2) times the integral of e^(t^2) from 0 to x."""
    return _in_f64(_integrals.dawsn, x)


def wofz(z):
    """e^(-z^2) erfc(-i z) of complex numbers."""
    z = float_of(z)
    narrow = z.dtype in (DType.f64, DType.c128)
    return _integrals.wofz(z.astype(DType.c128)).astype(DType.c128 if narrow else DType.c64)


def owens_t(h, a):
    """The integral of e^(-h^2 (1 + x^2) / 2) / (1 + x^2) from 0 to a, divided by 2 pi."""
    return _in_f64(_integrals.owens_t, h, a)


def hyp1f1(a, b, x):
    """The sum over k of (a)_k / (b)_k x^k / k!, of |x| up to 300; else NaN. Where x < 0 and a > b digits cancel, the more the larger these are."""
    return _in_f64(_series.hyp1f1, a, b, x)


def hyp2f1(a, b, c, x):
    """The sum over k of (a)_k (b)_k / (c)_k x^k / k! and its continuation, of -49 <= x <= 0.98, x = 1, and all x where a or b ends it; else NaN."""
    return _in_f64(_series.hyp2f1, a, b, c, x)


def bessel_jn(z, *, v, n_iter=50):
    """The Bessel functions of the first kind of the orders 0 .. v, along a new axis 0; |z| up to some 20 below `n_iter`, where the recurrence starts."""
    z = float_of(z)
    return _series.bessel_jn(z.astype(DType.f64), v, n_iter).astype(z.dtype)


def sph_harm_y(n, m, theta, phi, diff_n=None, n_max=None):
    """Spherical harmonics of the degree n and the order m at the angle theta from the pole and phi around it. `n_max` is the largest n, which must be
    given where n is not known."""
    if diff_n:
        raise Error(f"sph_harm_y: diff_n is {diff_n} (allowed: None; grad gives derivatives)")
    n, m = (integers_of("sph_harm_y", each) for each in (n, m))
    most = int(jnp.max(n)) if n_max is None else n_max
    theta, phi = _floats(theta, phi)
    y = _series.sph_harm_y(*(each.astype(DType.f64) for each in (n, m, theta, phi)), most)
    return y if theta.dtype == DType.f64 else y.astype(DType.c64)


def erfcx(x):
    """e^(x^2) erfc(x)."""
    return _widely(_erfcx, x)


def _erfcx(x):
    tail = _Tail(x * -math.sqrt(2.0))
    near = where(tail.near, x, 0.0)
    square = near * near
    power = exp(square) * (1.0 + call("fma", near, near, -square))  # with what the square is rounded by
    return where(tail.near, power * erfc(near), tail.series * math.sqrt(2.0 / math.pi) / -tail.far)


def bernoulli(n):
    """The Bernoulli numbers B0 .. Bn."""
    from fractions import Fraction

    numbers = [Fraction(1)]
    for m in range(1, n + 1):
        numbers.append(-sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return jnp.asarray([float(each) for each in numbers], "float32")


loggamma = gammaln
__all__ = [*public(globals()), "digamma", "psi", "erf", "erfc", "logsumexp"]
