"""Averages, quantiles, histograms, correlations, and reductions that leave NaN out."""
import builtins
import math

from .._conversions import asarray
from .._core import DType, Dim, Error
from .._dtypes import is_complex, is_floating
from .._indexing import number_of
from ._base import array_of, axes_of, call, float_of, of_type, place_of, public, written
from .arrangement import concatenate, expand_dims, moveaxis, reshape, searchsorted, sort, stack
from .creation import arange, linspace, zeros
from .elementwise import clip, conj, floor, isfinite, isnan, logical_not, maximum, real, sqrt, where
from .products import matmul
from .reductions import any, argmax, argmin, cumprod, cumsum, diff, max, mean, min, prod, std, sum, var


def ptp(x, axis=None, out=None, keepdims=False):
    """The largest element less the smallest, over axes."""
    return written(max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims), out)


def average(x, axis=None, weights=None, returned=False, keepdims=False):
    """The mean by weights, which have the shape of x or that of one axis; with `returned` also their sum."""
    x = float_of(x)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        count = math.prod(x.shape[each] for each in axes_of(x, axis))
        return (result, zeros(result.shape, result.dtype) + asarray(count).astype(result.dtype)) if returned else result
    weights = float_of(weights)
    if weights.ndim != x.ndim:
        weights = reshape(weights, [-1 if i == place_of(axis, x.ndim) else 1 for i in range(x.ndim)])
    weights = weights + zeros(x.shape, x.dtype)
    total = sum(weights, axis, keepdims=keepdims)
    result = sum(x * weights, axis, keepdims=keepdims) / total
    return (result, total) if returned else result


def _lines(x, axis, keepdims):
    """x with the axes joined to a last one, and a function that gives results their shape."""
    x = float_of(x)
    axes = sorted(place_of(each, x.ndim) for each in axes_of(x, axis))
    kept = [i for i in range(x.ndim) if i not in axes]
    lines = reshape(call("transpose", x, kept + axes), [x.shape[i] for i in kept] + [math.prod(x.shape[i] for i in axes)])
    return lines, lambda result: expand_dims(result, axes) if keepdims else result


