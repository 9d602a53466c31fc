"""What the array API standard asks a namespace about itself and its element types."""
import collections

from .._core import Error
from .._dtypes import OF_NUMPY, as_dtype, is_complex, is_floating, is_integer, numpy_dtype
from .._array import Array
from ._base import public
from .types import isdtype

FloatInfo = collections.namedtuple("FloatInfo", "bits eps max min smallest_normal dtype")
IntegerInfo = collections.namedtuple("IntegerInfo", "bits max min dtype")
_STANDARD = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128").split()


def _dtype_of(type):  # noqa: A002
    return type.dtype if isinstance(type, Array) else as_dtype(type)


def finfo(type):  # noqa: A002
    """The limits of a float type; of a complex one those of its parts."""
    dtype = _dtype_of(type)
    dtype = {OF_NUMPY["complex64"]: OF_NUMPY["float32"], OF_NUMPY["complex128"]: OF_NUMPY["float64"]}.get(dtype, dtype)
    if not is_floating(dtype):
        raise Error(f"finfo: {dtype} is no float type")
    import ml_dtypes

    limits = ml_dtypes.finfo(numpy_dtype(dtype))
    return FloatInfo(int(limits.bits), float(limits.eps), float(limits.max), float(limits.min), float(limits.smallest_normal), dtype)


def iinfo(int_type):  # noqa: A002
    """The limits of an integer type."""
    dtype = _dtype_of(int_type)
    if not is_integer(dtype):
        raise Error(f"iinfo: {dtype} is no integer type")
    import ml_dtypes

    limits = ml_dtypes.iinfo(numpy_dtype(dtype))
    return IntegerInfo(int(limits.bits), int(limits.max), int(limits.min), dtype)


class _Info:
    """What the namespace can do."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self):
        return "cpu"

    def devices(self):
        return ["cpu"]

    def default_dtypes(self, *, device=None):
        return {"real floating": OF_NUMPY["float32"], "complex floating": OF_NUMPY["complex64"], "integral": OF_NUMPY["int32"],
                "indexing": OF_NUMPY["int32"]}  # fmt: skip

    def dtypes(self, *, device=None, kind=None):
        return {name: OF_NUMPY[name] for name in _STANDARD if kind is None or isdtype(OF_NUMPY[name], kind)}


def __array_namespace_info__():
    return _Info()


__all__ = [*public(globals()), "__array_namespace_info__"]
