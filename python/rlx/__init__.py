"""RLX: a compiler and runtime for machine learning.

rlx.numpy has NumPy's functions over rlx.Array, rlx.ops every function of the registry; jit, grad, vmap and others take functions of arrays."""
from . import _core, _trees as tree, numpy, ops, random
from ._array import Array, array, asarray, from_dlpack
from ._control import associative_scan, cond, fori_loop, map, scan, switch, while_loop  # noqa: A004
from ._core import (
    Dim,
    DType,
    Error,
    Executable,
    Graph,
    Reranker,
    SentenceEncoder,
    Session,
    Tokenizer,
    devices,
    load_graph,
    load_safetensors,
    parse_graph,
    save_graph,
    save_safetensors,
)
from ._dtypes import OF_NUMPY as _OF_NUMPY
from ._jit import jit
from ._models import Model
from ._transforms import checkpoint, grad, hessian, hvp, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
from ._core import __version__

float32, float16, bfloat16, float64 = [_OF_NUMPY[name] for name in ("float32", "float16", "bfloat16", "float64")]
float8_e4m3fn, float8_e5m2 = _OF_NUMPY["float8_e4m3fn"], _OF_NUMPY["float8_e5m2"]
int4, int8, int16, int32, int64 = [_OF_NUMPY[f"int{bits}"] for bits in (4, 8, 16, 32, 64)]
uint4, uint8, uint16, uint32, uint64 = [_OF_NUMPY[f"uint{bits}"] for bits in (4, 8, 16, 32, 64)]
bool_, complex64, complex128 = [_OF_NUMPY[name] for name in ("bool", "complex64", "complex128")]


def __getattr__(name):
    """Every function of the registry is here, too: rlx.softmax."""
    return getattr(ops, name)


def __dir__():
    return sorted({*globals(), *dir(ops)})
