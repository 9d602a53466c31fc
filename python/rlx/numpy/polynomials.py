"""Polynomials by their coefficients, the highest power first, and windows."""
import builtins
import math

from .._conversions import asarray
from .._core import Dim, DType, Error
from .._dtypes import as_dtype
from ._base import array_of, call, float_of, public
from .arrangement import concatenate, moveaxis, reshape
from .creation import _distances, _is_end, arange, eye, linspace, ones, zeros
from .elementwise import abs, cos, maximum, pow, sqrt, where
from .linalg import eigvals, lstsq
from .numbers import i0
from .products import matmul
from .statistics import convolve


def polyval(p, x):
    """The values at x, by Horner's rule; by powers where the number of coefficients is a symbol."""
    p, x = array_of(p), array_of(x)
    if p.ndim == 1 and isinstance(p.shape[0], Dim):
        return matmul(reshape(vander(reshape(x, -1), p.shape[0]), [*x.shape, -1]), p)
    total = zeros(x.shape, (p[:1] * x.reshape(-1)[:1]).dtype)
    for i in range(p.shape[0]):
        total = total * x + p[i]
    return total


def _padded(a, b):
    a, b = array_of(a), array_of(b)
    n = max(a.shape[0], b.shape[0])
    return [concatenate([zeros(n - each.shape[0], each.dtype), each], 0) for each in (a, b)]


def polyadd(a, b):
    a, b = _padded(a, b)
    return a + b


def polysub(a, b):
    a, b = _padded(a, b)
    return a - b


def polymul(a, b):
    return convolve(a, b)


def polyder(p, m=1):
    """The m-th derivative."""
    p = array_of(p)
    for _ in range(m):
        p = p[:-1] * arange(p.shape[0] - 1, 0, -1).astype(p.dtype)
    return p


def polyint(p, m=1, k=0):
    """The m-th integral, with the constant k."""
    p = float_of(p)
    for _ in range(m):
        p = concatenate([p / arange(p.shape[0], 0, -1).astype(p.dtype), zeros(1, p.dtype) + k], 0)
    return p


def poly(seq_of_zeros):
    """The polynomial with these roots."""
    seq_of_zeros = float_of(seq_of_zeros)
    p = ones(1, seq_of_zeros.dtype)
    for i in range(seq_of_zeros.shape[0]):
        p = concatenate([p, zeros(1, p.dtype)], 0) - concatenate([zeros(1, p.dtype), p * seq_of_zeros[i]], 0)
    return p


def roots(p, strip_zeros=True):
    """The complex numbers where a polynomial is 0. How many there are depends on zeros in front, so that it must be known, unless there are none."""
    import numpy

    p = float_of(p)
    if not strip_zeros:
        n = p.shape[0] - 1
        companion = concatenate([(-p[1:] / p[0])[None], eye(n - 1, n, dtype=p.dtype)], 0) if n else zeros((0, 0), p.dtype)
        return eigvals(companion)
    return asarray(numpy.roots(p.numpy()).astype("complex128" if p.dtype in (DType.f64, DType.c128) else "complex64"))


def vander(x, N=None, increasing=False):
    """The powers of a vector, one row for each element."""
    x = array_of(x)
    if x.ndim != 1:
        raise Error(f"vander: {x._type_text()} (allowed: one axis)")
    N = x.shape[0] if N is None else N
    if isinstance(N, Dim):
        return pow(x[:, None], (arange(N) if increasing else arange(N - 1, -1, -1)).astype(x.dtype))
    columns = [ones(x.shape, x.dtype)]
    for _ in range(N - 1):
        columns.append(columns[-1] * x)
    return call("stack", columns if increasing else columns[::-1], 1) if N else zeros((x.shape[0], 0), x.dtype)


def polyfit(x, y, deg, w=None):
    """The polynomial of that degree with the least squares of its distances, each times its weight in w."""
    x, y = float_of(x), float_of(y)
    a = vander(x, deg + 1)
    if w is not None:
        w = float_of(w)
        a, y = a * w[:, None], y * (w if y.ndim == 1 else w[:, None])
    scale = sqrt((a * a).sum(axis=0))
    solution = lstsq(a / scale, y)[0]
    return solution / (scale if y.ndim == 1 else scale[:, None])


def _cosines(n, *weights):
    if n < 2:
        return ones(n)
    at = arange(n).astype("float32") * (2 * math.pi / (n - 1))
    return sum((-1) ** k * weight * cos(at * float(k)) for k, weight in enumerate(weights))


def hanning(n):
    return _cosines(n, 0.5, 0.5)


def hamming(n):
    return _cosines(n, 0.54, 0.46)


def blackman(n):
    return _cosines(n, 0.42, 0.5, 0.08)


def bartlett(n):
    return 1 - abs(linspace(-1, 1, n)) if n > 1 else ones(n)


def kaiser(n, beta):
    if n < 2:
        return ones(n)
    return i0(beta * sqrt(maximum(1 - linspace(-1, 1, n) ** 2.0, 0))) / i0(float(beta))


def _wide(dtype):
    """f64 where that is wanted."""
    return DType.f64 if dtype is not None and as_dtype(dtype) == DType.f64 else None


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Powers of `base` at equal distances of the exponent. Arrays as ends give them along a new axis."""
    exponents = linspace(start, stop, num, endpoint, dtype=_wide(dtype), axis=axis)
    return pow(float(base), exponents).astype(dtype or exponents.dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Numbers of equal ratios. Arrays as ends give them along a new axis."""
    places = arange(num)
    if isinstance(start, (int, float)) and isinstance(stop, (int, float)) and start * stop > 0:
        sign = -1.0 if start < 0 else 1.0
        values = logspace(math.log10(sign * start), math.log10(sign * stop), num, endpoint, dtype=_wide(dtype)) * sign
        start, stop = float(start), float(stop)
    else:
        start, stop = [float_of(end).astype(_wide(dtype) or float_of(end).dtype) for end in (start, stop)]
        places = places.reshape([-1] + [1] * builtins.max(start.ndim, stop.ndim))
        ratio = stop / start
        values = start * pow(ratio, (places.astype(ratio.dtype) / _distances(num, endpoint)).astype(ratio.dtype))
    values = where(call("eq", places, 0), start, values)
    values = where(_is_end(num).reshape(places.shape), stop, values) if endpoint else values
    return moveaxis(values, 0, axis).astype(dtype or values.dtype)


def polydiv(a, v):
    """Quotient and remainder."""
    a, v = float_of(a), float_of(v)
    quotient = []
    for _ in range(a.shape[0] - v.shape[0] + 1):
        quotient.append(a[0] / v[0])
        a = a[1:] - concatenate([v[1:] * quotient[-1], zeros(a.shape[0] - v.shape[0], a.dtype)], 0)
    return (call("stack", quotient) if quotient else zeros(1, a.dtype)), a


__all__ = public(globals())
