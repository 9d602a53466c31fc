"""Element types, by the names of jax.dtypes."""
from . import bfloat16 as bfloat16
from ._dtypes import as_dtype as canonicalize_dtype, is_complex, is_floating, is_integer
from .numpy import finfo as finfo, iinfo as iinfo, issubdtype as issubdtype, result_type as result_type


def itemsize_bits(dtype):
    """How many bits an element takes."""
    dtype = canonicalize_dtype(dtype)
    return 8 if dtype.name == "bool" else int("".join(each for each in dtype.name.split("e")[0] if each.isdigit()))


def scalar_type_of(x):
    """The type of Python for such elements: bool, int, float or complex."""
    dtype = canonicalize_dtype(x.dtype if hasattr(x, "dtype") else type(x))
    return int if is_integer(dtype) else float if is_floating(dtype) else complex if is_complex(dtype) else bool


__all__ = ["bfloat16", "canonicalize_dtype", "finfo", "iinfo", "issubdtype", "itemsize_bits", "result_type", "scalar_type_of"]
