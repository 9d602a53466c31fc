"""Functions with derivatives of one's own."""
import contextlib
import functools
import inspect
import threading

from . import _core, _trees
from ._core import Error
from ._dtypes import is_complex, is_floating
from ._pickling import Pickled
from ._tracing import current_trace, flat_outputs, in_region, in_trace, leaf_of, name_of


_MOST_RULES = 2  # within each other: that of the third derivative and beyond is the function's own


class _Custom(Pickled):
    """A function whose rules come later. The arguments at `nondiff_argnums` are handed to it and to the rules as they are. A rule may call the
    function, whose derivative there follows the rule again."""

    _added = "rule", "forward", "backward"

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        numbers = {*nondiff_argnums, *(list(inspect.signature(fun).parameters).index(name) for name in nondiff_argnames)}
        self.function, self.nondiff = fun, tuple(sorted(numbers))
        self.running = threading.local()  # rules, within each other
        functools.update_wrapper(self, fun, updated=())  # the attributes of a wrapped Jit or custom rule would replace these

    def _parts(self):
        return self.function, self.nondiff

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _split(self, args, kwargs):
        """The static arguments, and the tree of the others, by place."""
        if kwargs:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        return tuple(args[i] for i in self.nondiff), tuple(arg for i, arg in enumerate(args) if i not in self.nondiff)

    def _call(self, static, dynamic):
        args = list(dynamic)
        for i, value in zip(self.nondiff, static):
            args.insert(i, value)
        return self.function(*args)

    @contextlib.contextmanager
    def _in_rule(self):
        self.running.depth = getattr(self.running, "depth", 0) + 1
        try:
            yield
        finally:
            self.running.depth -= 1

    def _has_rule(self):
        return getattr(self.running, "depth", 0) < _MOST_RULES

    def _run(self, static, dynamic, transformed):
        """Calls transformed(function, tree of its arguments, list of which the last is the tree of its results, trace, arrays)."""
        leaves, tree = _trees.flatten(dynamic)
        trees = []

        @in_region
        def called(inputs):
            outputs, out_tree = flat_outputs(self._call(static, _trees.unflatten(tree, inputs)))
            trees.append(out_tree)
            return outputs

        results = in_trace(name_of(self.function), [leaf_of(leaf) for leaf in leaves], functools.partial(transformed, called, tree, trees))
        return _trees.unflatten(trees[0], results)


def _slots(what, tree, value):
    """A value, or None, for each leaf of `tree`."""
    try:
        values = _trees.broadcast_prefix(value, tree, lambda each: each is None or _trees.items(each) is None)
    except Error:
        raise Error(f"{what}: the rule gives {_trees.structure(value)} for {tree}") from None
    return [None if each is None else leaf_of(each) for each in values]


def _check_zeros(what, symbolic_zeros):
    if symbolic_zeros:
        raise Error(f"{what}: symbolic_zeros=True (allowed: False, a tangent that is 0 is an array of zeros)")


class custom_jvp(_Custom):
    """A function with a forward derivative of one's own; the backward one is its transpose.

    `defjvp` takes rule(primals, tangents), which gives the result and its tangent, both like the result. Tangents of arguments that do
    not change are zeros, those of integers None. Static arguments come before both."""

    def defjvp(self, jvp, symbolic_zeros=False):
        _check_zeros("custom_jvp", symbolic_zeros)
        self.rule = jvp
        return jvp

    def defjvps(self, *rules):
        """One rule(tangent, result, *primals) for each argument; None: the result does not depend on it."""

        def rule(primals, tangents):
            result = self.function(*primals)
            parts = [each(tangent, result, *primals) for each, tangent in zip(rules, tangents) if each is not None]
            return result, functools.reduce(lambda one, other: _trees.map(lambda a, b: a + b, one, other), parts)

        self.rule = rule

    def __call__(self, *args, **kwargs):
        if not hasattr(self, "rule"):
            raise Error(f"custom_jvp of {name_of(self.function)}: there is no rule (call defjvp)")
        static, dynamic = self._split(args, kwargs)
        if not self._has_rule():
            return self._call(static, dynamic)

        def transformed(called, tree, trees, trace, arrays):
            def rule(primals, tangents):
                with self._in_rule():
                    _, change = self.rule(*static, _trees.unflatten(tree, primals), _trees.unflatten(tree, tangents))
                return _slots("custom_jvp", trees[0], change)

            return _core.custom_jvp(called, rule, arrays, trace)

        return self._run(static, dynamic, transformed)


class custom_vjp(_Custom):
    """A function with a backward derivative of one's own; forward derivatives are those of the function itself.

    `defvjp` takes forward(*args), which gives the result and a tree of arrays to keep, and backward(kept, cotangent), which gives a tuple of
    the arguments' cotangents (None: zero). Static arguments come before those of `backward`."""

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        _check_zeros("custom_vjp", symbolic_zeros)
        self.forward, self.backward = fwd, bwd

    def __call__(self, *args, **kwargs):
        if not hasattr(self, "forward"):
            raise Error(f"custom_vjp of {name_of(self.function)}: there are no rules (call defvjp)")
        static, dynamic = self._split(args, kwargs)
        if not self._has_rule():
            return self._call(static, dynamic)

        def transformed(called, tree, trees, trace, arrays):
            kept_trees = []

            def forward(primals):
                with self._in_rule():
                    pair = _Custom._call(_Rule(self.forward, self.nondiff), static, _trees.unflatten(tree, primals))
                if not isinstance(pair, tuple) or len(pair) != 2:
                    raise Error(f"custom_vjp: the forward rule gives a {type(pair).__name__} (allowed: a pair of the result and what is kept)")
                outputs, kept = flat_outputs(pair[0])[0], flat_outputs(pair[1])
                kept_trees.append(kept[1])
                return outputs, kept[0]

            def backward(kept, cotangents):
                with self._in_rule():
                    given = self.backward(*static, _trees.unflatten(kept_trees[0], kept), _trees.unflatten(trees[0], cotangents))
                return _slots("custom_vjp", tree, given)

            return _core.custom_vjp(called, forward, backward, arrays, trace)

        return self._run(static, dynamic, transformed)


def closure_convert(fun, *example_args):
    """A function of more arguments, and a list of these: the traced arrays of floats that fun(*example_args) takes from around it. So a
    custom_vjp gets them as arguments, and gives derivatives by them. The arguments of later calls are like the examples."""
    leaves, tree = _trees.flatten(example_args)
    arrays = [leaf_of(leaf) for leaf in leaves]
    trace = current_trace(arrays)
    taken = [] if trace is None else trace.taken_by(lambda copies: flat_outputs(fun(*_trees.unflatten(tree, copies))), arrays)
    captured = [each for each in taken if is_floating(each.dtype) or is_complex(each.dtype)]

    @functools.wraps(fun)
    def converted(*args):
        given, others = args[: len(example_args)], args[len(example_args) :]
        if len(others) != len(captured):
            raise Error(f"closure_convert of {name_of(fun)}: {len(args)} arguments (allowed: {len(example_args)} and {len(captured)} captured ones)")
        return fun(*given) if trace is None else trace.with_others(captured, others, lambda: fun(*given))

    return converted, captured


class _Rule:
    """What `_call` needs to know of a rule that takes the arguments of its function."""

    def __init__(self, function, nondiff):
        self.function, self.nondiff = function, nondiff
