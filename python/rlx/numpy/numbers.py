"""More functions of each element, made of those of elementwise."""
import math

from .._array import Array
from .._conversions import asarray
from .._core import Dim
from .._dtypes import is_complex
from ._base import array_of, call, float_of, integers_of, of_type, operands_of, public
from .arrangement import moveaxis
from .creation import zeros_like
from .elementwise import (_floats, abs, atan2, bitwise_invert, exp2, floor_divide, greater, isinf, isnan, less, log1p, maximum, minimum, pow, remainder,
                          round, signbit, trunc, where)  # fmt: skip
from .reductions import all, cumsum, diff
from .types import result_type

around = round
bitwise_not = bitwise_invert


def rint(x):
    """The nearest integer, the even one of two."""
    return round(float_of(x))


def fabs(x):
    """The magnitude of floats; integers count as f32."""
    return abs(float_of(x))


def deg2rad(x):
    """Degrees in radians."""
    return float_of(x) * (math.pi / 180)


def rad2deg(x):
    """Radians in degrees."""
    return float_of(x) * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


def angle(z, deg=False):
    """The angle of complex numbers."""
    z = float_of(z)
    result = atan2(z.imag, z.real)
    return rad2deg(result) if deg else result


def fmax(x, y):
    """The larger element; the other one where one is NaN."""
    x, y = operands_of(x, y)
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


def fmin(x, y):
    """The smaller element; the other one where one is NaN."""
    x, y = operands_of(x, y)
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


def float_power(x, y):
    """x to the power y, both as floats."""
    return pow(*_floats(x, y))


def heaviside(x, at_zero):
    """0 below 0, 1 above, and `at_zero` there."""
    x, at_zero = _floats(x, at_zero)
    wanted = result_type(x, at_zero)
    return where(isnan(x), x, where(less(x, 0), 0.0, where(greater(x, 0), 1.0, of_type(at_zero, wanted)))).astype(wanted)


def isneginf(x):
    """Whether an element is -infinity."""
    return isinf(x) & signbit(float_of(x))


def isposinf(x):
    """Whether an element is infinity."""
    return isinf(x) & ~signbit(float_of(x))


def isreal(x):
    """Whether the imaginary part is 0."""
    return call("eq", array_of(x).imag, 0)


def iscomplex(x):
    """Whether the imaginary part is not 0."""
    return call("ne", array_of(x).imag, 0)


def iscomplexobj(x):
    """Whether the type is complex."""
    return is_complex(array_of(x).dtype)


def isrealobj(x):
    return not iscomplexobj(x)


def logaddexp2(x, y):
    """log2(2^x + 2^y) without overflow."""
    x, y = _floats(x, y)
    larger = maximum(x, y)
    difference = where(isinf(larger) & call("eq", x, y), 0.0, abs(x - y))
    return larger + log1p(exp2(-difference)) * math.log2(math.e)


def modf(x):
    """The part behind the point, and the whole one; both with the sign of x."""
    x = float_of(x)
    whole = trunc(x)
    return where(isinf(x), 0.0, x - whole), whole


def i0(x):
    """The modified Bessel function of the first kind and order 0."""
    from ..scipy import special

    return special.i0(x)


def divmod(x, y):  # noqa: A001
    """floor_divide and remainder."""
    return floor_divide(x, y), remainder(x, y)


def ldexp(x, n):
    """x times 2 to the power n."""
    x = float_of(x)
    return x * exp2(array_of(n).astype(x.dtype))


def gcd(x, y):
    """The greatest common divisor, by Euclid's algorithm."""
    from .._control import while_loop

    x, y = integers_of("gcd", x), integers_of("gcd", y)
    x, y = abs(x + zeros_like(y)), abs(y + zeros_like(x))

    def step(pair):
        x, y = pair
        done = call("eq", y, 0)
        return where(done, x, y), where(done, 0, call("rem", x, where(done, 1, y)))

    return while_loop(lambda pair: ~all(call("eq", pair[1], 0)), step, (x, y))[0]


def lcm(x, y):
    """The least common multiple; 0 where one is 0."""
    divisor = gcd(x, y)
    return abs(array_of(x)) // where(call("eq", divisor, 0), 1, divisor) * abs(array_of(y))


def unwrap(p, discont=None, axis=-1, period=2 * math.pi):
    """The elements less so many periods that neighbours are less than half of one apart."""
    p = moveaxis(float_of(p), axis, -1)
    change = diff(p)
    half = period / 2
    turned = remainder(change + half, period) - half
    turned = where(call("eq", turned, -half) & (change > 0), half, turned)
    moves = where(abs(change) < (half if discont is None else discont), 0.0, turned - change)
    return moveaxis(call("concat", [p[..., :1], p[..., 1:] + cumsum(moves, -1)], -1), -1, axis)


def shape(x):
    return array_of(x).shape


def ndim(x):
    return array_of(x).ndim


def size(x, axis=None):
    """The number of elements, or the size along an axis."""
    return array_of(x).size if axis is None else array_of(x).shape[axis]


def copy(x):
    """The array itself, as arrays never change."""
    return array_of(x)


def isscalar(element):
    """Whether it is a number."""
    return isinstance(element, (bool, int, float, complex, Dim)) or (isinstance(element, Array) and element.ndim == 0)


def iterable(x):
    try:
        iter(x)
    except TypeError:
        return False
    return getattr(x, "ndim", 1) != 0


def array_equiv(x, y):
    """Whether the arrays, broadcast to one shape, have equal elements."""
    try:
        return all(call("eq", *operands_of(x, y)))
    except ValueError:
        return asarray(False)


__all__ = public(globals()) + ["around", "bitwise_not"]
