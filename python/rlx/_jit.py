"""Compiled functions of arrays."""
import functools

from . import _core, _misses, _trees
from ._core import Error
from ._pickling import Pickled
from ._tracing import compile_for, current_trace, flat_outputs, leaf_of, name_of


class Jit(Pickled):
    """A function that is compiled for each signature of its arguments: structure, shapes, element types, static values. Where it is pickled
    to it is traced anew, and finds its kernels on disk."""

    def __init__(self, function, static_argnums=(), static_argnames=(), dims=None, donate_argnums=(), donate_argnames=(), device=None):
        self.function = function
        self.device = device
        self.donate_argnums = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
        self.donate_argnames = {donate_argnames} if isinstance(donate_argnames, str) else set(donate_argnames)
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.static_argnames = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
        self.dims = dims or {}
        self.has_static = bool(self.static_argnums or self.static_argnames)
        self.programs, self.calls = _core.Programs(), []
        functools.update_wrapper(self, function, updated=())  # the attributes of a wrapped Jit or custom rule would replace these

    def _parts(self):
        return (self.function, self.static_argnums, self.static_argnames, self.dims, self.donate_argnums, self.donate_argnames, self.device)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        leaves = _trees.flatten(instance)[0]
        if not (len(leaves) == 1 and leaves[0] is instance):  # a container of arrays is an argument as any other
            return _OfContainer(self, instance)
        # The object, argument 0, is bound; numbers from the end stay.
        numbers = [[i - (i > 0) for i in each if i != 0] for each in (self.static_argnums, self.donate_argnums)]
        function = functools.partial(self.function, instance)
        return _Method(function, numbers[0], self.static_argnames, self.dims, numbers[1], self.donate_argnames, self.device)

    def __call__(self, *args, **kwargs):
        if self.device is None:
            return self._called(args, kwargs)
        with default_device(self.device):
            return self._called(args, kwargs)

    def _called(self, args, kwargs):
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
        program, result_tree = self._compiled(static, dynamic, tree, arrays)
        self.programs.add(static, tree, program, result_tree)
        return _trees.unflatten(result_tree, program(arrays))

    def lower(self, *args, **kwargs):
        """The compiled program for such arguments: `dump(stage)` shows it, and `save(path)` writes it for rlx.load_program."""
        static, dynamic = self._split(args, kwargs) if self.has_static else ((), (args, kwargs))
        leaves, tree = _trees.flatten(dynamic)
        with default_device(self.device):
            return self._compiled(static, dynamic, tree, [leaf_of(leaf) for leaf in leaves])[0]

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

    def _leaves_of(self, static, dynamic):
        """Name, number and leaves, by their places, of each argument that is not static."""
        names, at = self._dynamic_names(static), 0
        static_numbers = {where for where, _ in static if isinstance(where, int)}
        numbers = [i for i in range(len(dynamic[0]) + len(static_numbers)) if i not in static_numbers]
        names += [None] * (len(dynamic[0]) - len(names))
        for name, number, value in [*zip(names, numbers, dynamic[0]), *((name, None, value) for name, value in dynamic[1].items())]:
            count = len(_trees.leaves(value))
            yield name, number, range(at, at + count)
            at += count

    def _compiled(self, static, dynamic, tree, arrays):
        result, sizes, donated = [], {}, set()
        if self.dims or self.donate_argnums or self.donate_argnames:
            for name, number, places in self._leaves_of(static, dynamic):
                sizes.update((i, self.dims.get(name, {})) for i in places)
                if number in self.donate_argnums or name in self.donate_argnames:
                    donated.update(places)
                    if self.dims.get(name):
                        raise Error(f"jit of {name_of(self.function)}: the donated argument {name} has symbolic sizes")

        def traced(_, inputs):
            args, kwargs = self._joined(static, _trees.unflatten(tree, inputs))
            outputs, out_tree = flat_outputs(self.function(*args, **kwargs))
            result.append(out_tree)
            return outputs

        program = compile_for(name_of(self.function), arrays, traced, sizes, donated)
        return program, result[0]


class _OfContainer:
    """A compiled method of a module or another container, which is its first argument: other numbers in it compile nothing."""

    def __init__(self, compiled, instance):
        self._compiled, self._instance = compiled, instance
        functools.update_wrapper(self, compiled, updated=())

    def __call__(self, *args, **kwargs):
        return self._compiled(self._instance, *args, **kwargs)

    def lower(self, *args, **kwargs):
        return self._compiled.lower(self._instance, *args, **kwargs)

    def cache_size(self):
        return self._compiled.cache_size()

    def __reduce__(self):
        return getattr, (self._instance, self.__name__)


class _Method(Jit):
    """That of another object, whose attributes are constants; by its name it is pickled."""

    def __reduce__(self):
        return getattr, (self.function.args[0], self.function.func.__name__)


class default_device:
    """Where this thread computes: `with rlx.default_device("opencl:0"): ...`. The name is one of rlx.devices(), others are an Error; None
    changes nothing."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.before = None if self.name is None else _core.set_device_of_thread(self.name)
        return self

    def __exit__(self, *_):
        if self.before is not None:
            _core.set_device_of_thread(self.before)


def jit(fun=None, *, static_argnums=(), static_argnames=(), dims=None, donate_argnums=(), donate_argnames=(), device=None):
    """Compiles a function of arrays: it is traced once for each structure, shapes and element types of its arguments, and then runs as one
    program. Arguments and results are trees of arrays. Static arguments are handed to the function as they are, and need a hash.
    `dims` makes sizes symbolic, by argument and axis: jit(f, dims={"x": {0: rlx.Dim("B", 512)}}) compiles nothing for a new batch size.
    Donated arguments are arrays that nobody needs after the call: results of their types lie in their memory. `device` is a name of
    rlx.devices(), by itself the default_device."""

    def made(decorated):
        return Jit(decorated, static_argnums, static_argnames, dims, donate_argnums, donate_argnames, device)

    return made if fun is None else made(fun)
