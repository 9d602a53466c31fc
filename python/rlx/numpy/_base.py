"""What the functions of rlx.numpy share."""
import builtins
import functools

from .._array import _call, Array, place_of
from .._conversions import asarray
from .._core import Dim, DType, Error
from .._dtypes import is_complex, is_floating, is_integer, is_numpy, OF_PYTHON
from .._sizes import number_beside

call = _call


def array_of(x) -> Array:
    return x if isinstance(x, Array) else asarray(x)


def of_type(value, dtype) -> Array:
    """A value as an array of that type; numbers of Python at once, not by way of f32."""
    value = number_of(value)
    fits = type(value) is int or (type(value) is float and not is_integer(dtype)) or (type(value) is complex and is_complex(dtype))
    return asarray(value, dtype) if fits and dtype != DType["bool"] else array_of(value).astype(dtype)


def float_of(x) -> Array:
    """Integers and bool as f32."""
    x = array_of(x)
    return x if is_floating(x.dtype) or is_complex(x.dtype) else as_weak(x, DType.f32)


def as_weak(x, dtype) -> Array:
    """In that type; what takes the type of what it meets still does."""
    made = x.astype(dtype)
    if x._weak:
        made._set_weak()
    return made


def integers_of(name, x) -> Array:
    x = array_of(x)
    if not is_integer(x.dtype):
        raise Error(f"{name}: {x._type_text()} (allowed: integers)")
    return x


def dtype_of(x):
    return OF_PYTHON[type(x)] if type(x) in OF_PYTHON else array_of(x).dtype


def number_of(x):
    """np.float64 and np.complex128 as the numbers of Python that they are, and sizes that are symbols as arrays; others stay."""
    if isinstance(x, Dim):
        return number_beside(x)
    return complex(x) if isinstance(x, complex) else float(x) if isinstance(x, float) else x


def operands_of(*given):
    """At least one array among numbers of Python, as functions of the registry need it; lists are arrays."""
    given = [asarray(x) if isinstance(x, (list, tuple)) else number_of(x) for x in given]
    return given if builtins.any(type(x) not in OF_PYTHON for x in given) else (asarray(given[0]), *given[1:])


def named(name, function, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def truth_of(x):
    x = array_of(x)
    return x if x.dtype == DType["bool"] else call("ne", x, 0)


def sizes_of(shape):
    return list(shape) if isinstance(shape, (tuple, list)) else [shape]


def near():
    """A value that functions of the registry take for their graph."""
    return asarray(0.0)


def axes_of(x, axis):
    if axis is None:
        return list(range(x.ndim))
    return list(axis) if isinstance(axis, (tuple, list)) else [axis]


def of_each(function):
    """`function` of one array, or a list of what it gives for each of several."""

    @functools.wraps(function)
    def called(*xs):
        return function(xs[0]) if len(xs) == 1 else [function(x) for x in xs]

    return called


def reduced(name, x, axis, keepdims, **options):
    return call(name, x, axes_of(x, axis), keep_dims=keepdims, **options)


def written(result, out):
    """NumPy's `out`: the result in memory of the caller."""
    if out is None:
        return result
    if not is_numpy(out):
        raise Error(f"out: a {type(out).__name__} does not change (allowed: an array of NumPy)")
    import numpy

    numpy.copyto(out, result.numpy(), casting="same_kind")
    return out


def with_out(function):
    """`function` of elements with NumPy's `out` and `where`. Without `out` it is 0 where the condition does not hold."""

    @functools.wraps(function)
    def called(*args, out=None, where=None, **kwargs):
        result = function(*args, **kwargs)
        if where is not None and where is not True:
            rest = call("zeros_like", result) if out is None else asarray(out, copy=True).astype(result.dtype)
            result = call("where", truth_of(where), result, rest)
        return result if out is None else written(result, out)

    return called


def chosen(x, where, otherwise):
    """x where the condition holds, if there is one."""
    return x if where is None or where is True else call("where", truth_of(where), x, asarray(otherwise, x.dtype))


def along(x, axis):
    x = array_of(x)
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def widened(xs, dtype):
    """Arrays of the type in which their products are summed: by itself their own, else one that holds `dtype` too, to which the sums are rounded."""
    from .types import result_type

    xs = [array_of(x) for x in xs]
    wide = None if dtype is None else result_type(*[x.dtype for x in xs], dtype)
    return xs if dtype is None else [x.astype(wide) for x in xs]


def rounded_to(dtype, x):
    return x if dtype is None else x.astype(dtype)


def products(name, x, y, dtype, *args):
    """Of type `dtype`, where it is given. Of bool whether any product is true. `precision` is the session's: rlx.Session says in which numbers products are computed."""
    x, y = widened((x, y), dtype)
    if dtype is None and x.dtype == y.dtype == DType["bool"]:
        return call("ne", call(name, x.astype(DType.i32), y.astype(DType.i32), *args), 0)
    return rounded_to(dtype, call(name, x, y, *args))


def public(names):
    """Of the names in a module those of its own functions."""
    return [name for name, value in names.items() if name[0] != "_" and getattr(value, "__module__", None) == names["__name__"]]
