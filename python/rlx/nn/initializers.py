"""First values of weights: each function here gives init(key, shape, dtype)."""
import math

from .. import random
from .._core import Error
from ..numpy import diagonal, full, matrix_transpose, moveaxis, reshape, sign
from ..numpy._base import call


def _made(draw, initial="float32"):
    def init(key, shape, dtype=initial):
        return draw(key, tuple(shape), dtype)

    return init


def constant(value, dtype="float32"):
    """All elements `value`."""
    return _made(lambda key, shape, dtype: full(shape, value, dtype), dtype)


def normal(stddev=1e-2, dtype="float32"):
    """Normal numbers of that deviation."""
    return _made(lambda key, shape, dtype: random.normal(key, shape).astype(dtype) * stddev, dtype)


def uniform(scale=1e-2, dtype="float32"):
    """In 0..scale."""
    return _made(lambda key, shape, dtype: (random.uniform(key, shape) * scale).astype(dtype), dtype)


def truncated_normal(stddev=1e-2, dtype="float32", lower=-2.0, upper=2.0):
    """Normal numbers in lower..upper, times stddev."""
    return _made(lambda key, shape, dtype: (random.truncated_normal(key, lower, upper, shape) * stddev).astype(dtype), dtype)


def _fans(shape, *axes):
    """How many inputs an output has, and how many outputs an input; by the axes of inputs, of outputs, and of matrices of their own."""
    ins, outs, batch = [math.prod(shape[axis] for axis in ([each] if isinstance(each, int) else each)) for each in axes]
    rest = math.prod(shape) / (ins * outs * batch)
    return ins * rest, outs * rest


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    """Of variance scale / n, n the number of inputs (fan_in), of outputs (fan_out) or their mean (fan_avg). Distributions: normal, uniform,
    truncated_normal."""
    from .._core import Error

    modes = ("fan_in", "fan_out", "fan_avg")
    if mode not in modes or distribution not in ("normal", "uniform", "truncated_normal"):
        raise Error(f"variance_scaling: mode {mode!r}, distribution {distribution!r} (allowed: {', '.join(modes)}; normal, uniform, truncated_normal)")

    def draw(key, shape, dtype):
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        deviation = math.sqrt(scale / {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode])
        if distribution == "normal":
            x = random.normal(key, shape) * deviation
        elif distribution == "uniform":
            x = random.uniform(key, shape, minval=-1.0, maxval=1.0) * (math.sqrt(3.0) * deviation)
        else:
            x = random.truncated_normal(key, -2.0, 2.0, shape) * (deviation / 0.87962566103423978)  # the deviation of those in -2..2
        return x.astype(dtype)

    return _made(draw, dtype)


def glorot_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def glorot_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype="float32"):
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def orthogonal(scale=1.0, column_axis=-1, dtype="float32"):
    """Matrices with orthonormal rows or columns, whichever are fewer; leading axes count as rows."""

    def draw(key, shape, dtype):
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        q, r = call("qr", random.normal(key, (max(rows, columns), min(rows, columns))))
        q = q * sign(diagonal(r))
        q = q if rows >= columns else matrix_transpose(q)
        moved = [size for i, size in enumerate(shape) if i != column_axis % len(shape)]
        return (moveaxis(reshape(q, (*moved, columns)), -1, column_axis) * scale).astype(dtype)

    return _made(draw, dtype)


def delta_orthogonal(scale=1.0, column_axis=-1, dtype="float32"):
    """Kernels of convolutions, space first, that are 0 but for an orthogonal matrix in the middle (Xiao et al. 2018)."""

    def draw(key, shape, dtype):
        if not 3 <= len(shape) <= 5 or shape[-1] < shape[-2]:
            raise Error(f"delta_orthogonal: the shape is {tuple(shape)} (allowed: 3 to 5 axes, the last at least as long as that before)")
        matrix = orthogonal(scale, column_axis)(key, (shape[-1], shape[-1]), dtype)[: shape[-2]]
        return full(shape, 0, dtype).at[tuple((size - 1) // 2 for size in shape[:-2])].set(matrix)

    return _made(draw, dtype)


def _of_one(value):
    def init(key, shape, dtype="float32"):
        return full(shape, value, dtype)

    init.__doc__ = f"All elements {value}."
    return init


zeros, ones = _of_one(0), _of_one(1)
xavier_normal, xavier_uniform, kaiming_normal, kaiming_uniform = glorot_normal, glorot_uniform, he_normal, he_uniform
