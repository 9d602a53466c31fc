"""Element types: rlx.float32 and the others, and what they are called elsewhere."""
import sys

from ._core import DType, Error

# The name in NumPy or ml_dtypes, and in RLX.
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
         "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
         "int4": "i4", "uint4": "u4", "bool": "bool", "complex64": "c64", "complex128": "c128"}  # fmt: skip
OF_NUMPY = {name: DType[own] for name, own in NAMES.items()}
NUMPY_NAMES = {dtype: name for name, dtype in OF_NUMPY.items()}
OF_PYTHON = {bool: DType["bool"], int: DType.i32, float: DType.f32, complex: DType.c64}
PACKED = {DType.i4: DType.i8, DType.u4: DType.u8}  # two to a byte: NumPy's arrays have a byte for each
BY_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")


# NumPy's short names.
_CODES = {"e": "float16", "f": "float32", "d": "float64", "F": "complex64", "D": "complex128", "?": "bool", "b1": "bool"}
_CODES.update({f"{kind}{size}": f"{word}{8 * size}" for kind, word in (("f", "float"), ("i", "int"), ("u", "uint"), ("c", "complex")) for size in (1, 2, 4, 8, 16)
               if f"{word}{8 * size}" in OF_NUMPY})  # fmt: skip


def as_dtype(given):
    """The element type that a name, a type of Python, NumPy or ml_dtypes, or one of RLX stands for."""
    if isinstance(given, DType):
        return given
    if given in OF_PYTHON:
        return OF_PYTHON[given]
    name = given if isinstance(given, str) else getattr(given, "name", None) or getattr(given, "__name__", "")
    name = name.rstrip("_")  # numpy.bool_
    found = OF_NUMPY.get(name) or getattr(DType, name, None)
    if found is None and name in _CODES:
        found = OF_NUMPY[_CODES[name]]
    if found is None:
        raise Error(f"there is no element type {given!r} (allowed: {', '.join(NAMES)})")
    return found


def numpy_dtype(dtype):
    """The same in NumPy or ml_dtypes, which are imported for it."""
    import numpy

    name = NUMPY_NAMES[dtype]
    if name in BY_ML_DTYPES:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)


setattr(DType, "dtype", property(numpy_dtype))  # numpy.dtype(rlx.float32) asks for it


def _is_same(self, other):
    """x.dtype == np.float32 and == "float32", too; types of NumPy that are no classes compare themselves."""
    if self is other or isinstance(other, DType) or not isinstance(other, (str, type)):
        return True if self is other else NotImplemented
    try:
        return as_dtype(other) is self
    except Error:
        return False


setattr(DType, "__eq__", _is_same)
for _name in ("__repr__", "__str__"):
    setattr(DType, _name, lambda self: NUMPY_NAMES[self])


def is_floating(dtype):
    return NUMPY_NAMES[dtype].startswith(("float", "bfloat"))


def is_complex(dtype):
    return dtype in (DType.c64, DType.c128)


def is_integer(dtype):
    return "int" in NUMPY_NAMES[dtype]


def is_numpy(value):
    """Whether it is an array or a number of NumPy, without importing it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))
