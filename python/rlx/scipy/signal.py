"""Functions of scipy.signal over rlx.Array."""
import math

from .. import lax
from .. import numpy as jnp
from .._array import place_of
from .._core import Dim, Error
from ..numpy._base import array_of, call, float_of

_MODES = ("full", "same", "valid")


def _pair(name, x, y, mode):
    """Both as floats of one type, and whether the second is the larger one."""
    x, y = float_of(x), float_of(y)
    if mode not in _MODES:
        raise Error(f"{name}: mode is {mode!r} (allowed: {', '.join(_MODES)})")
    if x.ndim != y.ndim or x.size == 0 or y.size == 0:
        raise Error(f"{name}: operands are {x._type_text()} and {y._type_text()} (allowed: equally many axes, at least one element)")
    dtype = jnp.result_type(x, y)
    return x.astype(dtype), y.astype(dtype)


def _swapped(name, x, y):
    symbolic = [any(isinstance(size, Dim) for size in each.shape) for each in (x, y)]
    if symbolic[0] != symbolic[1]:
        return symbolic[1]
    if all(a >= b for a, b in zip(x.shape, y.shape)):
        return False
    if all(a <= b for a, b in zip(x.shape, y.shape)):
        return True
    raise Error(f"{name}: the shapes are {x.shape} and {y.shape} (allowed: one of them is the larger along all axes)")


def _centred(full, sizes):
    """The middle of an array."""
    return full[tuple(slice((n - size) // 2, (n - size) // 2 + size) for n, size in zip(full.shape, sizes))]


def _ends(x, y, mode, full):
    """What `mode` keeps of the full result."""
    if mode == "full":
        return full
    return _centred(full, x.shape if mode == "same" else [abs(a - b) + 1 for a, b in zip(x.shape, y.shape)])


def _direct(name, x, y, mode):
    x, y = _pair(name, x, y, mode)
    if jnp.iscomplexobj(x):
        parts = [[_direct(name, a, b, mode) for b in (jnp.real(y), jnp.imag(y))] for a in (jnp.real(x), jnp.imag(x))]
        return call("complex", parts[0][0] - parts[1][1], parts[0][1] + parts[1][0])
    long, short = (y, x) if _swapped(name, x, y) else (x, y)
    padding = [(size - 1, size - 1) for size in short.shape]
    full = lax.conv_general_dilated(long[None, None], jnp.flip(short)[None, None], [1] * x.ndim, padding)[0, 0]
    return _ends(x, y, mode, full)


def convolve(in1, in2, mode="full", method="auto", precision=None):
    """The sum of in1[j] in2[i - j] over j, along all axes: all of it, what is centred as in1 (same), or what no end enters (valid). `method` direct or
    fft, by itself the former."""
    if method not in ("auto", "direct", "fft"):
        raise Error(f"convolve: method is {method!r} (allowed: auto, direct, fft)")
    return fftconvolve(in1, in2, mode) if method == "fft" else _direct("convolve", in1, in2, mode)


def fftconvolve(in1, in2, mode="full", axes=None):
    """convolve along some axes by Fourier transforms; the others have equal sizes."""
    x, y = _pair("fftconvolve", in1, in2, mode)
    axes = sorted(place_of(axis, x.ndim) for axis in (range(x.ndim) if axes is None else axes if isinstance(axes, (tuple, list)) else [axes]))
    if any(x.shape[i] != y.shape[i] for i in range(x.ndim) if i not in axes):
        raise Error(f"fftconvolve: the shapes are {x.shape} and {y.shape} (allowed: equal sizes outside of the axes {tuple(axes)})")
    if mode == "valid":
        _swapped("fftconvolve", x, y)
    sizes = [x.shape[i] + y.shape[i] - 1 for i in axes]
    forward, back = (jnp.fft.fftn, jnp.fft.ifftn) if jnp.iscomplexobj(x) else (jnp.fft.rfftn, jnp.fft.irfftn)
    full = back(forward(x, sizes, axes) * forward(y, sizes, axes), sizes, axes).astype(x.dtype)
    if mode == "full":
        return full
    kept = [x.shape[i] if mode == "same" or i not in axes else abs(x.shape[i] - y.shape[i]) + 1 for i in range(x.ndim)]
    return _centred(full, kept)


def correlate(in1, in2, mode="full", method="auto", precision=None):
    """The sum of in1[j + i] conj(in2[j]) over j; as convolve."""
    return convolve(in1, jnp.flip(jnp.conj(array_of(in2))), mode, method)


def _of_planes(name, in1, in2, boundary, fillvalue):
    if boundary != "fill" or fillvalue != 0:
        raise Error(f"{name}: boundary is {boundary!r}, fillvalue {fillvalue} (allowed: fill with 0)")
    if array_of(in1).ndim != 2 or array_of(in2).ndim != 2:
        raise Error(f"{name}: operands are {array_of(in1)._type_text()} and {array_of(in2)._type_text()} (allowed: of two axes)")


def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """convolve of matrices."""
    _of_planes("convolve2d", in1, in2, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode)


def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0, precision=None):
    """correlate of matrices."""
    _of_planes("correlate2d", in1, in2, boundary, fillvalue)
    if mode != "same":
        return _direct("correlate2d", in1, jnp.flip(jnp.conj(array_of(in2))), mode)
    return jnp.flip(_direct("correlate2d", jnp.flip(array_of(in1)), jnp.conj(array_of(in2)), mode))  # SciPy's centre of even sizes


def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=None):  # noqa: A002
    """The data without their mean (constant) or the line that fits them best; one for each part between breakpoints."""
    x = float_of(data)
    if type == "constant":
        return x - x.mean(axis=axis, keepdims=True)
    if type != "linear":
        raise Error(f"detrend: type is {type!r} (allowed: linear, constant)")
    x = jnp.moveaxis(x, axis, -1)
    n = x.shape[-1]
    edges = sorted({0, n, *(int(each) for each in (bp if isinstance(bp, (tuple, list)) else [bp]))})
    if edges[0] < 0 or edges[-1] > n:
        raise Error(f"detrend: breakpoints are {bp} (allowed: 0..{n})")
    parts = [_without_line(x[..., begin:end]) for begin, end in zip(edges, edges[1:])]
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


def _without_line(x):
    n = x.shape[-1]
    t = (jnp.arange(n) - (n - 1) / 2).astype(x.dtype)
    rest = x - x.mean(axis=-1, keepdims=True)
    return rest - t * (rest * t).sum(axis=-1, keepdims=True) * (12 / (n * (n * n - 1)) if n > 1 else 0)


# The numbers before 1, -cos x, cos 2 x where x goes once around.
_WINDOWS = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46), "blackman": (0.42, 0.5, 0.08), "boxcar": (1.0,)}


