"""Compiled functions of arrays."""
import functools

from . import _core, _misses, _trees
from ._core import Error
from ._tracing import compile_for, current_trace, flat_outputs, leaf_of, name_of


class Jit:
    """A function that is compiled for each signature of its arguments: structure, shapes, element types, static values."""

    def __init__(self, function, static_argnums=(), static_argnames=(), dims=None):
        self.function = function
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.static_argnames = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
        self.dims = dims or {}
        self.has_static = bool(self.static_argnums or self.static_argnames)
        self.programs, self.calls = _core.Programs(), []
        functools.update_wrapper(self, function)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        bound = Jit(functools.partial(self.function, instance), [i - 1 for i in self.static_argnums], self.static_argnames, self.dims)
        return bound

    def __call__(self, *args, **kwargs):
        static, dynamic = self._split(args, kwargs) if self.has_static else ((), (args, kwargs))
        result = self.programs(static, dynamic)
        if result is not NotImplemented:
            return result
        leaves, tree = _trees.flatten(dynamic)
        arrays = [leaf_of(leaf) for leaf in leaves]
        if current_trace(arrays) is not None:
            return self.function(*args, **kwargs)
        call = _misses.Call(self._dynamic_names(static), static, dynamic, tree, arrays)
        if _misses.explain_cache_misses.wanted:
            _misses.explain(self.function, self.calls, call)
        self.calls.append(call)
        program, result_tree = self._compiled(static, tree, arrays, self._sizes(static, dynamic) if self.dims else None)
        self.programs.add(static, tree, program, result_tree)
        return _trees.unflatten(result_tree, program(arrays))

    def lower(self, *args, **kwargs):
        """The compiled program for such arguments, whose `dump(stage)` shows it."""
        static, dynamic = self._split(args, kwargs) if self.has_static else ((), (args, kwargs))
        leaves, tree = _trees.flatten(dynamic)
        return self._compiled(static, tree, [leaf_of(leaf) for leaf in leaves], self._sizes(static, dynamic) if self.dims else None)[0]

    def cache_size(self):
        """How many signatures were compiled."""
        return len(self.programs)

    def _split(self, args, kwargs):
        """Static arguments by place or name, and the others."""
        at = {i % len(args) for i in self.static_argnums if -len(args) <= i < len(args)}
        at |= {i for i, name in enumerate(self._names()[: len(args)]) if name in self.static_argnames}
        static = tuple((i, args[i]) for i in sorted(at)) + tuple((k, v) for k, v in sorted(kwargs.items()) if k in self.static_argnames)
        for where, value in static:
            try:
                hash(value)
            except TypeError:
                raise Error(f"jit of {name_of(self.function)}: static argument {where!r} is a {type(value).__name__}, which has no hash") from None
        dynamic = tuple(arg for i, arg in enumerate(args) if i not in at), {k: v for k, v in kwargs.items() if k not in self.static_argnames}
        return static, dynamic

    def _names(self):
        code = getattr(self.function, "__code__", None)
        if code and not hasattr(self.function, "__wrapped__"):
            return code.co_varnames[: code.co_argcount]
        import inspect

        try:
            return [p.name for p in inspect.signature(self.function).parameters.values()]
        except (TypeError, ValueError):
            return []

    def _dynamic_names(self, static):
        at = {where for where, _ in static if isinstance(where, int)}
        return [name for i, name in enumerate(self._names()) if i not in at and name not in self.static_argnames]

    def _joined(self, static, dynamic):
        args, kwargs = list(dynamic[0]), dict(dynamic[1])
        for where, value in static:
            if isinstance(where, int):
                args.insert(where, value)
            else:
                kwargs[where] = value
        return args, kwargs

    def _sizes(self, static, dynamic):
        """Symbolic sizes of the leaves of each named argument, by the place of the leaf."""
        named = [*zip(self._dynamic_names(static), dynamic[0]), *dynamic[1].items()]
        sizes, at = {}, 0
        for name, value in named:
            count = len(_trees.leaves(value))
            for i in range(at, at + count):
                sizes[i] = self.dims.get(name, {})
            at += count
        return sizes

    def _compiled(self, static, tree, arrays, sizes):
        result = []

        def traced(_, inputs):
            args, kwargs = self._joined(static, _trees.unflatten(tree, inputs))
            outputs, out_tree = flat_outputs(self.function(*args, **kwargs))
            result.append(out_tree)
            return outputs

        program = compile_for(name_of(self.function), arrays, traced, sizes)
        return program, result[0]


def jit(function=None, *, static_argnums=(), static_argnames=(), dims=None):
    """Compiles a function of arrays: it is traced once for each structure, shapes and element types of its arguments, and then runs as one
    program. Arguments and results are trees of arrays. Static arguments are handed to the function as they are, and need a hash.
    `dims` makes sizes symbolic, by argument and axis: jit(f, dims={"x": {0: rlx.Dim("B", 512)}}) compiles nothing for a new batch size."""
    if function is None:
        return lambda decorated: Jit(decorated, static_argnums, static_argnames, dims)
    return Jit(function, static_argnums, static_argnames, dims)
