"""Element types of arrays and numbers."""
import builtins

from .._array import Array, check_device
from .._conversions import asarray
from .._dtypes import as_dtype, is_numpy, NUMPY_NAMES, OF_PYTHON
from ._base import array_of, call, number_of, operands_of, public


def astype(x, dtype, copy=True, device=None):
    check_device(device)
    return array_of(x).astype(dtype)


def can_cast(from_, to):
    """Whether both types together have the second one: result_type(given, to) == to."""
    from_ = from_.dtype if isinstance(from_, Array) else as_dtype(from_)
    return result_type(from_, to) == as_dtype(to)


def result_type(*given):
    """The type that arithmetic of these arrays, types and numbers has."""

    def one_of(x):  # of any shape
        if type(x) in OF_PYTHON:
            return x
        made = asarray(0, array_of(x).dtype if isinstance(x, Array) or is_numpy(x) else x)
        if isinstance(x, Array) and x._weak:
            made._set_weak()
        return made

    total, *others = [one_of(number_of(x)) for x in given]
    for x in others:
        total = call("select", asarray(True), *operands_of(total, x))
    return total.dtype if isinstance(total, Array) else OF_PYTHON[type(total)]


def promote_types(a, b):
    """The type that arithmetic of two types has."""
    return result_type(a, b)


def isdtype(dtype, kind):
    """Whether it is of a kind: bool, signed integer, unsigned integer, integral, real floating, complex floating, numeric."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, each) for each in kind)
    name = NUMPY_NAMES[as_dtype(dtype)]
    kinds = {
        "bool": name == "bool",
        "signed integer": name.startswith("int"),
        "unsigned integer": name.startswith("uint"),
        "integral": "int" in name,
        "real floating": "float" in name,
        "complex floating": name.startswith("complex"),
        "numeric": name != "bool",
    }
    return kinds[kind] if isinstance(kind, str) and kind in kinds else as_dtype(dtype) == as_dtype(kind)


__all__ = public(globals())
