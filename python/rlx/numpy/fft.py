"""Discrete Fourier transforms."""
from .._core import DType
from .._dtypes import is_complex
from ._base import call, float_of, public


def fft(x, axis=-1):
    return call("fft", _complex(x), axis)


def ifft(x, axis=-1):
    return call("fft", _complex(x), axis, True)


def fftn(x, axes=None):
    return call("fftn", _complex(x), axes or ())


def ifftn(x, axes=None):
    return call("fftn", _complex(x), axes or (), True)


def rfft(x, axis=-1):
    return call("rfft", float_of(x), axis)


def irfft(x, n=None, axis=-1):
    x = _complex(x)
    return call("irfft", x, 2 * (x.shape[axis] - 1) if n is None else n, axis)


def _complex(x):
    x = float_of(x)
    if is_complex(x.dtype):
        return x
    return x.astype(DType.c128 if x.dtype == DType.f64 else DType.c64)


__all__ = public(globals())
