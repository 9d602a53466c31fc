"""Functions of complex numbers for which there are no ops, by those that there are."""
import math

from .. import _core


def _call(name, *args):
    return _core.apply(name, args, {})


def _parts(z):
    return _call("real", z), _call("imag", z)


def _is_nan(z):
    return _call("isnan", z)


def less(z, w):
    """By the real part, among equal ones by the imaginary part."""
    (x, y), (u, v) = _parts(z), _parts(w)
    return _call("logical_or", _call("lt", x, u), _call("logical_and", _call("eq", x, u), _call("lt", y, v)))


def larger(z, w):
    """The larger one, NaN where either is."""
    return _call("where", _is_nan(z), z, _call("where", _call("logical_or", _is_nan(w), less(z, w)), w, z))


def smaller(z, w):
    return _call("where", _is_nan(z), z, _call("where", _call("logical_or", _is_nan(w), less(w, z)), w, z))


def extreme(name, z, axes, keepdims):
    """The largest ("max") or the smallest element over axes. NaN, in either part, where there is one."""
    x, y = _parts(z)
    reduce, outside = f"reduce_{name}", math.inf if name == "min" else -math.inf
    real = _core.apply(reduce, (x, axes), {"keep_dims": True})
    at_its = _call("select", _call("eq", x, real), y, _call("full_like", y, outside))
    imaginary = _core.apply(reduce, (at_its, axes), {"keep_dims": keepdims})
    has_nan = _core.apply("any", (_is_nan(z), axes), {"keep_dims": keepdims})
    found = _call("complex", _core.apply(reduce, (x, axes), {"keep_dims": keepdims}), imaginary)
    return _call("where", has_nan, complex(math.nan, math.nan), found)


def in_order(z, axis, descending):
    """The elements in order along an axis, and their positions."""
    positions = _call("argsort", _call("zeros_like", _call("real", z)), axis)
    x, y, places = _core.apply("sort", ([*_parts(z), positions], 2, axis, descending), {})
    return _call("complex", x, y), places
