"""Functions of each element; operands broadcast."""
from .._conversions import asarray
from .._core import DType, Error
from .._dtypes import is_complex, is_floating, is_integer, OF_PYTHON
from . import _complex
from ._base import array_of, as_weak, call, dtype_of, float_of, named, number_of, operands_of, public, reduced, truth_of, with_out
from .types import result_type

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is made from the tables below
    from typing import Any

    def __getattr__(name) -> Any: ...


# One name here, one function of the registry on floats.
_FLOAT = ("exp expm1 exp2 log log1p log2 log10 sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sinc reciprocal "
          "erf erfc lgamma digamma rsqrt").split()  # fmt: skip
_ALIASES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}


for _name in _FLOAT:
    globals()[_name] = named(_name, lambda x, _op=_name: call(_op, float_of(x)), f"rlx.ops.{_name} of each element; integers count as f32.")
for _name, _of in _ALIASES.items():
    globals()[_name] = globals()[_of]

# On any numbers.
_UNARY = {"negative": "neg", "conj": "conj", "conjugate": "conj",
          "bitwise_invert": "logical_not", "invert": "logical_not"}  # fmt: skip
for _name, _of in _UNARY.items():
    globals()[_name] = named(_name, lambda x, _op=_of: call(_op, array_of(x)), f"rlx.ops.{_of} of each element.")



def _is_whole(x):
    return is_integer(x.dtype) or x.dtype == DType["bool"]


def abs(x):  # noqa: A001
    """The magnitude of each element."""
    x = array_of(x)
    return x if x.dtype == DType["bool"] else call("abs", x)


absolute = abs


def sign(x):
    """-1, 0 or 1, which is NaN of NaN; of complex numbers x / |x|."""
    x = array_of(x)
    has_minus_0 = is_floating(x.dtype) or is_complex(x.dtype)  # rlx.sign keeps that of -0
    return call("where", call("eq", x, 0), 0.0, call("sign", x)) if has_minus_0 else call("sign", x)


def square(x):
    """x * x of each element; bool counts as i32."""
    x = array_of(x)
    return call("square", x.astype(DType.i32) if x.dtype == DType["bool"] else x)


_ROUNDING = ("floor", "ceil", "trunc")
for _name in _ROUNDING:
    globals()[_name] = named(
        _name, lambda x, _op=_name: array_of(x) if _is_whole(array_of(x)) else call(_op, array_of(x)), f"rlx.ops.{_name}; integers stay."
    )

_BINARY = {"add": "add", "subtract": "sub", "multiply": "mul", "maximum": "max", "minimum": "min", "equal": "eq", "not_equal": "ne", "less": "lt",
           "less_equal": "le", "greater": "gt", "greater_equal": "ge", "bitwise_and": "logical_and", "bitwise_or": "logical_or",
           "bitwise_xor": "logical_xor", "bitwise_left_shift": "shl", "bitwise_right_shift": "shr", "left_shift": "shl", "right_shift": "shr"}  # fmt: skip
_OF_BOOLS = {"add": "logical_or", "mul": "logical_and"}


_OF_COMPLEX = {"max": _complex.larger, "min": _complex.smaller}


def _of_numbers(op, x, y):
    x, y = operands_of(x, y)
    if op in _OF_BOOLS and dtype_of(x) == dtype_of(y) == DType["bool"]:
        return call(_OF_BOOLS[op], x, y)
    if op in _OF_COMPLEX and (is_complex(dtype_of(x)) or is_complex(dtype_of(y))):
        return _OF_COMPLEX[op](*[array_of(each).astype(result_type(x, y)) for each in (x, y)])
    return call(op, x, y)


def _counted(x, y):
    """Operands of what has no meaning for bool: two of them count as i32."""
    x, y = operands_of(x, y)
    return (array_of(x).astype(DType.i32), y) if dtype_of(x) == dtype_of(y) == DType["bool"] else (x, y)


def _rest(x, y):
    """x - y * trunc(x / y); of integers by 0, as in NumPy, 0."""
    dtype = result_type(x, y)
    if is_floating(dtype):
        return call("rem", x, y)
    divisor = array_of(y).astype(dtype)
    return call("rem", x, where(equal(divisor, 0), 1, divisor))


def fmod(x, y):
    """x - y * trunc(x / y): of the sign of x; of integers by 0 it is 0."""
    return _rest(*_counted(x, y))


