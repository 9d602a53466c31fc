"""Transposes of linear functions, gradients beside values, and where arrays lie."""
import functools

from . import _core, _trees
from ._array import Array, check_device, to_numpy
from ._conversions import asarray
from ._custom import custom_vjp
from ._host import ShapeDtypeStruct
from ._tracing import leaf_of


def linear_transpose(fun, *primals):
    """The transpose of a function that is linear: from cotangents of its result to a tuple of those of its arguments, of which `primals`, arrays
    or ShapeDtypeStructs, say the types alone."""
    from ._transforms import vjp

    zero = lambda leaf: _core.apply("full", (asarray(0.0), list(leaf.shape), 0, leaf.dtype), {})  # noqa: E731
    zeros = _trees.map(lambda leaf: zero(leaf if isinstance(leaf, ShapeDtypeStruct) else leaf_of(leaf)), primals)
    return lambda cotangents: vjp(fun, *zeros)[1](cotangents)


def custom_gradient(fun):
    """A function from one that gives a pair: the value, and a function from its cotangent to those of the arguments, a tuple of them, or of a
    single argument its own."""

    @custom_vjp
    @functools.wraps(fun)
    def valued(*args):
        return fun(*args)[0]

    def backward(args, cotangent):
        given = fun(*args)[1](cotangent)
        return (given,) if len(args) == 1 and not isinstance(given, tuple) else given

    valued.defvjp(lambda *args: (valued(*args), args), backward)
    return valued


def device_put(x, device=None):
    """A tree of arrays in memory of the CPU."""
    check_device(device)
    return _trees.map(leaf_of, x)


def device_get(x):
    """A tree of arrays of NumPy."""
    return _trees.map(lambda leaf: to_numpy(leaf_of(leaf)), x)


def block_until_ready(x):
    """The tree, whose arrays are computed."""
    for leaf in _trees.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x
