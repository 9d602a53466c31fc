"""Random numbers from keys: the same key gives the same numbers, on every machine."""
from ._array import _call, asarray
from ._dtypes import DType


def key(seed):
    """A key from a number of 0..2^64-1."""
    return asarray([seed & 0xFFFFFFFF, seed >> 32], dtype="uint32")


def fold_in(key, index):
    """A key for the `index`-th of many independent streams."""
    return _call("random_key", key, asarray(index, dtype="uint32"))


def split(key, count=2):
    """Several independent keys, along axis 0."""
    return _call("stack", [fold_in(key, i) for i in range(count)])


def bits(key, shape=()):
    return _call("random_bits", key, list(shape))


def uniform(key, shape=(), dtype=DType.f32, minval=0.0, maxval=1.0):
    """In minval..maxval without maxval."""
    return _call("random_uniform", key, list(shape), dtype, minval, maxval)


def normal(key, shape=(), dtype=DType.f32):
    """Of mean 0 and deviation 1."""
    return _call("random_normal", key, list(shape), dtype)


def randint(key, shape, minval, maxval, dtype=DType.i32):
    """Integers in minval..maxval - 1."""
    return _call("random_integers", key, list(shape), minval, maxval, dtype)


def gumbel(key, shape=(), dtype=DType.f32):
    return _call("random_gumbel", key, list(shape), dtype)


def bernoulli(key, p=0.5, shape=()):
    """True with probability p."""
    return _call("random_bernoulli", key, list(shape), p)


def categorical(key, logits, axis=-1):
    """Positions along an axis, drawn with probability softmax(logits)."""
    return _call("categorical", key, logits, axis)
