"""Functions of Python that compiled programs call, and what functions give without being computed."""
from . import _core, _trees
from ._array import Array, to_numpy
from ._conversions import asarray
from ._core import Error
from ._dtypes import as_dtype
from ._tracing import compile_for, current_trace, flat_outputs, in_trace, leaf_of, name_of


class ShapeDtypeStruct:
    """A shape and an element type without elements."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), as_dtype(dtype)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        count = 1
        for extent in self.shape:
            count = count * extent
        return count

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"


def _like(each):
    """An array of that shape and type, for its type only."""
    if isinstance(each, Array):
        return each
    if not hasattr(each, "shape") or not hasattr(each, "dtype"):
        raise Error(f"pure_callback: a result is a {type(each).__name__} (allowed: what has a shape and a dtype, such as rlx.ShapeDtypeStruct)")
    return _core.apply("full", (asarray(0.0), list(each.shape), 0, as_dtype(each.dtype)), {})


def pure_callback(callback, result_shape_dtypes, *args):
    """callback(*args), called by compiled programs as they run: it gets NumPy's arrays, and gives what `result_shape_dtypes` says, a tree of things with a
    shape and a dtype. It must have no effects: it may be called more often or less often than it is written. With vmap it is called for one
    example after another; a derivative is given by custom_jvp or custom_vjp."""
    leaves, tree = _trees.flatten(args)
    arrays = [leaf_of(leaf) for leaf in leaves]
    wanted, result_tree = _trees.flatten(result_shape_dtypes)
    like = [_like(each) for each in wanted]
    dtypes = [each.dtype for each in like]  # of values that may be gone when the function is called

    def called(given):
        made, its = _trees.flatten(callback(*_trees.unflatten(tree, [to_numpy(each) for each in given])))
        if its != result_tree:
            raise Error(f"pure_callback of {name_of(callback)}: the function gives {its} (allowed: {result_tree})")
        return [asarray(each, dtype) for each, dtype in zip(made, dtypes)]

    if current_trace(arrays) is None:
        outputs = called(arrays)
        for output, array in zip(outputs, like):
            if output.shape != array.shape:
                raise Error(f"pure_callback of {name_of(callback)}: a result is {output._type_text()} (allowed: {array._type_text()})")
    else:
        outputs = in_trace("pure_callback", arrays, lambda trace, inputs: _core.host_call(called, inputs, like, trace))
    return _trees.unflatten(result_tree, outputs)


def register_kernel(op, device, kernel):
    """From now on, `kernel` computes each `op` of the registry in what is compiled for `device`, a name of rlx.devices() or a kind such as
    "cpu". It takes NumPy's arrays, and the op's attributes by name, and gives an array or a tuple of them; it has no effects, as for
    pure_callback. Ops inside of composites count as parts of these. The last one registered counts; None takes it back."""

    def called(given, attributes):
        made = kernel(*[to_numpy(each) for each in given], **attributes)
        return [asarray(each) for each in (made if isinstance(made, tuple) else (made,))]

    if kernel is not None and not callable(kernel):
        raise Error(f"register_kernel: a kernel of type {type(kernel).__name__} (allowed: a function, None)")
    _core.register_kernel(op, device, None if kernel is None else called)


def eval_shape(fun, *args, **kwargs):
    """What fun(*args, **kwargs) gives, as ShapeDtypeStructs: nothing is computed. Arguments are arrays or ShapeDtypeStructs."""
    leaves, tree = _trees.flatten((args, kwargs))
    arrays = [_like(leaf) if isinstance(leaf, ShapeDtypeStruct) else leaf_of(leaf) for leaf in leaves]
    found = []

    def traced(_, inputs):
        args, kwargs = _trees.unflatten(tree, inputs)
        outputs, out_tree = flat_outputs(fun(*args, **kwargs))
        found.append(_trees.unflatten(out_tree, [ShapeDtypeStruct(each.shape, each.dtype) for each in outputs]))
        return []

    compile_for(name_of(fun), arrays, traced)
    return found[0]
