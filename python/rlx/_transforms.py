"""Derivatives and batches of functions of arrays."""
import functools
import types

from . import _core, _trees
from ._array import Array, active
from ._core import Error
from ._dtypes import is_complex, is_floating
from ._effects import keep
from ._tracing import current_trace, flat_outputs, in_region, in_trace, leaf_of, name_of


def _check_differentiable(what, arrays, numbers):
    for i in numbers:
        if not is_floating(arrays[i].dtype) and not is_complex(arrays[i].dtype):
            raise Error(f"{what}: an argument is {arrays[i]._type_text()} (allowed: floats and complex numbers)")


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False):
    """A function that gives the value of `fun`, a float scalar, and its gradient by the arguments at `argnums`, as trees like them. With
    has_aux the function gives a pair, whose second part is returned beside the value. Of a holomorphic function the value is complex."""
    if holomorphic:
        return _holomorphic_gradient(fun, argnums, has_aux)

    @functools.wraps(fun)
    def differentiated(*args, **kwargs):
        places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        flat = [_trees.flatten(arg) for arg in args]
        arrays = [leaf_of(leaf) for leaves, _ in flat for leaf in leaves]
        begins = [sum(len(leaves) for leaves, _ in flat[:i]) for i in range(len(flat) + 1)]
        wrt = [k for place in places for k in range(begins[place % len(args)], begins[place % len(args) + 1])]
        _check_differentiable("grad", arrays, wrt)
        trees = []

        @in_region
        def called(inputs):
            result = fun(*[_trees.unflatten(tree, inputs[begins[i] : begins[i + 1]]) for i, (_, tree) in enumerate(flat)], **kwargs)
            outputs, tree = flat_outputs(result)
            trees.append(tree)
            value = result[0] if has_aux else result
            if not isinstance(value, Array) or value.ndim != 0 or not is_floating(value.dtype):
                seen = value._type_text() if isinstance(value, Array) else type(value).__name__
                raise Error(f"grad of {name_of(fun)}: the function gives {seen} (allowed: a float of rank 0)")
            return outputs

        is_part = current_trace(arrays) is not None

        def traced(trace, inputs):
            active.had_effects = False
            results = _core.value_and_grad(called, inputs, wrt, trace)
            if active.had_effects and is_part:  # of the value, which who takes the gradient alone does not need
                keep(results[0])
            return results

        results = in_trace("grad", arrays, traced)
        count = trees[0].leaf_count
        value = _trees.unflatten(trees[0], results[:count])
        parts = _trees.tuple_tree([flat[place % len(args)][1] for place in places])
        gradients = _trees.unflatten(parts, results[count:])
        return value, gradients[0] if isinstance(argnums, int) else gradients

    return differentiated


def _at(places, args):
    """A function of the arguments at `places` from one of all, and these."""
    places = [place % len(args) for place in places]

    def full(*parts):
        values = dict(zip(places, parts))
        return [values.get(place, arg) for place, arg in enumerate(args)]

    return full, [args[place] for place in places]


def _holomorphic_gradient(fun, argnums, has_aux):
    @functools.wraps(fun)
    def differentiated(*args, **kwargs):
        full, parts = _at((argnums,) if isinstance(argnums, int) else argnums, args)
        value, pull_back, *aux = vjp(lambda *parts: fun(*full(*parts), **kwargs), *parts, has_aux=has_aux)
        if value.ndim != 0 or not is_complex(value.dtype):
            raise Error(f"grad of {name_of(fun)}: the holomorphic function gives {value._type_text()} (allowed: a complex number of rank 0)")
        gradients = pull_back(leaf_of(1).astype(value.dtype))
        return (value, *aux) if has_aux else value, gradients[0] if isinstance(argnums, int) else gradients

    return differentiated


