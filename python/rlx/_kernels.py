"""Ops of one's own: a body of ops, and where it pays a kernel in C for it."""
import ctypes
import functools
import hashlib
import os
import re
import subprocess
import tempfile

from . import _trees
from ._array import to_numpy
from ._core import Error
from ._custom import custom_jvp
from ._dtypes import is_floating
from ._host import eval_shape, pure_callback
from ._jit import jit
from ._tracing import leaf_of, name_of, outside_of_traces
from ._transforms import jvp

_TOLERANCES = {"f64": 1e-10, "f32": 1e-4, "f16": 2e-2, "bf16": 5e-2}


@functools.lru_cache(maxsize=None)
def _compiled(text, name):
    """The function of a C text, compiled by the system's compiler (CC, else cc)."""
    folder = tempfile.mkdtemp(prefix="rlx-kernel-")
    source, library = os.path.join(folder, "kernel.c"), os.path.join(folder, "kernel.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    command = [os.environ.get("CC", "cc"), "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Error(f"op {name}: {command[0]} cannot be run: {error.strerror} (allowed: a C compiler, named by CC)") from None
    if made.returncode:
        raise Error(f"op {name}: {command[0]} refuses the kernel: {made.stderr.strip()}")
    return getattr(ctypes.CDLL(library), name)


class _Kernel:
    """A C function beside the body that says what it means."""

    def __init__(self, body, text, name):
        self.body, self.text, self.name, self.known = body, text, name, set()
        if not re.search(rf"\b{name}\s*\(", text):
            raise Error(f"op {name}: its kernel has no function of that name")

    def results(self, arrays):
        """What the body would give, in order, and its structure."""
        leaves, tree = _trees.flatten(eval_shape(self.body, *arrays))
        if any(not isinstance(size, int) for each in [*arrays, *leaves] for size in each.shape):
            raise Error(f"op {self.name}: a kernel takes no symbolic sizes")
        return leaves, tree

    def run(self, arrays, like):
        """Calls it: pointers to operands, pointers to results, the sizes of all operands in a row."""
        import numpy

        from ._dtypes import numpy_dtype

        given = [numpy.ascontiguousarray(each) for each in arrays]
        made = [numpy.zeros(each.shape, numpy_dtype(each.dtype)) for each in like]
        sizes = numpy.array([size for each in given for size in each.shape] or [0], numpy.int64)
        pointers = [each.ctypes.data_as(ctypes.c_void_p) for each in [*given, *made, sizes]]
        _compiled(self.text, self.name)(*pointers)
        return made

    def check(self, arrays, like):
        """Compares it with the body on numbers of these types, once for each. Throws where they differ."""
        import numpy

        from ._dtypes import numpy_dtype

        key = tuple((tuple(each.shape), each.dtype) for each in arrays)
        if key in self.known:
            return
        rng = numpy.random.default_rng(int(hashlib.sha256(self.text.encode()).hexdigest()[:8], 16))
        numbers = [(rng.uniform(0.1, 2, shape) if is_floating(dtype) else rng.integers(0, 2, shape)).astype(numpy_dtype(dtype)) for shape, dtype in key]
        with outside_of_traces():
            expected = [to_numpy(leaf_of(each)) for each in _trees.leaves(jit(self.body)(*numbers))]
        for i, (one, other) in enumerate(zip(self.run(numbers, like), expected)):
            tolerance = _TOLERANCES.get(like[i].dtype.name, 0)
            one, other = one.astype(numpy.float64), other.astype(numpy.float64)
            if not numpy.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
                raise Error(f"op {self.name}: its kernel differs from its body by up to {abs(one - other).max():.3g} in result {i} (allowed: {tolerance:g})")
        self.known.add(key)


def _with_kernel(body, text, name):
    kernel = _Kernel(body, text, name)

    @custom_jvp
    def called(*arrays):
        like, tree = kernel.results(arrays)
        kernel.check(arrays, like)
        return pure_callback(lambda *given: _trees.unflatten(tree, kernel.run(given, like)), _trees.unflatten(tree, like), *arrays)

    @called.defjvp
    def rule(primals, tangents):
        """By the body, in the directions of those operands that change."""
        moving = [i for i, each in enumerate(tangents) if each is not None]

        def of_moving(*values):
            full = list(primals)
            for i, value in zip(moving, values):
                full[i] = value
            return body(*full)

        _, change = jvp(of_moving, [primals[i] for i in moving], [tangents[i] for i in moving])
        return called(*primals), change

    return lambda *args: called(*[leaf_of(each) for each in args])


def op(body=None, *, c=None, name=None):
    """An op of one's own. Its body is a function of arrays, made of ops: transforms and fused kernels follow.

    With `c`, a text in C that has a function of the op's name, that computes the values: it takes pointers to each operand, then to each
    result, then to the sizes of all operands (int64_t), and returns nothing. Derivatives are those of the body, and vmap calls it for each
    example. When the op first meets types and shapes, the kernel is compared with the body on random numbers; a difference is an Error."""
    if body is None:
        return functools.partial(op, c=c, name=name)
    made = jit(body) if c is None else _with_kernel(body, c, name or name_of(body).rpartition(".")[2])
    return functools.wraps(body)(made) if c is not None else made


__all__ = ["op"]
