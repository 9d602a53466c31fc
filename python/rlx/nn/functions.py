"""Functions of each element, and of lines, by the names of jax.nn; all others are those of the registry (rlx.relu)."""
import math

from .. import numpy as jnp
from ..numpy._base import call, float_of, of_type, place_of
from ..numpy.elementwise import exp, expm1, log, log1p, sqrt, where
from ..numpy.reductions import logsumexp

_SAME = {"relu": "relu", "relu6": "relu6", "sigmoid": "sigmoid", "softplus": "softplus", "silu": "silu", "swish": "silu", "log_sigmoid": "log_sigmoid",
         "tanh": "tanh", "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish", "hard_silu": "hardswish", "soft_sign": "softsign", "selu": "selu", "mish": "mish"}  # fmt: skip


def _element(name, of):
    def function(x):
        return call(of, float_of(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"rlx.{of} of each element; integers count as f32."
    return function


for _name, _of in _SAME.items():
    globals()[_name] = _element(_name, _of)


def identity(x):
    return x


def gelu(x, approximate=True):
    """x times the share of a normal distribution below x: by tanh, or by erf."""
    return call("gelu_tanh" if approximate else "gelu", float_of(x))


def elu(x, alpha=1.0):
    """x where x > 0, else alpha (e^x - 1)."""
    return call("elu", float_of(x), alpha)


def celu(x, alpha=1.0):
    """max(x, 0) + min(alpha (e^(x / alpha) - 1), 0)."""
    x = float_of(x)
    return where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x) / alpha))


def leaky_relu(x, negative_slope=0.01):
    """x where x >= 0, else negative_slope x."""
    x = float_of(x)
    return where(x >= 0, x, x * negative_slope)


def hard_tanh(x):
    """x limited to -1..1."""
    x = float_of(x)
    return where(x > 1, 1.0, where(x < -1, -1.0, x))


def glu(x, axis=-1):
    """The first half along an axis times the sigmoid of the second."""
    first, second = call("split_evenly", float_of(x), 2, axis)
    return first * call("sigmoid", second)


def squareplus(x, b=4):
    """(x + sqrt(x^2 + b)) / 2."""
    x = float_of(x)
    return (x + sqrt(x * x + float(b))) * 0.5


def sparse_plus(x):
    """0 below -1, x above 1, (x + 1)^2 / 4 between."""
    x = float_of(x)
    return where(x <= -1, 0.0, where(x >= 1, x, (x + 1.0) ** 2.0 * 0.25))


def sparse_sigmoid(x):
    """(x + 1) / 2, limited to 0..1."""
    return 0.5 * jnp.clip(float_of(x) + 1.0, 0.0, 2.0)


def log1mexp(x):
    """log(1 - e^-x)."""
    x = float_of(x)
    small = x < math.log(2)
    return where(small, log(-expm1(-where(small, x, 1.0))), log1p(-exp(-where(small, 1.0, x))))


def logmeanexp(x, axis=None, where=None, keepdims=False):
    """log of the mean of e^x over axes, of the elements where a condition holds."""
    x = float_of(x)
    count = x.size if axis is None else math.prod(x.shape[each] for each in ([axis] if isinstance(axis, int) else axis))
    if where is not None:
        count = jnp.sum(jnp.broadcast_to(where, x.shape), axis, keepdims=keepdims)
    return logsumexp(x, axis, keepdims=keepdims, where=where) - log(of_type(count, x.dtype))


def _of_lines(name, x, axis):
    """softmax or log_softmax along an axis, or along several as if they were one."""
    axes = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    if len(axes) == 1:
        return call(name, x, axes[0])
    ends = list(range(x.ndim - len(axes), x.ndim))
    moved = jnp.moveaxis(x, axes, ends)
    flat = call(name, moved.reshape(*moved.shape[: ends[0] if ends else x.ndim], -1), -1)
    return jnp.moveaxis(flat.reshape(*moved.shape), ends, axes)


def softmax(x, axis=-1, where=None):
    """e^x divided by its sum along axes (None: all), of the elements where a condition holds."""
    x = float_of(x)
    if where is None:
        return _of_lines("softmax", x, axis)
    return jnp.where(where, _of_lines("softmax", jnp.where(where, x, -math.inf), axis), 0.0)


def log_softmax(x, axis=-1, where=None):
    """The logarithm of softmax."""
    x = float_of(x)
    if where is None:
        return _of_lines("log_softmax", x, axis)
    return jnp.where(where, _of_lines("log_softmax", jnp.where(where, x, -math.inf), axis), -math.inf)


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None):
    """(x - mean) / sqrt(variance + epsilon) along axes."""
    x = float_of(x)
    mean = jnp.mean(x, axis, keepdims=True, where=where) if mean is None else mean
    variance = jnp.mean((x - mean) ** 2.0, axis, keepdims=True, where=where) if variance is None else variance
    return (x - mean) * call("rsqrt", variance + epsilon)


def one_hot(x, num_classes, dtype="float32", axis=-1):
    """1 at the place that an integer names, 0 elsewhere; nothing where there is no such place."""
    x = jnp.asarray(x)
    result = jnp.equal(x[..., None], jnp.arange(num_classes)).astype(dtype)
    return jnp.moveaxis(result, -1, place_of(axis, result.ndim))


def _seen(queries, keys, query_seq_lengths, key_value_seq_lengths, local_window_size):
    """Masks (batch, 1, queries, keys) of lengths and windows, those that are given."""
    rows, columns = jnp.arange(queries)[:, None], jnp.arange(keys)[None, :]
    if query_seq_lengths is not None:
        yield rows < jnp.asarray(query_seq_lengths)[:, None, None, None]
    if key_value_seq_lengths is not None:
        yield columns < jnp.asarray(key_value_seq_lengths)[:, None, None, None]
    if local_window_size is not None:
        left, right = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size
        yield jnp.logical_and(columns >= rows - left, columns <= rows + right)[None, None]


def dot_product_attention(query, key, value, bias=None, mask=None, scale=None, is_causal=False, query_seq_lengths=None, key_value_seq_lengths=None,
                          local_window_size=None, implementation=None, **options):  # fmt: skip
    """softmax(scale q k^T + bias) v of ([batch,] tokens, heads, features). With `is_causal` query i sees the keys 0 to i. Of each example the first
    tokens count, as many as its lengths say. A window is a pair of how many tokens are seen to the left and to the right, or one number for both.
    JAX's `implementation` changes nothing."""
    q, k, v = [jnp.moveaxis(jnp.asarray(each), -3, -2) for each in (query, key, value)]
    if single := q.ndim == 3:
        q, k, v = q[None], k[None], v[None]
    for each in _seen(q.shape[-2], k.shape[-2], query_seq_lengths, key_value_seq_lengths, local_window_size):
        mask = each if mask is None else jnp.logical_and(mask, each)
    more = {name: each for name, each in (("bias", bias), ("mask", mask), ("scale", scale)) if each is not None}
    if is_causal and q.shape[-2] != k.shape[-2] and "positions" not in options:  # else the last query stands at the last key
        more["positions"] = jnp.arange(q.shape[-2]).astype("int32")
    result = jnp.moveaxis(call("attention", q, k, v, causal=is_causal, **more, **options), -3, -2)
    return result[0] if single else result


__all__ = [*_SAME, *"identity gelu elu celu leaky_relu hard_tanh glu squareplus sparse_plus sparse_sigmoid log1mexp logmeanexp softmax log_softmax".split(),
           *"standardize one_hot dot_product_attention logsumexp".split()]  # fmt: skip