def grad(fun, argnums=0, has_aux=False, holomorphic=False):
    """The gradient of a function that gives a float scalar, by the arguments at `argnums`; with has_aux a pair of it and what the function gives
    beside."""
    both = value_and_grad(fun, argnums, has_aux, holomorphic)

    @functools.wraps(fun)
    def differentiated(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def _flat_function(function, tree, trees):
    """`function` on a list of arrays; `trees` keeps the structure of its result."""

    @in_region
    def called(inputs):
        outputs, out_tree = flat_outputs(function(*_trees.unflatten(tree, inputs)))
        trees.append(out_tree)
        return outputs

    return called


def _like(what, tree, arrays, others):
    leaves, its = _trees.flatten(others)
    if its != tree:
        raise Error(f"{what}: the trees differ: {tree} and {its}")
    return [leaf.astype(array.dtype) if leaf.dtype != array.dtype and leaf._weak else leaf for array, leaf in zip(arrays, map(leaf_of, leaves))]


def _without_aux(fun, has_aux):
    return (lambda *args, **kwargs: fun(*args, **kwargs)[0]) if has_aux else fun


def jvp(fun, primals, tangents, has_aux=False):
    """The value of the function, and its change when the arguments change in the directions `tangents`. With has_aux the function gives a pair,
    whose second part comes third."""
    leaves, tree = _trees.flatten(tuple(primals))
    arrays = [leaf_of(leaf) for leaf in leaves]
    directions = _like("jvp", tree, arrays, tuple(tangents))
    _check_differentiable("jvp", arrays, range(len(arrays)))
    trees = []
    called = _flat_function(_without_aux(fun, has_aux), tree, trees)
    results = in_trace("jvp", arrays + directions, lambda trace, inputs: _core.jvp(called, inputs, len(arrays), trace))
    half = len(results) // 2
    both = _trees.unflatten(trees[0], results[:half]), _trees.unflatten(trees[0], results[half:])
    return (*both, fun(*_trees.unflatten(tree, arrays))[1]) if has_aux else both


def vjp(fun, *primals, has_aux=False):
    """The value of the function, and a function from cotangents of its result to cotangents of the arguments. Outside of a traced function
    the latter computes the former's forward pass again. With has_aux the function gives a pair, whose second part comes third."""
    leaves, tree = _trees.flatten(primals)
    arrays = [leaf_of(leaf) for leaf in leaves]
    _check_differentiable("vjp", arrays, range(len(arrays)))
    trees = []
    called = _flat_function(_without_aux(fun, has_aux), tree, trees)
    values = in_trace("vjp", arrays, lambda trace, inputs: called(inputs))

    def pull_back(cotangents):
        given = _like("vjp", trees[0], values, cotangents)
        results = in_trace("vjp", arrays + given, lambda trace, inputs: _core.vjp(called, inputs, len(arrays), trace))
        return _trees.unflatten(tree, results[len(given) :])

    value = _trees.unflatten(trees[0], values)
    return (value, pull_back, fun(*_trees.unflatten(tree, arrays))[1]) if has_aux else (value, pull_back)


def stop_gradient(x):
    """A tree of arrays that derivatives take for constants."""
    return _trees.map(lambda leaf: _core.apply("stop_gradient", (leaf_of(leaf),), {}), x)


def linearize(fun, *primals, has_aux=False):
    """The value of the function, and its derivative there: a linear function from tangents of the arguments to the tangent of the result,
    compiled once. With has_aux the function gives a pair, whose second part comes third."""
    from ._jit import jit

    derivative = jit(lambda *tangents: jvp(_without_aux(fun, has_aux), primals, tangents)[1])
    value = fun(*primals)
    return (value[0], derivative, value[1]) if has_aux else (value, derivative)


def hvp(function, primals, tangents):
    """Hessian times vector: the change of the gradient of a scalar function in the directions `tangents`."""
    argnums = tuple(range(len(primals)))
    result = jvp(grad(function, argnums), primals, tangents)[1]
    return result[0] if len(primals) == 1 else result


def _jacobian(function, forward, argnums, has_aux):
    @functools.wraps(function)
    def differentiated(*args, **kwargs):
        places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        leaves, tree = _trees.flatten(tuple(args[place] for place in places))
        arrays = [leaf_of(leaf) for leaf in leaves]
        _check_differentiable("jacobian", arrays, range(len(arrays)))

        sizes = [array.size for array in arrays]
        begins = [sum(sizes[:i]) for i in range(len(sizes))]

        def parts(joined):
            """The last axis, which stands for all leaves, as a tree of their axes."""
            front, columns = joined.shape[:-1], [joined[..., begin : begin + size] for begin, size in zip(begins, sizes)]
            return _trees.unflatten(tree, [column.reshape(*front, *array.shape) for column, array in zip(columns, arrays)])

        def of_joined(joined):
            full = list(args)
            for place, arg in zip(places, parts(joined)):
                full[place] = arg
            return _without_aux(function, has_aux)(*full, **kwargs)

        trees = []
        called = _flat_function(of_joined, _trees.structure((0,)), trees)
        joined = _core.apply("concat", ([array.reshape(-1) for array in arrays], 0), {})
        results = in_trace("jacobian", [joined], lambda trace, inputs: _core.jacobian(called, inputs, forward, trace))
        rows = [parts(each) for each in results]
        jacobian = _trees.unflatten(trees[0], [row[0] for row in rows] if isinstance(argnums, int) else rows)
        return (jacobian, function(*args, **kwargs)[1]) if has_aux else jacobian

    return differentiated


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False):
    """The derivative of every element of the results by every element of the arguments at `argnums`: for each result a tree like these. One
    pass for each element of the arguments. With has_aux the function gives a pair, and so does this, of the derivative and its second part.
    Of complex arguments the function is holomorphic, whether JAX's `holomorphic` says so or not."""
    return _jacobian(fun, True, argnums, has_aux)


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False):
    """The same with one backward pass for each element of the results."""
    return _jacobian(fun, False, argnums, has_aux)


