"""RLX: a compiler and runtime for machine learning.

rlx.numpy has NumPy's functions over rlx.Array, rlx.ops every function of the registry; jit, grad, vmap and others take functions of arrays."""
from . import _sizes as _sizes
from ._array import Array as Array
from ._conversions import array as array, asarray as asarray, from_dlpack as from_dlpack
from ._core import (
    Dim as Dim,
    DType as DType,
    Error as Error,
    Tokenizer as Tokenizer,
    devices as devices,
    save_graph as save_graph,
    save_safetensors as save_safetensors,
    verify as verify,
)
from ._core import version as __version__
from ._dtypes import OF_NUMPY as _OF_NUMPY

float32, float16, bfloat16, float64 = [_OF_NUMPY[name] for name in ("float32", "float16", "bfloat16", "float64")]
float8_e4m3fn, float8_e5m2 = _OF_NUMPY["float8_e4m3fn"], _OF_NUMPY["float8_e5m2"]
int4, int8, int16, int32, int64 = [_OF_NUMPY[f"int{bits}"] for bits in (4, 8, 16, 32, 64)]
uint4, uint8, uint16, uint32, uint64 = [_OF_NUMPY[f"uint{bits}"] for bits in (4, 8, 16, 32, 64)]
bool_, complex64, complex128 = [_OF_NUMPY[name] for name in ("bool", "complex64", "complex128")]

# Modules are imported when they are used: what is here already takes most of the time of an import.
_MODULES = ("data", "debug", "dtypes", "flatten_util", "image", "lax", "nn", "numpy", "ops", "optim", "random", "scipy", "tree_util")
_HOMES = {
    "_control": "associative_scan cond fori_loop map scan switch while_loop",
    "_custom": "closure_convert custom_jvp custom_vjp",
    "_files": "load_graph load_safetensors",
    "_graphs": "Executable Graph Session load_program make_graph parse_graph",
    "_host": "ShapeDtypeStruct eval_shape pure_callback register_kernel",
    "_jit": "default_device jit",
    "_kernels": "op",
    "_linear": "block_until_ready custom_gradient device_get device_put linear_transpose",
    "_misses": "explain_cache_misses",
    "_models": "Classifier Model Reranker SentenceEncoder convert quantize",
    "_tracing": "ensure_compile_time_eval",
    "_transforms": "checkpoint checkpoint_name checkpoint_policies grad hessian hvp jacfwd jacobian jacrev jvp linearize remat stop_gradient value_and_grad vjp vmap",
}
_INSTEAD = {  # of names of JAX
    "config": "f64 arrays need no switch: a dtype makes them", "disable_jit": "functions without rlx.jit run as they are written",
    "make_jaxpr": "rlx.make_graph gives the graph of a function", "pmap": "one device computes; rlx.vmap runs a batch on it",
    "shard_map": "one device computes; rlx.vmap runs a batch on it", "default_backend": "rlx.devices() lists them, rlx.default_device chooses one",
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

TYPE_CHECKING = False
if TYPE_CHECKING:  # what type checkers read; `as` says that a name is public
    import typing

    from . import _trees, data as data, debug as debug, dtypes as dtypes, flatten_util as flatten_util, image as image, lax as lax, nn as nn, numpy as numpy, ops as ops, optim as optim
    from . import random as random, scipy as scipy, tree_util as tree_util
    from ._control import associative_scan as associative_scan, cond as cond, fori_loop as fori_loop, map as map, scan as scan, switch as switch, while_loop as while_loop
    from ._custom import closure_convert as closure_convert, custom_jvp as custom_jvp, custom_vjp as custom_vjp
    from ._files import load_graph as load_graph, load_safetensors as load_safetensors
    from ._graphs import Executable as Executable, Graph as Graph, Session as Session, load_program as load_program, make_graph as make_graph, parse_graph as parse_graph
    from ._host import ShapeDtypeStruct as ShapeDtypeStruct, eval_shape as eval_shape, pure_callback as pure_callback, register_kernel as register_kernel
    from ._jit import default_device as default_device, jit as jit
    from ._kernels import op as op
    from ._linear import block_until_ready as block_until_ready, custom_gradient as custom_gradient, device_get as device_get, device_put as device_put, linear_transpose as linear_transpose
    from ._misses import explain_cache_misses as explain_cache_misses
    from ._models import Classifier as Classifier, Model as Model, Reranker as Reranker, SentenceEncoder as SentenceEncoder, convert as convert, quantize as quantize
    from ._tracing import ensure_compile_time_eval as ensure_compile_time_eval
    from ._transforms import checkpoint as checkpoint, checkpoint_name as checkpoint_name, checkpoint_policies as checkpoint_policies, grad as grad, hessian as hessian, hvp as hvp, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, jvp as jvp, linearize as linearize, remat as remat, stop_gradient as stop_gradient, value_and_grad as value_and_grad, vjp as vjp, vmap as vmap

    tree = _trees


def __getattr__(name) -> "typing.Any":
    """Every function of the registry is here, too: rlx.softmax."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name == "tree":
        value = import_module("._trees", __name__)
    elif name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    else:
        try:
            return getattr(import_module(".ops", __name__), name)
        except AttributeError:
            hint = f" ({_INSTEAD[name]})" if name in _INSTEAD else ""
            raise AttributeError(f"module 'rlx' has no attribute {name!r}{hint}") from None
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_MODULES, "tree", *_HOME, *dir(__getattr__("ops"))})
