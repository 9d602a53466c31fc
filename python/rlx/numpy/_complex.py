"""Functions of complex numbers for which there are no ops, by those that there are."""
import math

from .. import _core


def _call(name, *args):
    return _core.apply(name, args, {})


def _parts(z):
    return _call("real", z), _call("imag", z)


def _product(y, x_part, y_part):
    """Where y is 0 it stays, with its sign: infinity times sin(0) would be NaN."""
    return _call("select", _call("eq", y, 0.0), y, x_part * y_part)


def _scaled(z, factor):
    """Part by part: a product of complex numbers would make NaN of infinity times the part that `factor` has not."""
    x, y = _parts(z)
    return _call("complex", x * factor, y * factor)


def log2(z):
    return _scaled(_call("log", z), 1 / math.log(2))


def log10(z):
    return _scaled(_call("log", z), 1 / math.log(10))


def sinh(z):
    x, y = _parts(z)
    return _call("complex", _call("sinh", x) * _call("cos", y), _product(y, _call("cosh", x), _call("sin", y)))


def cosh(z):
    x, y = _parts(z)
    return _call("complex", _call("cosh", x) * _call("cos", y), _product(y, _call("sinh", x), _call("sin", y)))


def expm1(z):
    """Without cancellation: cos y - 1 = -2 sin(y / 2)^2."""
    x, y = _parts(z)
    half = _call("sin", y * 0.5)
    return _call("complex", _call("expm1", x) * _call("cos", y) - 2.0 * half * half, _product(y, _call("exp", x), _call("sin", y)))


def log1p(z):
    """|1 + z|^2 = 1 + x (2 + x) + y^2."""
    x, y = _parts(z)
    return _call("complex", 0.5 * _call("log1p", x * (2.0 + x) + y * y), _call("atan2", y, 1.0 + x))


def asinh(z):
    x, y = _parts(z)
    a, b = _call("sqrt", _call("complex", 1.0 - y, x)), _call("sqrt", _call("complex", 1.0 + y, -x))
    (ax, ay), (bx, by) = _parts(a), _parts(b)
    return _call("complex", _call("asinh", ax * by * -1.0 + ay * bx), _call("atan2", y, ax * bx - ay * by))


def acosh(z):
    return _call("log", z + _call("sqrt", z + 1.0) * _call("sqrt", z - 1.0))


def atanh(z):
    return _scaled(log1p(z) - log1p(-z), 0.5)


def _turned(function):
    """-i f(i z)."""

    def called(z):
        x, y = _parts(z)
        real, imaginary = _parts(function(_call("complex", -y, x)))
        return _call("complex", imaginary, -real)

    return called


asin, atan = _turned(asinh), _turned(atanh)


def acos(z):
    return math.pi / 2 - asin(z)


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


def sign(z):
    """z / |z|, and 0 at 0."""
    size = _call("abs", z)
    return _call("select", _call("eq", size, 0.0), _call("zeros_like", z), z / _call("select", _call("eq", size, 0.0), _call("ones_like", size), size))
