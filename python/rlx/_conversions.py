"""What becomes an rlx.Array: numbers, lists, and arrays of other libraries."""
import sys

from . import _core
from ._array import active, Array, _call, check_device, from_numpy
from ._core import Dim, DType, Error
from ._dtypes import OF_PYTHON, PACKED, as_dtype, is_integer, is_numpy, numpy_dtype


def asarray(value, dtype=None, copy=None, device=None) -> Array:
    """An array of `value`: a number, a size in a traced function, nested lists, or an array of NumPy or of any library with DLPack. Memory is
    shared where it can be, and must not change then; with copy=True it is copied."""
    check_device(device)
    array = _converted(value, None if dtype is None else as_dtype(dtype), bool(copy))
    return array if dtype is None or array.dtype == as_dtype(dtype) else array.astype(dtype)


def array(value, dtype=None, copy=True, ndmin=0) -> Array:
    """The same with a copy of the elements, and with axes of size 1 in front until there are `ndmin`."""
    made = asarray(value, dtype, copy)
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def _converted(value, dtype, copy):
    if isinstance(value, Array):
        return value
    if is_numpy(value):
        if type(value).__name__ == "MaskedArray":
            raise Error("an array with a mask has no place here (allowed: value.filled(...), which has none)")
        return from_numpy(sys.modules["numpy"].asarray(value), copy)
    if type(value) in OF_PYTHON:
        made = _number(value, dtype or _usual_dtype(value))
        if dtype is None and type(value) is not bool and made.dtype == OF_PYTHON[type(value)]:
            made._set_weak()
        return made
    if isinstance(value, (list, tuple, range)):
        return _from_list(value, dtype)
    if isinstance(value, Dim) and getattr(active, "traces", None):  # a run of what is traced will know it
        from ._indexing import number_of

        return number_of(value, dtype if dtype is not None and is_integer(dtype) else DType.i32, _number(0, DType.i32))
    if hasattr(value, "__dlpack__"):
        return from_dlpack(value, copy or None)
    if hasattr(value, "__array__"):
        import numpy

        return from_numpy(numpy.asarray(value), copy)
    name = type(value).__name__
    container = "" if type(value).__module__ == "builtins" else f"; rlx.tree_util.{_registration(value)} makes {name} a container of arrays"
    raise Error(f"a {name} is no array (allowed: numbers, lists, arrays of NumPy or with DLPack{container})")


def _registration(value):
    return "register_dataclass" if hasattr(value, "__dataclass_fields__") else "register_pytree_node"


def _usual_dtype(value):
    """Of a number of Python."""
    return usual_integer(value) if type(value) is int else OF_PYTHON[type(value)]


def usual_integer(*values):
    """The type that has room for integers of Python."""
    if all(-(2**31) <= value < 2**31 for value in values):
        return DType.i32
    return DType.i64 if max(values) < 2**63 else DType.u64


def _check_room(values, dtype):
    """An Error where an integer type has no room for an integer of Python."""
    bits = int("".join(letter for letter in dtype.name if letter.isdigit()))
    low, high = (0, 2**bits - 1) if dtype.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for value in values:
        if not low <= value <= high:
            raise Error(f"{value} has no room in {dtype.name} (allowed: {low}..{high})")


def _number(value, dtype):
    import numpy

    if is_integer(dtype) and type(value) is int:
        _check_room([value], dtype)
    usual = numpy_dtype(PACKED.get(dtype, dtype))
    array = from_numpy(numpy.asarray(value).astype(usual), False)
    return _call("cast", array, dtype) if dtype in PACKED else array


def _from_list(value, dtype):
    import numpy

    if any(isinstance(item, (Array, Dim)) for item in _leaves(value)):
        return _call("stack", [_converted(item, dtype, False) for item in value])
    array = numpy.asarray(value)
    if dtype is not None and is_integer(dtype) and array.dtype.kind in "iu" and array.size:
        _check_room([int(array.min()), int(array.max())], dtype)
    if dtype is None and array.dtype.name in ("float64", "int64"):  # numbers of Python: as for a single one
        array = array.astype(numpy_dtype(OF_PYTHON[float] if array.dtype.kind == "f" else usual_integer(array.min(initial=0), array.max(initial=0))))
    return from_numpy(array, False)


def _leaves(value):
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def from_dlpack(value, copy=None, device=None) -> Array:
    """An array of another library (torch, jax, cupy on the CPU), or a capsule of one. Memory is shared where it lies row by row, else copied;
    with copy=True it always is, with copy=False never, and an array that lies otherwise is an Error."""
    check_device(device)
    if type(value).__name__ != "PyCapsule" and not hasattr(value, "__dlpack__"):
        raise Error(f"from_dlpack: a {type(value).__name__} (allowed: an array with __dlpack__, or its capsule)")
    return _core.from_dlpack(_capsule_of(value), copy)


def _capsule_of(value):
    """What its library exports; the errors are that library's."""
    if not hasattr(value, "__dlpack__"):
        return value
    try:
        return value.__dlpack__(max_version=(1, 0))
    except TypeError:  # of before the versions
        return value.__dlpack__()


def _implicit(value):
    """What an operator or a function was given. NumPy's memory may change before the result is read, so it is copied."""
    return asarray(value, copy=is_numpy(value))


def _leaf(value):
    """What a function was given; a number of Python, which np.float64 is one of, takes the type of what it meets."""
    for number in (float, complex):
        value = number(value) if isinstance(value, number) else value
    made = asarray(value)
    if type(value) is bool:
        made._set_weak()
    return made


_core.set_hooks(Array, _implicit, _leaf, as_dtype, __file__.rpartition("_conversions.py")[0])


def _made(dtype, value=0):
    """float32(1.5), as with NumPy's types."""
    return asarray(value, dtype)


setattr(DType, "__call__", _made)  # noqa: B010: stubs know none
