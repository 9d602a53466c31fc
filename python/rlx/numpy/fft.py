"""Discrete Fourier transforms. `n` cuts or fills an axis with zeros first; `norm` is backward, ortho or forward: where it is divided."""

from .._conversions import asarray
from .._core import Dim, DType, Error
from .._dtypes import is_complex
from ._base import call, float_of, of_type, place_of, public, sizes_of
from .arrangement import concatenate, roll, take
from .creation import arange, zeros
from .elementwise import conj, remainder, sqrt, where


def _complex(x):
    x = float_of(x)
    if is_complex(x.dtype):
        return x
    return x.astype(DType.c128 if x.dtype == DType.f64 else DType.c64)


def _fitted(x, n, axis):
    """The axis cut or filled to n elements."""
    size = x.shape[axis]
    if n is None or n == size:
        return x
    if n < size:
        return x[(slice(None),) * place_of(axis, x.ndim) + (slice(0, n),)]
    shape = list(x.shape)
    shape[axis] = n - size
    return concatenate([x, zeros(shape, x.dtype)], axis)


def _normalised(y, count, norm, inverse):
    """The registry's transforms divide the inverse by the count."""
    if norm not in ("backward", "ortho", "forward", None):
        raise Error(f"fft: norm is {norm!r} (allowed: backward, ortho, forward)")
    if norm in ("backward", None):
        return y
    factor = sqrt(of_type(count, y.real.dtype)) if norm == "ortho" else count
    return y * factor if inverse else y / factor


def _along(name, x, n, axis, norm, inverse):
    x = _fitted(_complex(x), n, axis)
    return _normalised(call(name, x, axis, inverse), x.shape[axis], norm, inverse)


def fft(x, n=None, axis=-1, norm="backward"):
    """The transform along an axis."""
    return _along("fft", x, n, axis, norm, False)


def ifft(x, n=None, axis=-1, norm="backward"):
    """The inverse of fft."""
    return _along("fft", x, n, axis, norm, True)


def _axes(x, s, axes):
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    return list(axes), [None] * len(list(axes)) if s is None else list(s)


def _over(function, x, s, axes, norm):
    axes, sizes = _axes(x, s, axes)
    for axis, n in zip(axes, sizes):
        x = function(x, n, axis, norm)
    return x


def fftn(x, s=None, axes=None, norm="backward"):
    """The transform along several axes, by default all."""
    return _over(fft, _complex(x), s, axes, norm)


def ifftn(x, s=None, axes=None, norm="backward"):
    """The inverse of fftn."""
    return _over(ifft, _complex(x), s, axes, norm)


def rfft(x, n=None, axis=-1, norm="backward"):
    """The first half of the transform of real numbers, which is all that there is to know."""
    x = _fitted(float_of(x), n, axis)
    return _normalised(call("rfft", x, axis), x.shape[axis], norm, False)


def irfft(x, n=None, axis=-1, norm="backward"):
    """The n real numbers that have this half of a transform."""
    x = _complex(x)
    n = 2 * (x.shape[axis] - 1) if n is None else n
    return _normalised(call("irfft", _fitted(x, n // 2 + 1, axis), n, axis), n, norm, True)


def rfftn(x, s=None, axes=None, norm="backward"):
    """rfft along the last of several axes, fft along the others."""
    x = float_of(x)
    axes, sizes = _axes(x, s, axes)
    x = rfft(x, sizes[-1], axes[-1], norm)
    return _over(fft, x, sizes[:-1], axes[:-1], norm)


def irfftn(x, s=None, axes=None, norm="backward"):
    """The inverse of rfftn."""
    x = _complex(x)
    axes, sizes = _axes(x, s, axes)
    return irfft(_over(ifft, x, sizes[:-1], axes[:-1], norm), sizes[-1], axes[-1], norm)


def fft2(x, s=None, axes=(-2, -1), norm="backward"):
    """fftn along two axes."""
    return fftn(x, s, axes, norm)


def ifft2(x, s=None, axes=(-2, -1), norm="backward"):
    return ifftn(x, s, axes, norm)


def rfft2(x, s=None, axes=(-2, -1), norm="backward"):
    return rfftn(x, s, axes, norm)


def irfft2(x, s=None, axes=(-2, -1), norm="backward"):
    return irfftn(x, s, axes, norm)


_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x, n=None, axis=-1, norm="backward"):
    """The transform of a signal that is its own conjugate turned round, of which x is the first half."""
    return irfft(conj(_complex(x)), n, axis, _OPPOSITE.get(norm, norm))


def ihfft(x, n=None, axis=-1, norm="backward"):
    """The inverse of hfft."""
    return conj(rfft(x, n, axis, _OPPOSITE.get(norm, norm)))


def fftfreq(n, d=1.0, dtype=None, device=None):
    """The frequency of each element of a transform of n elements at distances d."""
    places = arange(n, device=device)
    return where(places * 2 < n, places, places - n).astype(dtype or DType.f32) / (_count(n, dtype) * d)


def _count(n, dtype):
    return of_type(n, dtype or DType.f32) if isinstance(n, Dim) else n


def rfftfreq(n, d=1.0, dtype=None, device=None):
    """The same for rfft."""
    return arange(0, n // 2 + 1, device=device).astype(dtype or DType.f32) / (n * d)


def _shifted(x, axes, sign):
    x = asarray(x)
    for axis in range(x.ndim) if axes is None else sizes_of(axes):
        n = x.shape[axis]
        x = take(x, remainder(arange(n) - sign * (asarray(n) // 2), n), axis) if isinstance(n, Dim) else roll(x, sign * (n // 2), axis)
    return x


def fftshift(x, axes=None):
    """The frequency 0 in the middle."""
    return _shifted(x, axes, 1)


def ifftshift(x, axes=None):
    """The inverse of fftshift."""
    return _shifted(x, axes, -1)


__all__ = public(globals())