for _name, _of in _BINARY.items():
    globals()[_name] = named(_name, lambda x, y, _op=_of: _of_numbers(_op, x, y), f"rlx.ops.{_of}; the operands broadcast.")

_BINARY_FLOAT = {"atan2": "atan2", "arctan2": "atan2", "hypot": "hypot", "logaddexp": "logaddexp", "nextafter": "nextafter"}
for _name, _of in _BINARY_FLOAT.items():
    globals()[_name] = named(
        _name, lambda x, y, _op=_of: call(_op, *_floats(x, y)), f"rlx.ops.{_of}; the operands broadcast, integers count as f32."
    )


def _float_operand(x, other):
    """A number of Python stays one, which takes the type of what it meets, and integers have that of floats that they meet."""
    x, other = number_of(x), number_of(other)
    if type(x) in OF_PYTHON:
        return x if type(x) is complex else float(x)
    x = array_of(x)
    if is_floating(x.dtype) or is_complex(x.dtype):
        return x
    met = DType.f32 if type(other) in OF_PYTHON else array_of(other).dtype
    return as_weak(x, met if is_floating(met) else DType.f32)


def _floats(x, y):
    return operands_of(_float_operand(x, y), _float_operand(y, x))


def divide(x, y):
    """x / y; integers are divided as f32."""
    return call("div", *_floats(x, y))


true_divide = divide


def _signs_differ(remainder_, divisor):
    return bitwise_and(not_equal(remainder_, 0), not_equal(less(remainder_, 0), less(divisor, 0)))


def floor_divide(x, y):
    """The largest integer at most x / y."""
    x, y = _counted(x, y)
    rest = call("rem", x, y)
    if is_floating(dtype_of(rest)):  # as NumPy: x / y may be rounded up to an integer, or to 0
        exact = call("round", call("div", x - rest, y))
        whole = where(_signs_differ(rest, y), exact - 1, exact)
        ratio = call("div", x, y)
        return call("floor", where(equal(y, 0), ratio, where(equal(whole, 0), copysign(0.0, ratio), whole)))
    quotient = call("div", x, y)
    return where(_signs_differ(rest, y), quotient - 1, quotient)


def remainder(x, y):
    """x - y * floor(x / y): of the sign of y; of integers by 0 it is 0."""
    x, y = _counted(x, y)
    rest = _rest(x, y)
    rest = where(_signs_differ(rest, y), rest + y, rest)
    if not is_floating(dtype_of(rest)):
        return rest
    still = call("stop_gradient", rest)
    zero = copysign(still, y) - (still - rest)  # with the derivative of any other rest
    return where(equal(rest, 0), zero, rest)


mod = remainder


def _whole_power(x, n):
    """x to the power of a number n >= 0 by squaring, exact where products are."""
    result = None
    while n:
        result = x if n & 1 and result is None else result * x if n & 1 else result
        x, n = (call("square", x), n >> 1) if n > 1 else (x, 0)
    return call("ones_like", x) if result is None else result


def _integer_power(x, y, dtype):
    """x to the power of y by squaring: what does not fit wraps, as products do."""
    base, rest = array_of(x).astype(dtype), array_of(y).astype(dtype)
    result, bits = call("ones_like", base), int(dtype.name[1:])
    inverse = where(equal(base, 1), 1, where(bitwise_and(equal(base, -1), dtype.name[0] == "i"), where(equal(bitwise_and(rest, 1), 1), -1, 1), 0))
    below = less(rest, 0)
    for _ in range(bits):
        result = where(equal(bitwise_and(rest, 1), 1), result * base, result)
        base, rest = base * base, call("shr", rest, 1)
    return where(below, inverse, result).astype(dtype)


def pow(x, y):  # noqa: A001
    """x to the power of y. Integers to the power of integers are integers, which wrap; those of powers below 0 are rounded to 0."""
    x, y = _counted(x, y)
    if is_floating(dtype_of(x)) or is_floating(dtype_of(y)) or is_complex(dtype_of(x)) or is_complex(dtype_of(y)):
        return _whole_power(x, y) if type(y) is int and 0 <= y <= 4 else call("pow", x, y)
    if type(y) is not int:
        return _integer_power(x, y, result_type(x, y))
    x = array_of(x).astype(DType.i32) if dtype_of(x) == DType["bool"] else x
    if y < 0:
        raise Error(f"pow: integers to the power of {y} (allowed: 0 and more)")
    return _whole_power(x, y)


