"""Why a compiled function was traced again."""
from . import _trees
from ._tracing import name_of


class explain_cache_misses:  # noqa: N801: called like a function
    """From now on the logger "rlx" says for each function that is traced again what differs from the call before that is nearest.
    explain_cache_misses(False) ends it, and so does the end of a `with` block."""

    wanted = False

    def __init__(self, wanted=True):
        self.before, explain_cache_misses.wanted = explain_cache_misses.wanted, wanted

    def __enter__(self):
        return self

    def __exit__(self, *_):
        explain_cache_misses.wanted = self.before


def _paths(name, value):
    """The name of each leaf: params['w'][0]."""
    return [name + _trees.keystr(path) for path, _ in _trees.leaves_with_path(value)]


class Call:
    """What a program was compiled for."""

    def __init__(self, names, static, dynamic, tree, arrays):
        args, kwargs = dynamic
        given = [*zip([*names, *(f"argument {i}" for i in range(len(names), len(args)))], args), *sorted(kwargs.items())]
        self.static, self.tree = dict(static), tree
        self.types = {}
        paths = [path for name, value in given for path in _paths(name, value)]
        for path, array in zip(paths, arrays):
            self.types[path] = array._type_text() + (" (a number of Python)" if array._weak else "")

    def differences(self, other):
        """What changed from `other` to this call."""
        texts = [f"static argument {where!r}: {other.static.get(where)!r} -> {value!r}" for where, value in self.static.items()
                 if where not in other.static or other.static[where] != value]  # fmt: skip
        if self.tree != other.tree:
            return [*texts, f"structure: {other.tree} -> {self.tree}"]
        return [*texts, *(f"{path}: {other.types.get(path)} -> {text}" for path, text in self.types.items() if other.types.get(path) != text)]


def explain(function, calls, call):
    """Logs why `call` is none of `calls`."""
    import logging

    code = getattr(function, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    changes = min((call.differences(other) for other in calls), key=len, default=["its first call"])
    logging.getLogger("rlx").warning("jit of %s%s is traced: %s", name_of(function), where, "; ".join(changes))
