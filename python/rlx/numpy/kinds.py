"""Kinds of element types, as NumPy's tree of classes has them."""
from .._dtypes import as_dtype, OF_NUMPY


class generic:  # noqa: N801: NumPy's names
    """Any element type."""


class number(generic):  # noqa: N801
    pass


class integer(number):  # noqa: N801
    pass


class signedinteger(integer):  # noqa: N801
    pass


class unsignedinteger(integer):  # noqa: N801
    pass


class inexact(number):  # noqa: N801
    pass


class floating(inexact):  # noqa: N801
    pass


class complexfloating(inexact):  # noqa: N801
    pass


class character(generic):  # noqa: N801
    pass


def _kind_of(dtype):
    name = as_dtype(dtype).name
    if name == "bool":
        return generic
    return {"u": unsignedinteger, "i": signedinteger, "c": complexfloating}.get(name[0], floating)


def issubdtype(arg1, arg2):
    """Whether an element type is of a kind, such as rlx.numpy.floating, or another type."""
    if isinstance(arg2, type) and issubclass(arg2, generic):
        return issubclass(arg1 if isinstance(arg1, type) and issubclass(arg1, generic) else _kind_of(arg1), arg2)
    kinds = {"floating", "integer", "number", "inexact", "complexfloating", "signedinteger", "unsignedinteger", "generic"}
    name = getattr(arg2, "__name__", arg2)
    if name in kinds:  # NumPy's own
        return issubdtype(arg1, globals()[name])
    return not (isinstance(arg1, type) and issubclass(arg1, generic)) and as_dtype(arg1) == as_dtype(arg2)


def dtype(dtype):
    """The element type that a name, a type of Python or one of NumPy stands for."""
    return as_dtype(dtype)


single, double, csingle, cdouble = [OF_NUMPY[name] for name in ("float32", "float64", "complex64", "complex128")]
int_, uint, float_, complex_ = [OF_NUMPY[name] for name in ("int32", "uint32", "float32", "complex64")]

__all__ = [*"generic number integer signedinteger unsignedinteger inexact floating complexfloating character issubdtype dtype".split(),
           *"single double csingle cdouble int_ uint float_ complex_".split()]  # fmt: skip
