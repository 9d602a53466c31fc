"""Tracing: a function is called with arrays that stand for those of later runs."""
import contextlib

from . import _core, _trees
from ._array import active, Array
from ._conversions import _leaf
from ._core import Error


def leaf_of(value):
    """A leaf as an array."""
    return value if isinstance(value, Array) else _leaf(value)


def name_of(function):
    return getattr(function, "__qualname__", type(function).__name__)


def flat_outputs(result):
    """The results of a region as arrays, the first of which carries the effects that were asked for there."""
    leaves, tree = _trees.flatten(result)
    outputs = [leaf_of(leaf) for leaf in leaves]
    effects = getattr(active, "effects", None)
    while effects and outputs:
        outputs[0] = effects.pop(0)(outputs[0])
        active.had_effects = True
    return outputs, tree


@contextlib.contextmanager
def region():
    """The effects that are asked for meanwhile belong to what is traced there."""
    before, active.effects = getattr(active, "effects", None), []
    try:
        yield
        if active.effects:
            raise Error("rlx.debug: a call in a traced function that gives no array (allowed: in one whose result carries it)")
    finally:
        active.effects = before


def in_region(function):
    """`function`, which traces a region."""

    def called(*args):
        with region():
            return function(*args)

    return called


class Traced:
    """A function of a list of arrays that is called while a graph is made."""

    def __init__(self, trace, function):
        self.trace, self.function = trace, function

    def __call__(self, *args):
        with region():
            return self.function(*args)


def current_trace(arrays):
    """The trace that any of the arrays belongs to, else the innermost one: functions may capture what is traced there."""
    trace = _core.trace_of(arrays)
    stack = getattr(active, "traces", None)
    return stack[-1] if trace is None and stack else trace


@contextlib.contextmanager
def outside_of_traces():
    """What is computed meanwhile is no part of the functions that this thread traces."""
    stack = getattr(active, "traces", [])
    active.traces = []
    try:
        yield
    finally:
        active.traces = stack


ensure_compile_time_eval = outside_of_traces


@contextlib.contextmanager
def inside_of(trace):
    """What is computed meanwhile is part of the trace."""
    stack = active.traces = getattr(active, "traces", [])
    stack.append(trace)
    try:
        yield
    finally:
        stack.pop()


def compile_for(name, arrays, function, sizes=None, donated=()):
    """Traces `function`, of a list of arrays, for arrays like these. `sizes` gives symbolic sizes for an array by its place; the memory of
    those at the places `donated` becomes that of results."""
    trace = _core.Trace(name)
    inputs = [
        trace.input([sizes[i].get(axis, size) for axis, size in enumerate(array.shape)], array._dtype, array._weak)
        if sizes and sizes.get(i)
        else trace.input_like(array, i in donated)
        for i, array in enumerate(arrays)
    ]
    with inside_of(trace), region():
        outputs = function(trace, inputs)
    return _core.Compiled(trace, outputs)


def in_trace(name, arrays, function):
    """Calls function(trace, arrays) in the trace that is in the making, or in one of its own that runs at once."""
    trace = current_trace(arrays)
    if trace is not None:
        return function(trace, [trace.lift(array) for array in arrays])
    return compile_for(name, arrays, function)(arrays)