power = pow


def logical_and(x, y):
    """Whether both are true (not 0)."""
    return call("logical_and", truth_of(x), truth_of(y))


def logical_or(x, y):
    """Whether at least one is true (not 0)."""
    return call("logical_or", truth_of(x), truth_of(y))


def logical_xor(x, y):
    """Whether exactly one is true (not 0)."""
    return call("logical_xor", truth_of(x), truth_of(y))


def logical_not(x):
    """Whether it is 0."""
    return call("logical_not", truth_of(x))


def _rounded_whole(x, step):
    """Integers as multiples of `step`, half to even."""
    if step > 2 ** (int(x.dtype.name[1:]) - 1):
        return call("zeros_like", x)
    below = floor_divide(x, step)
    rest = x - below * step
    is_up = call("logical_or", greater(rest, step // 2), call("logical_and", equal(rest, step // 2), equal(bitwise_and(below, 1), 1)))
    return (below + is_up.astype(x.dtype)) * step


def round(x, decimals=0):  # noqa: A001
    """The nearest multiple of 10^-decimals, half to even."""
    x = array_of(x)
    if is_integer(x.dtype):
        return x if decimals >= 0 else _rounded_whole(x, 10**-decimals)
    if is_complex(x.dtype):
        return call("complex", round(x.real, decimals), round(x.imag, decimals))
    return call("round", x) if decimals == 0 else call("round", x * 10.0**decimals) / 10.0**decimals


def isnan(x):
    """Whether an element is NaN."""
    return call("isnan", float_of(x))


def isinf(x):
    """Whether an element is infinite."""
    return call("isinf", float_of(x))


def isfinite(x):
    """Whether an element is neither infinite nor NaN."""
    return call("is_finite", float_of(x))


def signbit(x):
    """Whether an element is negative, -0 too."""
    x = array_of(x)
    return call("lt", x, 0) if not is_floating(x.dtype) else call("lt", call("bitcast", x.astype(DType.f32), DType.i32), 0)


def copysign(x, y):
    """The magnitude of x with the sign of y."""
    x, y = _floats(x, y)
    magnitude = abs(array_of(x).astype(result_type(x, y)))
    return where(signbit(y), -magnitude, magnitude)


def positive(x):
    """x itself."""
    return array_of(x)


def real(x):
    return array_of(x).real


def imag(x):
    return array_of(x).imag


def clip(x, min=None, max=None):  # noqa: A002
    """x limited to min..max."""
    x = x if min is None else call("max", *operands_of(x, min))
    return x if max is None else call("min", *operands_of(x, max))


def where(condition, x=None, y=None, size=None, fill_value=0):
    """x where the condition holds, else y; without them the positions where it holds, as nonzero gives them."""
    if x is None and y is None:
        from .arrangement import nonzero

        return nonzero(condition, size, fill_value)
    x, y = [asarray(each) if isinstance(each, (list, tuple)) else number_of(each) for each in (x, y)]
    return call("where", truth_of(condition), x, y)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """NaN and infinities replaced by numbers."""
    return call("nan_to_num", array_of(x), nan, posinf, neginf)


def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    """|x - y| <= atol + rtol |y|."""
    x, y = float_of(x), float_of(y)
    near = logical_or(equal(x, y), logical_and(less_equal(abs(x - y), atol + rtol * abs(y)), isfinite(y)))
    return logical_or(near, logical_and(isnan(x), isnan(y))) if equal_nan else near


def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are close."""
    return reduced("all", isclose(x, y, rtol, atol, equal_nan), None, False)


def array_equal(x, y, equal_nan=False):
    """Whether shapes and elements are equal; with `equal_nan` NaN is equal to NaN."""
    x, y = array_of(x), array_of(y)
    if x.shape != y.shape:
        return asarray(False)
    same = equal(x, y)
    return reduced("all", logical_or(same, logical_and(not_equal(x, x), not_equal(y, y))) if equal_nan else same, None, False)


_NOT_UFUNCS = ("clip", "where", "nan_to_num", "isclose", "allclose", "array_equal", "real", "imag", "round")
for _name in public(globals()):
    if _name not in _NOT_UFUNCS:
        globals()[_name] = with_out(globals()[_name])

__all__ = public(globals())