def _cosines(factors, n):
    return [sum(factor * (-1) ** k * math.cos(2 * math.pi * i * k / n) for k, factor in enumerate(factors)) for i in range(n)]


def _window(window, nperseg, most, dtype):
    """The window, and how long segments are."""
    if not isinstance(window, str):
        window = array_of(window)
        if window.ndim != 1 or window.shape[0] > most or nperseg not in (None, window.shape[0]):
            raise Error(f"a window is {window._type_text()}, nperseg {nperseg} (allowed: one axis of nperseg elements, at most {most})")
        return window.astype(dtype), window.shape[0]
    if window not in _WINDOWS:
        raise Error(f"the window is {window!r} (allowed: an array, {', '.join(_WINDOWS)})")
    n = min(256 if nperseg is None else nperseg, most)
    if n < 1:
        raise Error(f"nperseg is {n} (allowed: 1 and more)")
    return jnp.asarray(_cosines(_WINDOWS[window], n) if n > 1 else [1.0], dtype), n


def _odd(x, n):
    return jnp.concatenate([2 * x[..., :1] - jnp.flip(x[..., 1 : n + 1], -1), x, 2 * x[..., -1:] - jnp.flip(x[..., -n - 1 : -1], -1)], -1) if n else x


def _padded(mode):
    return lambda x, n: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode=mode)


_EXTENSIONS = {None: lambda x, n: x, "even": _padded("reflect"), "odd": _odd, "constant": _padded("edge"), "zeros": _padded("constant")}


def _segments(x, n, step):
    """Segments of n elements each `step`, along a new axis before the last."""
    count = (x.shape[-1] - n) // step + 1
    return jnp.take(x, jnp.arange(count)[:, None] * step + jnp.arange(n), axis=-1)


def _steps(n, noverlap, nfft):
    noverlap, nfft = n // 2 if noverlap is None else noverlap, n if nfft is None else nfft
    if noverlap >= n or nfft < n:
        raise Error(f"noverlap is {noverlap}, nfft {nfft} (allowed: less than nperseg, at least nperseg, which is {n})")
    return n - noverlap, nfft


def _trendless(kind):
    if kind in ("constant", "linear"):
        return lambda x: detrend(x, type=kind)
    return kind if callable(kind) else lambda x: x


def _spectra(xs, window, n, step, nfft, kind, onesided):
    """The Fourier transforms of the segments of each signal."""
    pieces = [_trendless(kind)(_segments(x, n, step)) * window for x in xs]
    return [jnp.fft.rfft(each, nfft) if onesided else jnp.fft.fft(each, nfft) for each in pieces]


def _signal(x, axis):
    return jnp.moveaxis(float_of(x), axis, -1)