# Of continuous methods what moves the positions, as in NumPy: from the front, and from the back.
_MOVED = {"linear": (1, 1), "lower": (1, 1), "higher": (1, 1), "nearest": (1, 1), "midpoint": (1, 1), "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5),
          "weibull": (0, 0), "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8)}  # fmt: skip


def _place_of_quantile(counts, q, method):
    """Where it lies in a sorted line; between two elements a fraction."""
    if method in _MOVED:
        front, back = _MOVED[method]
        return counts * q + (front + q * (1 - front - back)) - 1
    if method == "inverted_cdf":
        return -floor(-counts * q) - 1
    if method == "averaged_inverted_cdf":
        at = counts * q - 1
        return where(call("eq", at, floor(at)), at + 0.5, -floor(-at))
    if method == "closest_observation":
        at = counts * q - 1.5
        is_even = call("eq", floor(at * 0.5) * 2, floor(at))
        return floor(at) + where(call("logical_or", is_even, call("ne", at, floor(at))), 1.0, 0.0)
    raise Error(f"quantile: method is {method!r} (allowed: {', '.join(_MOVED)}, inverted_cdf, averaged_inverted_cdf, closest_observation)")


def _quantile(lines, counts, q, method):
    """Of sorted lines whose first `counts` elements count."""
    at = maximum(call("min", _place_of_quantile(counts, q, method), counts - 1), 0.0)
    low, high = floor(at), -floor(-at)
    last = number_of(lines.shape[-1], "int32", lines) - 1
    ends = [call("take_along_axis", lines, clip(each, 0, last).astype("int32"), -1) for each in (low, high)]
    others = {"lower": ends[0], "higher": ends[1], "midpoint": ends[0] * 0.5 + ends[1] * 0.5}
    if method == "nearest":
        return where(call("eq", call("round", at), low), ends[0], ends[1])
    if method in others:
        return others[method]
    part, step = at - low, ends[1] - ends[0]
    apart = ends[0] * (1 - part) + ends[1] * part  # infinities, and numbers whose difference would be one
    return where(isfinite(step), ends[0] + step * part, where(call("eq", part, 0.0), ends[0], apart))


def _quantiles(x, q, axis, keepdims, method, without_nan):
    lines, shaped = _lines(x, axis, keepdims)
    lines = sort(lines)  # NaN is the largest
    nan = isnan(lines)
    count = sum(logical_not(nan), -1, keepdims=True).astype(lines.dtype) if without_nan else of_type(number_of(lines.shape[-1], "int32", lines), lines.dtype)
    q = of_type(q, lines.dtype)
    results = [_quantile(lines, count + zeros([*lines.shape[:-1], 1], lines.dtype), each, method)[..., 0] for each in (q.reshape(-1) if q.ndim else [q])]
    if not without_nan:
        results = [where(any(nan, -1), math.nan, result) for result in results]
    results = [shaped(result) for result in results]
    if q.ndim > 1:
        return reshape(stack(results), [*q.shape, *results[0].shape])
    return stack(results) if q.ndim else results[0]


def quantile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """The element below which the share q of the elements over axes lies; q is a number or an array, whose axes come first."""
    return written(_quantiles(x, q, axis, keepdims, method, False), out)


def _share(percent):
    return percent / 100 if isinstance(percent, (int, float)) else float_of(percent) / 100.0


def percentile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """As quantile, q in percent."""
    return quantile(x, _share(q), axis, out, overwrite_input, method, keepdims)


def median(x, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The element in the middle, or the mean of the two that are."""
    return quantile(x, 0.5, axis, out, overwrite_input, "linear", keepdims)


def nanquantile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """As quantile, without NaN."""
    return written(_quantiles(x, q, axis, keepdims, method, True), out)


def nanpercentile(x, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    """As percentile, without NaN."""
    return nanquantile(x, _share(q), axis, out, overwrite_input, method, keepdims)


def nanmedian(x, axis=None, out=None, overwrite_input=False, keepdims=False):
    """As median, without NaN."""
    return nanquantile(x, 0.5, axis, out, overwrite_input, "linear", keepdims)


def _filled(x, value):
    x = array_of(x)
    return where(isnan(x), value, x) if is_floating(x.dtype) or is_complex(x.dtype) else x


def nansum(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """As sum, without NaN."""
    return sum(_filled(x, 0.0), axis, dtype, out, keepdims, initial, where)


def nanprod(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """As prod, without NaN."""
    return prod(_filled(x, 1.0), axis, dtype, out, keepdims, initial, where)


def nancumsum(x, axis=None, dtype=None, out=None):
    """As cumsum, NaN counting as 0."""
    return cumsum(_filled(x, 0.0), axis, dtype, out)


def nancumprod(x, axis=None, dtype=None, out=None):
    """As cumprod, NaN counting as 1."""
    return cumprod(_filled(x, 1.0), axis, dtype, out)


def _numbers(x, axis, where=None):
    return sum(logical_not(isnan(float_of(x))), axis, keepdims=True, where=where)


def _extreme(function, worst, x, axis, keepdims, initial, chosen):
    result = function(_filled(x, worst), axis, keepdims=keepdims, initial=initial, where=chosen)
    if not is_floating(result.dtype) or initial is not None:
        return result
    return where(_without_numbers(x, axis, result, keepdims), math.nan, result)


def _without_numbers(x, axis, result, keepdims):
    """Where the elements behind a result are NaN alone."""
    none = call("eq", _numbers(x, axis), 0)
    return none if keepdims else reshape(none, result.shape)


def nanmax(x, axis=None, out=None, keepdims=False, initial=None, where=None):
    """As max, without NaN; NaN where there is nothing else."""
    return written(_extreme(max, -math.inf, x, axis, keepdims, initial, where), out)


def nanmin(x, axis=None, out=None, keepdims=False, initial=None, where=None):
    """As min, without NaN; NaN where there is nothing else."""
    return written(_extreme(min, math.inf, x, axis, keepdims, initial, where), out)


def nanargmax(x, axis=None, keepdims=False):
    """As argmax, without NaN; -1 where there is nothing else, which NumPy calls an error."""
    return _place_of_extreme(argmax, -math.inf, x, axis, keepdims)


def nanargmin(x, axis=None, keepdims=False):
    """As argmin, without NaN; -1 where there is nothing else, which NumPy calls an error."""
    return _place_of_extreme(argmin, math.inf, x, axis, keepdims)


def _place_of_extreme(place, worst, x, axis, keepdims):
    found = place(_filled(x, worst), axis, keepdims)
    return where(_without_numbers(x, axis, found, keepdims), -1, found)


def nanmean(x, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """As mean, without NaN."""
    total = nansum(x, axis, dtype, keepdims=True, where=where)
    return written(_reduced(total / _numbers(x, axis, where).astype(total.dtype), x, axis, keepdims), out)


def _reduced(result, x, axis, keepdims):
    x = array_of(x)
    axes = [place_of(each, x.ndim) for each in axes_of(x, axis)]
    return result if keepdims else reshape(result, [size for i, size in enumerate(x.shape) if i not in axes])


def nanvar(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """As var, without NaN."""
    x = float_of(x) if dtype is None else array_of(x).astype(dtype)
    changes = _filled(x - (nanmean(x, axis, keepdims=True, where=where) if mean is None else mean), 0.0)
    total = sum(real(changes * conj(changes)), axis, keepdims=True, where=where)
    return written(_reduced(total / (_numbers(x, axis, where) - ddof).astype(total.dtype), x, axis, keepdims), out)


def nanstd(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """As std, without NaN."""
    return written(sqrt(nanvar(x, axis, dtype, None, ddof, keepdims, where, mean)), out)


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    """The covariances of variables, which are rows, or columns without `rowvar`; observations may have whole numbers that they were seen
    (fweights) and weights (aweights)."""
    m = float_of(m)
    m = reshape(m, (1, -1)) if m.ndim < 2 else m if rowvar else m.mT
    if y is not None:
        y = float_of(y)
        m = concatenate([m, reshape(y, (1, -1)) if y.ndim < 2 else y if rowvar else y.mT], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    if fweights is not None or aweights is not None:
        return _weighted_cov(m, ddof, 1.0 if fweights is None else float_of(fweights), 1.0 if aweights is None else float_of(aweights))
    m = m - mean(m, 1, keepdims=True)
    count = m.shape[1]
    freedom = maximum(asarray(count) - ddof, 0).astype(m.real.dtype) if isinstance(count, Dim) else float(builtins.max(count - ddof, 0))
    result = matmul(m, conj(m.mT)) / freedom
    return result.reshape() if result.shape == (1, 1) else result


def _weighted_cov(m, ddof, often, weights):
    w = often * weights
    total = sum(w)
    m = m - sum(m * w, 1, keepdims=True) / total
    result = matmul(m * w, conj(m.mT)) / (total - ddof * sum(w * weights) / total)
    return result.reshape() if result.shape == (1, 1) else result


def corrcoef(x, y=None, rowvar=True):
    """The correlations of variables; as cov."""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    size = sqrt(call("real", call("diagonal", c, 0, 1)) if c.dtype in (DType.c64, DType.c128) else call("diagonal", c, 0, 1))
    return c / size[:, None] / size[None, :]


def bincount(x, weights=None, minlength=0, length=None):
    """How often each of the numbers 0, 1, ... is in x, or the sum of its weights. Without `length` the largest must be known."""
    x = array_of(x)
    if length is None:
        length = builtins.max(minlength, int(max(x)) + 1 if x.size else 0)
    values = 1 if weights is None else array_of(weights)
    return zeros(length, DType.i32 if weights is None else values.dtype).at[x].add(values)


def digitize(x, bins, right=False):
    """Which of the bins each element is in, whose edges rise or fall."""
    bins = array_of(bins)
    side = "left" if right else "right"
    rising = searchsorted(bins, x, side)
    if bins.shape[0] in (0, 1):  # a vector whose size is a symbol has its ends
        return rising
    return where(bins[-1] >= bins[0], rising, bins.shape[0] - searchsorted(bins[::-1], x, side))


def histogram_bin_edges(x, bins=10, range=None, weights=None):  # noqa: A002
    """The edges of bins: as they are given, or so many of one width between the ends of `range`, or of x, which must be known then."""
    if not isinstance(bins, int):
        return float_of(bins)
    low, high = range if range is not None else (float(min(x)), float(max(x))) if array_of(x).size else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=DType.f64 if array_of(x).dtype == DType.f64 else DType.f32)


def histogram(x, bins=10, range=None, weights=None, density=False):  # noqa: A002
    """How many elements are in each bin, the last with its upper edge, and the edges; with `density` their share over the width."""
    x = float_of(x).reshape(-1)
    edges = histogram_bin_edges(x, bins, range).astype(x.dtype)
    count = edges.shape[0] - 1
    at = where(call("eq", x, edges[-1]), count - 1, searchsorted(edges, x, "right") - 1)
    at = where((x >= edges[0]) & (x <= edges[-1]), at, count)  # one more for what lies outside
    values = 1 if weights is None else array_of(weights).reshape(-1)
    counts = zeros(count + 1, DType.i32 if weights is None else values.dtype).at[at].add(values)[:count]
    if not density:
        return counts, edges
    counts = counts.astype(x.dtype)
    return counts / (sum(counts) * (edges[1:] - edges[:-1])), edges


def histogramdd(sample, bins=10, range=None, weights=None, density=False):  # noqa: A002
    """How many rows of `sample` (N, D), or vectors of D coordinates, lie in each box, and the edges along each axis; as histogram."""
    x = stack([float_of(each) for each in sample], 1) if isinstance(sample, (list, tuple)) else float_of(sample)
    count = x.shape[1]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    ranges = [None] * count if range is None else range
    edges, place, inside = [], 0, True
    for i, (each, limits) in enumerate(zip(bins, ranges)):
        column = x[:, i]
        line = histogram_bin_edges(column, each, limits).astype(x.dtype)
        at = where(call("eq", column, line[-1]), line.shape[0] - 2, searchsorted(line, column, "right") - 1)
        inside = (column >= line[0]) & (column <= line[-1]) & inside
        place = place * (line.shape[0] - 1) + at
        edges.append(line)
    sizes = [line.shape[0] - 1 for line in edges]
    total = math.prod(sizes)
    values = 1 if weights is None else array_of(weights).reshape(-1)
    kind = DType.i32 if weights is None else values.dtype
    counts = zeros(total + 1, kind).at[where(inside, place, total)].add(values)[:total].reshape(sizes)
    if not density:
        return counts, edges
    counts = counts.astype(x.dtype)
    for i, line in enumerate(edges):
        counts = counts / reshape(line[1:] - line[:-1], [-1 if k == i else 1 for k, _ in enumerate(edges)])
    return counts / sum(values if weights is not None else inside.astype(x.dtype)), edges


def histogram2d(x, y, bins=10, range=None, weights=None, density=False):  # noqa: A002
    """The same of points (x, y): the counts, and the edges along both axes."""
    if not isinstance(bins, int) and array_of(bins[0]).ndim == 0 and len(bins) != 2:
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, weights, density)
    return counts, edges[0], edges[1]


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral of what runs linearly between points."""
    y = moveaxis(float_of(y), axis, -1)
    widths = dx if x is None else diff(float_of(x) if array_of(x).ndim == 1 else moveaxis(float_of(x), axis, -1))
    return sum((y[..., 1:] + y[..., :-1]) * widths, -1) * 0.5


def correlate(a, v, mode="valid"):
    """The sums of products of two vectors that are shifted against each other."""
    a, v = array_of(a), array_of(v)
    if mode != "full" and a.size < v.size:  # which full ones need not know
        return conj(correlate(v, a, mode)[::-1])
    return convolve(a, conj(v[::-1]), mode)


def convolve(a, v, mode="full"):
    """The convolution of two vectors. Modes: full, same, valid."""
    a, v = float_of(a), float_of(v)
    if a.ndim != 1 or v.ndim != 1 or mode not in ("full", "same", "valid"):
        raise Error(f"convolve: {a._type_text()}, {v._type_text()}, mode {mode!r} (allowed: vectors; full, same, valid)")
    n, m = a.shape[0], v.shape[0]
    places = arange(n + m - 1)[:, None] - arange(m)[None, :]
    number = number_of(n, places.dtype, a)
    inside = (places >= 0) & (places < number)
    full = matmul(where(inside, a[clip(places, 0, number - 1)], 0.0), v)
    if mode == "full":
        return full
    short, long = builtins.min(n, m), builtins.max(n, m)
    begin, size = {"same": ((short - 1) // 2, long), "valid": (short - 1, long - short + 1)}[mode]
    return full[begin : begin + size]


__all__ = public(globals())