jacobian = jacrev


def hessian(fun, argnums=0, has_aux=False, holomorphic=False):
    """The second derivative of a scalar function by the arguments at `argnums`; as jacfwd."""
    return jacfwd(jacrev(fun, argnums, has_aux), argnums, has_aux)


def _is_axis(value):
    return value is None or isinstance(value, int)


def vmap(fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None):
    """A function for a whole batch from one for single examples. `in_axes` is the axis of the batch in all arguments (None: no batch), or a
    tree of axes that is a prefix of the arguments'; `out_axes` likewise for the result. Arguments by name have the batch on axis 0. A result
    with the axis None is that of the first example, and should be the same for all. `axis_size` is the size of the batch where no argument has
    one; the name of its axis is for readers."""

    @functools.wraps(fun)
    def batched(*args, **kwargs):
        leaves, tree = _trees.flatten((args, kwargs))
        arrays = [leaf_of(leaf) for leaf in leaves]
        axes = _trees.broadcast_prefix(tuple(in_axes) if isinstance(in_axes, list) else in_axes, _trees.structure(args), _is_axis)
        axes += [0] * (len(arrays) - len(axes))
        if all(axis is None for axis in axes):
            if axis_size is None:
                raise Error(f"vmap of {name_of(fun)}: no argument has a batch (in_axes={in_axes}), and there is no axis_size")
            return vmap(lambda _, args, kwargs: fun(*args, **kwargs), (0, None, None), out_axes)(_core.apply("iota", (leaf_of(0), [axis_size], "int32", 0), {}), args, kwargs)
        trees = []
        called = _flat_function(lambda args, kwargs: fun(*args, **kwargs), tree, trees)

        def traced(trace, inputs):
            wanted = [] if out_axes == 0 else _OutAxes(called, trees, out_axes)
            if isinstance(wanted, _OutAxes):
                results = _core.vmap(wanted, inputs, axes, [], trace)
                return [_moved(result, axis) for result, axis in zip(results, wanted.axes())]
            return _core.vmap(called, inputs, axes, [], trace)

        results = in_trace("vmap", arrays, traced)
        return _trees.unflatten(trees[0], results)

    return batched


