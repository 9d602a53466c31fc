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


def issubdtype(given, kind):
    """Whether an element type is of a kind, such as rlx.numpy.floating, or another type."""
    if isinstance(kind, type) and issubclass(kind, generic):
        return issubclass(given if isinstance(given, type) and issubclass(given, generic) else _kind_of(given), kind)
    kinds = {"floating", "integer", "number", "inexact", "complexfloating", "signedinteger", "unsignedinteger", "generic"}
    name = getattr(kind, "__name__", kind)
    if name in kinds:  # NumPy's own
        return issubdtype(given, globals()[name])
    return not (isinstance(given, type) and issubclass(given, generic)) and as_dtype(given) == as_dtype(kind)


def dtype(given):
    """The element type that a name, a type of Python or one of NumPy stands for."""
    return as_dtype(given)


single, double, csingle, cdouble = [OF_NUMPY[name] for name in ("float32", "float64", "complex64", "complex128")]
int_, uint, float_, complex_ = [OF_NUMPY[name] for name in ("int32", "uint32", "float32", "complex64")]

__all__ = [*"generic number integer signedinteger unsignedinteger inexact floating complexfloating character issubdtype dtype".split(),
           *"single double csingle cdouble int_ uint float_ complex_".split()]  # fmt: skip