def stft(x, fs=1.0, window="hann", nperseg=256, noverlap=None, nfft=None, detrend=False, return_onesided=True, boundary="zeros", padded=True, axis=-1):
    """Frequencies, times and the Fourier transforms of segments that overlap, along the last axis."""
    if boundary not in _EXTENSIONS:
        raise Error(f"stft: boundary is {boundary!r} (allowed: {', '.join(map(str, _EXTENSIONS))})")
    axis = place_of(axis, array_of(x).ndim)
    x = _signal(x, axis)
    window, n = _window(window, None if nperseg == 256 and not isinstance(window, str) else nperseg, x.shape[-1], jnp.real(x).dtype)
    step, nfft = _steps(n, noverlap, nfft)
    x = _EXTENSIONS[boundary](x, n // 2)
    if padded:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, (-(x.shape[-1] - n) % step) % n)])
    onesided = return_onesided and not jnp.iscomplexobj(x)
    result = _spectra([x], window, n, step, nfft, detrend, onesided)[0] / window.sum()
    times = (jnp.arange(result.shape[-2]) * step + (0 if boundary else n / 2)) / fs
    return _frequencies(nfft, fs, onesided), times, jnp.moveaxis(result, -1, axis)


def _frequencies(nfft, fs, onesided):
    return (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(nfft, 1 / fs)


def csd(x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", return_onesided=True, scaling="density", axis=-1,
        average="mean"):  # fmt: skip
    """Frequencies and the cross power of two signals (Welch 1967), a density or with scaling spectrum a power, averaged over segments."""
    axis = place_of(axis, array_of(x).ndim)
    xs = [_signal(x, axis)] if y is None else [_signal(each, axis) for each in (x, y)]
    most = max(each.shape[-1] for each in xs)
    xs = [jnp.pad(each, [(0, 0)] * (each.ndim - 1) + [(0, most - each.shape[-1])]) for each in xs]
    window, n = _window(window, nperseg, most, jnp.real(xs[0]).dtype)
    step, nfft = _steps(n, noverlap, nfft)
    if scaling not in ("density", "spectrum") or average not in ("mean", "median"):
        raise Error(f"csd: scaling is {scaling!r}, average {average!r} (allowed: density or spectrum, mean or median)")
    onesided = return_onesided and not any(jnp.iscomplexobj(each) for each in xs)
    spectra = _spectra(xs, window, n, step, nfft, detrend, onesided)
    power = jnp.conj(spectra[0]) * spectra[-1] / (fs * (window * window).sum() if scaling == "density" else window.sum() ** 2)
    if onesided:
        twice = jnp.ones(power.shape[-1]).at[1 : None if nfft % 2 else -1].set(2.0)
        power = power * twice.astype(window.dtype)
    power = _average(power if y is not None else jnp.real(power), average)
    return _frequencies(nfft, fs, onesided), jnp.moveaxis(power, -1, axis)


def _average(power, average):
    count = power.shape[-2]
    if average == "mean" or count == 1:
        return power.mean(axis=-2)
    bias = 1 + sum(1 / (k + 1) - 1 / k for k in range(2, 2 * ((count - 1) // 2) + 1, 2))
    middle = lambda x: jnp.median(x, axis=-2) / bias
    return call("complex", middle(jnp.real(power)), middle(jnp.imag(power))) if jnp.iscomplexobj(power) else middle(power)


def welch(x, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", return_onesided=True, scaling="density", axis=-1,
          average="mean"):  # fmt: skip
    """Frequencies and the power of a signal, as csd."""
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


def istft(Zxx, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True, boundary=True, time_axis=-1, freq_axis=-2):
    """Times and the signal whose stft this is, by the windows' weights."""
    z = array_of(Zxx)
    axes = place_of(freq_axis, z.ndim), place_of(time_axis, z.ndim)
    z = jnp.moveaxis(z, axes, (-1, -2))  # segments before frequencies
    whole = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    window, n = _window(window, whole if nperseg is None and isinstance(window, str) else nperseg, whole if nfft is None else nfft, jnp.real(z).dtype)
    step, nfft = _steps(n, noverlap, (whole + 1 if input_onesided and n == whole + 1 else n) if nfft is None else nfft)
    pieces = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(z, nfft)[..., :n] * window.sum()
    count = z.shape[-2]
    at = jnp.arange(count)[:, None] * step + jnp.arange(n)
    length = n + (count - 1) * step
    x = jnp.zeros((*z.shape[:-2], length), pieces.dtype).at[..., at].add(pieces * window)
    weights = jnp.zeros(length, window.dtype).at[at].add(jnp.broadcast_to(window * window, at.shape))
    cut = n // 2 if boundary else 0
    x, weights = x[..., cut : length - cut], weights[cut : length - cut]
    x = x / jnp.where(weights > 1e-10, weights, 1.0)
    return jnp.arange(x.shape[-1]) / fs, x


__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch"]