def _moved(result, axis):
    """A result whose batch is on axis 0."""
    return result[0] if axis is None else _core.apply("move_axis", (result, 0, axis), {}) if axis else result


class _OutAxes:
    """The function of vmap, and where its results get the batch, which its own structure tells."""

    def __init__(self, called, trees, out_axes):
        self.called, self.trees, self.out_axes = called, trees, out_axes

    def __call__(self, inputs):
        return self.called(inputs)

    def axes(self):
        return _trees.broadcast_prefix(self.out_axes, self.trees[0], _is_axis)


class _OnlyNames(tuple):
    """A policy: the names of what is kept."""


def _save_only_these_names(*names):
    if any(not isinstance(name, str) for name in names):
        raise Error(f"save_only_these_names: {names} (allowed: words that rlx.checkpoint_name gives)")
    return _OnlyNames(names)


# What `jax.checkpoint_policies` calls the ways to save.
checkpoint_policies = types.SimpleNamespace(
    everything_saveable="everything",
    nothing_saveable="nothing",
    dots_saveable="dots",
    checkpoint_dots="dots",
    dots_with_no_batch_dims_saveable="unbatched_dots",
    checkpoint_dots_with_no_batch_dims="unbatched_dots",
    save_only_these_names=_save_only_these_names,
)


def checkpoint_name(x, name):
    """A tree of arrays, under a name that checkpoint_policies.save_only_these_names takes."""
    leaves, tree = _trees.flatten(x)
    arrays = [leaf_of(leaf) for leaf in leaves]
    if current_trace(arrays) is None:
        return x
    return _trees.unflatten(tree, in_trace("checkpoint_name", arrays, lambda trace, inputs: [_core.checkpoint_name(each, name, trace) for each in inputs]))


def checkpoint(fun=None, save=None, *, policy=None, static_argnums=(), prevent_cse=True):
    """The function with less memory between its forward and its backward pass. `save`, or as in JAX `policy`, one of rlx.checkpoint_policies, says
    what that keeps: everything, dots (the results of matrix products and convolutions), unbatched_dots (of matrix products without batch
    axes), what has a name, or nothing but the arguments; it computes the rest again. Arguments at `static_argnums` stay as they are. What
    is computed again is never shared, whatever `prevent_cse` says."""
    if fun is None:
        return functools.partial(checkpoint, save=save, policy=policy, static_argnums=static_argnums)
    if save is not None and policy is not None:
        raise Error(f"checkpoint: save={save!r} and policy={policy!r} (allowed: one of them)")
    kept = save or policy or "nothing"
    if not isinstance(kept, (str, _OnlyNames)):
        raise Error(f"checkpoint: a policy of type {type(kept).__name__} (allowed: those in rlx.checkpoint_policies)")
    way, names = (kept, []) if isinstance(kept, str) else ("nothing", list(kept))

    @functools.wraps(fun)
    def saved(*args, **kwargs):
        numbers = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
        static = {i % len(args) for i in numbers if -len(args) <= i < len(args)}
        leaves, tree = _trees.flatten(([arg for i, arg in enumerate(args) if i not in static], kwargs))

        def whole(varying, words):
            rest = iter(varying)
            return fun(*[arg if i in static else next(rest) for i, arg in enumerate(args)], **words)

        trees = []
        called = _flat_function(whole, tree, trees)
        arrays = [leaf_of(leaf) for leaf in leaves]
        results = in_trace("checkpoint", arrays, lambda trace, inputs: _core.checkpoint(called, inputs, way, names, trace))
        return _trees.unflatten(trees[0], results)

    return saved


remat = checkpoint
