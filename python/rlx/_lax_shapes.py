"""Functions of jax.lax whose arguments have other names than those of the registry: shapes and types of elements."""
import enum

from . import numpy as jnp
from ._core import Error
from .numpy import fft as transforms
from .numpy._base import array_of, call


def full_like(x, fill_value, dtype=None, shape=None):
    """An array of one value, of the type and shape of x, unless others are given."""
    return jnp.full_like(x, fill_value, dtype, shape=shape)


def expand_dims(array, dimensions):
    """With axes of size 1 at these places."""
    return call("expand_dims", array_of(array), list(dimensions))


def squeeze(array, dimensions):
    """Without axes of size 1."""
    return call("squeeze", array_of(array), list(dimensions))


def transpose(operand, permutation):
    """The axes in another order."""
    return call("transpose", array_of(operand), list(permutation))


def reshape(operand, new_sizes, dimensions=None):
    """The same elements under another shape; `dimensions` are an order of the axes in which they are read."""
    operand = array_of(operand)
    operand = operand if dimensions is None else transpose(operand, dimensions)
    return call("reshape", operand, list(new_sizes) if isinstance(new_sizes, (tuple, list)) else [new_sizes])


def tile(operand, reps):
    """Repeated along each axis."""
    return jnp.tile(operand, reps)


def convert_element_type(operand, new_dtype):
    """The elements in another type, by the rules of rlx.cast."""
    return call("cast", array_of(operand), new_dtype)


def bitcast_convert_type(operand, new_dtype):
    """The same bits as elements of another type."""
    return call("bitcast", array_of(operand), new_dtype)


def conj(x):
    """The conjugate, a complex number of a real one, too."""
    x = array_of(x)
    return call("conj", x) if x.dtype.name[0] == "c" else call("complex", x, call("zeros_like", x))


def clamp(min, x, max):  # noqa: A002
    """x limited to min..max, to `max` where that is below `min`; at both ends the derivative is 0."""
    x, limited = array_of(x), jnp.clip(x, min, max)
    inside = jnp.logical_and(jnp.greater(x, min), jnp.less(x, max))
    from_low = jnp.logical_and(jnp.greater(min, x), jnp.less(min, max))
    end = jnp.where(from_low, min, jnp.where(jnp.less(max, x), max, call("stop_gradient", limited)))
    return jnp.where(inside, x, end)


class FftType(enum.IntEnum):
    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x, fft_type, fft_lengths):
    """A Fourier transform over the last axes, as many as there are lengths; the type is an FftType or its name."""
    kind = fft_type if isinstance(fft_type, FftType) else FftType.__members__.get(str(fft_type).upper())
    if kind is None:
        raise Error(f"fft: the type is {fft_type!r} (allowed: {', '.join(FftType.__members__)})")
    axes = list(range(-len(fft_lengths), 0))
    return getattr(transforms, kind.name.lower() + "n")(x, list(fft_lengths), axes)

