"""Images resampled, as jax.image does it."""
import enum
import math

from . import numpy as jnp
from ._array import place_of
from ._core import Error
from .numpy._base import array_of, call, float_of


class ResizeMethod(enum.Enum):
    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(name):
        if name not in _NAMES:
            raise Error(f"the method of resizing is {name!r} (allowed: {', '.join(_NAMES)})")
        return _NAMES[name]


_NAMES = {"nearest": ResizeMethod.NEAREST, "lanczos3": ResizeMethod.LANCZOS3, "lanczos5": ResizeMethod.LANCZOS5, "area": ResizeMethod.AREA,
          **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
          **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
          **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH)}  # fmt: skip


def _triangle(x):
    return jnp.maximum(0.0, 1.0 - x)


def _lanczos(radius):
    def kernel(x):
        y = radius * jnp.sin(math.pi * x) * jnp.sin(math.pi * x / radius)
        far = x > 1e-3
        return jnp.where(x > radius, 0.0, jnp.where(far, y / jnp.where(far, math.pi**2 * x * x, 1.0), 1.0))

    return kernel


def _keys(a):
    """The cubic kernel of Keys (1981)."""

    def kernel(x):
        near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        return jnp.where(x >= 2.0, 0.0, jnp.where(x >= 1.0, ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a, near))

    return kernel


# Of a distance in elements; area has none.
_KERNELS = {ResizeMethod.LINEAR: _triangle, ResizeMethod.LANCZOS3: _lanczos(3.0), ResizeMethod.LANCZOS5: _lanczos(5.0), ResizeMethod.CUBIC: _keys(-0.5),
            ResizeMethod.CUBIC_PYTORCH: _keys(-0.75), ResizeMethod.AREA: None}  # fmt: skip


def _overlaps(n, size, step, shift):
    """How much of each result element lies on each element."""
    begin, j = jnp.arange(size).astype(step.dtype) * step - shift * step, jnp.arange(n).astype(step.dtype)[:, None]
    return jnp.maximum(0.0, jnp.minimum(begin + step, j + 1.0) - jnp.maximum(begin, j))


def _onto_edges(weights, beyond):
    """The weights of `beyond` positions before and behind the image added to those of its ends."""
    n = weights.shape[0] - 2 * beyond
    inside = weights[beyond : beyond + n]
    inside = inside.at[0].add(weights[:beyond].sum(axis=0))
    return inside.at[n - 1].add(weights[beyond + n :].sum(axis=0))


def _weights(n, size, scale, translation, method, antialias):
    """What each of n elements counts in each of `size` results."""
    step = 1.0 / scale
    at = (jnp.arange(size).astype(step.dtype) + 0.5) * step - translation * step - 0.5
    beyond = 2 if method is ResizeMethod.CUBIC_PYTORCH else 0
    if method is ResizeMethod.AREA:
        weights = _overlaps(n, size, step, translation)
    else:
        distance = abs(at - jnp.arange(-beyond, n + beyond).astype(step.dtype)[:, None])
        weights = _KERNELS[method](distance / jnp.maximum(step, 1.0) if antialias else distance)
    weights = _onto_edges(weights, beyond) if beyond else weights
    total = weights.sum(axis=0, keepdims=True)
    counts = abs(total) > 1000 * 2.0**-23
    weights = jnp.where(counts, weights / jnp.where(counts, total, 1.0), 0.0)
    return weights if beyond else jnp.where((at >= -0.5) & (at <= n - 0.5), weights, 0.0)


def _resampled(x, shape, axes, scales, translations, method, antialias):
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    for axis, scale, translation in zip(axes, scales, translations):
        axis = place_of(axis, x.ndim)
        weights = _weights(x.shape[axis], shape[axis], scale, translation, method, antialias).astype(x.dtype)
        x = jnp.moveaxis(jnp.tensordot(x, weights, axes=([axis], [0])), -1, axis)
    return x


def _given(image, shape, method):
    image, method = array_of(image), ResizeMethod.from_string(method) if isinstance(method, str) else method
    if len(shape) != image.ndim:
        raise Error(f"shape is {tuple(shape)} for an image of the shape {image.shape} (allowed: a size for each axis)")
    return image, method


def scale_and_translate(image, shape, spatial_dims, scale, translation, method, antialias=True, precision=None):
    """The image sampled so that what lay at x along the k-th of `spatial_dims` lies at x scale[k] + translation[k], in a result of `shape`; 0
    where nothing was. The centre of element i lies at i + 1/2. With `antialias` a kernel is as wide as what a result element covers."""
    image, method = _given(image, shape, method)
    if method is ResizeMethod.NEAREST:
        raise Error("scale_and_translate: the method is nearest (allowed: all others)")
    scale, translation = float_of(scale), float_of(translation)
    return _resampled(float_of(image), shape, spatial_dims, list(scale), list(translation), method, antialias)


def _nearest(image, shape):
    for axis, (n, size) in enumerate(zip(image.shape, shape)):
        if n != size:
            at = jnp.floor((jnp.arange(size).astype("float32") + 0.5) * n / size).astype("int32")
            image = jnp.take(image, at, axis=axis)
    return image


def resize(image, shape, method, antialias=True, precision=None):
    """The image in another shape: `method` is nearest, linear, cubic, lanczos3, lanczos5, area, cubic-pytorch, or a ResizeMethod. With `antialias`
    kernels grow with what becomes smaller."""
    image, method = _given(image, shape, method)
    if method is ResizeMethod.NEAREST:
        return _nearest(image, shape)
    axes = [axis for axis, (n, size) in enumerate(zip(image.shape, shape)) if n != size]
    of_weights = "float64" if image.dtype.name == "f64" else "float32"
    scales = [call("iota", image, [1], of_weights)[0] + (shape[axis] / image.shape[axis] if shape[axis] else 1.0) for axis in axes]
    return _resampled(float_of(image), shape, axes, scales, [0.0] * len(axes), method, antialias)
