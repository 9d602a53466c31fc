"""Sizes that are symbols, rlx.Dim, as numbers: what their bounds decide, and arithmetic with arrays, which take the number that a run has.
All else is an Error that names the function which wants a number of Python."""
import operator
import sys

from ._array import Array
from ._conversions import asarray
from ._core import Dim, Error
from ._dtypes import is_numpy

_FOLDER = __file__.rpartition("_sizes.py")[0]
_POLYNOMIAL = {name: getattr(Dim, f"__{name}__") for name in ("add", "radd", "sub", "rsub", "mul", "rmul")}


def called_function():
    """The function of ours that was called from outside, and a colon; nothing where there is none by name."""
    frame, found = sys._getframe(1), ""
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename.startswith(_FOLDER):
        name = frame.f_code.co_name
        if name in ("__init__", "__call__"):
            name = type(frame.f_locals.get("self")).__name__
        found = found if name[0] in "_<" or name == "called" else f"{name}: "  # `called` is what decorators make
        frame = frame.f_back
    return found


def _unknown(what, size):
    """The Error of a number that only a run has."""
    function, (low, high) = called_function(), _bounds(size)
    allowed = "known sizes" if function else "known sizes, and rlx.asarray(size), its number as an array"
    return Error(f"{function}{what} depends on the size {size}, any of {low}..{high} (allowed: {allowed})")


def _text(number):
    return f"{number}" if f"{number}".isidentifier() or not isinstance(number, Dim) else f"({number})"


def _bounds(size):
    return (-(-size).upper, size.upper) if isinstance(size, Dim) else (size, size)


def _is_array(value):
    """Not a number of NumPy, which stands for one of Python."""
    return isinstance(value, Array) or is_numpy(value) and value.ndim > 0


def _comparison(name, sign):
    compare = getattr(operator, name)

    def decided(size, other):
        if _is_array(other):
            return compare(number_beside(size), other)
        if not isinstance(other, (int, float, Dim)) and not is_numpy(other):
            return NotImplemented
        low, high = _bounds(size - other) if isinstance(other, Dim) else [bound - other for bound in _bounds(size)]
        if compare(low, 0) != compare(high, 0):
            raise _unknown(f"{_text(size)} {sign} {_text(other)}", size)
        return compare(low, 0)

    return decided


def _equality(name):
    plain, compare = getattr(Dim, f"__{name}__"), getattr(operator, name)
    return lambda size, other: compare(number_beside(size), other) if _is_array(other) else plain(size, other)


def number_beside(size):
    """A number that takes the type of the array it meets."""
    number = asarray(size)
    number._set_weak()
    return number


def _parts(size, by):
    """The quotient by an integer and the rest, where all but a constant is divisible; else None."""
    from ._pickling import dim_of

    terms = size.__reduce__()[1][0]
    if by <= 0 or any(factor % by for factor, symbols in terms if symbols):
        return None
    rest = sum(factor for factor, symbols in terms if not symbols)
    return dim_of([(factor // by, symbols) for factor, symbols in terms if symbols]) + rest // by, rest % by


def _of_integers(name, size, other):
    """The result where it is a size, else None."""
    if name in _POLYNOMIAL:
        result = _POLYNOMIAL[name](size, other)
        return result.upper if result == result.upper else result  # of B - B an integer
    if name in ("floordiv", "mod") and not isinstance(other, Dim) and (parts := _parts(size, other)):
        return parts[name == "mod"]
    return None


def _arithmetic(name, sign):
    turned = name[0] == "r"
    of = getattr(operator, name[1:] if turned else name)

    def computed(size, other):
        if _is_array(other):
            return of(other, number_beside(size)) if turned else of(number_beside(size), asarray(other))
        if not isinstance(other, (int, float, complex, Dim)) and not is_numpy(other):
            return NotImplemented
        result = _of_integers(name, size, other if isinstance(other, Dim) else operator.index(other)) if hasattr(other, "__index__") else None
        if result is None:
            left, right = (other, size) if turned else (size, other)
            raise _unknown(f"{_text(left)} {sign} {_text(right)}", size)
        return result

    return computed


def _index(size):
    raise _unknown("a number of Python", size)


for _name in ("eq", "ne"):
    setattr(Dim, f"__{_name}__", _equality(_name))
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(Dim, f"__{_name}__", _comparison(_name, _sign))
for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("truediv", "/"), ("floordiv", "//"), ("mod", "%"), ("pow", "**")):
    setattr(Dim, f"__{_name}__", _arithmetic(_name, _sign))
    setattr(Dim, f"__r{_name}__", _arithmetic("r" + _name, _sign))
setattr(Dim, "__abs__", lambda size: size if size >= 0 else -size)  # noqa: B010: type checkers allow no method to be replaced
setattr(Dim, "__index__", _index)  # noqa: B010: type checkers allow no method to be replaced
setattr(Dim, "__array_ufunc__", None)  # noqa: B010: arrays of NumPy leave operators to sizes
