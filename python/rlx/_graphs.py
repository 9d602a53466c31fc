"""Graphs with named inputs and outputs, sessions that compile them, and what came of it."""
import functools
import os
import re
import shutil
import subprocess

from . import _core, _misses, _trees
from ._array import Array, place_of
from ._conversions import _implicit
from ._core import Error
from ._dtypes import as_dtype
from ._tables import Table
from ._tracing import inside_of, leaf_of, name_of

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "reduce_max", "min": "reduce_min", "prod": "prod"}
_ATTENTION = {"none": {}, "causal": {"causal": True}, "sliding_window": {"causal": True}, "custom": {}, "bias": {}}


def _call(name, *args, **kwargs):
    return _core.apply(name, args, kwargs)


class Graph(_core.Graph):
    """A tensor program with named inputs and outputs. Values of it are arrays, for every function of rlx and rlx.numpy."""

    def __init__(self, name="graph"):
        super().__init__(name)
        self._trace = _core.Trace.of(self)

    def input(self, name, shape, dtype="f32") -> Array:
        """A value that each run is given. Sizes may be rlx.Dim."""
        return self._trace.value(self._add_input(name, tuple(shape), dtype, "input"))

    def param(self, name, shape, dtype="f32") -> Array:
        """A value that an executable is given once."""
        return self._trace.value(self._add_input(name, tuple(shape), dtype, "param"))

    def state(self, name, shape, dtype="f32") -> Array:
        """A value that stays from run to run, replaced by the output of its name."""
        return self._trace.value(self._add_input(name, tuple(shape), dtype, "state"))

    def constant(self, value, dtype=None) -> Array:
        from ._conversions import asarray

        return self._trace.lift(asarray(value, dtype, copy=True))

    def output(self, name, value):
        """Makes a value a result of runs."""
        self._add_output(name, self._trace.lift(value))

    def set_outputs(self, values):
        """The results of runs: values by name, or a list of them, whose names are their places."""
        named = values.items() if isinstance(values, dict) else ((str(i), value) for i, value in enumerate(values))
        for name, value in named:
            self.output(name, value)

    # The members that users of the first RLX know, where a function of rlx has another name or another order of arguments.

    def matmul(self, x, w):
        return x @ w

    def lora_matmul(self, x, w, a, b, scale=1.0):
        """x w + scale (x a) b."""
        return x @ w + (x @ a) @ b * scale

    def activation(self, name, x):
        """A function of each element by its name: "gelu", "relu", "exp"."""
        return _call({"gelu_approx": "gelu_tanh"}.get(name, name), x)

    def compare(self, name, x, y):
        """eq, ne, lt, le, gt or ge of each element."""
        if name not in _COMPARISONS:
            raise Error(f"Graph.compare: there is no comparison {name!r} (allowed: {', '.join(_COMPARISONS)})")
        return _call(name, x, y)

    def reduce(self, name, x, axes, keep_dim=False):
        """sum, mean, max, min or prod over axes."""
        if name not in _REDUCTIONS:
            raise Error(f"Graph.reduce: there is no reduction {name!r} (allowed: {', '.join(_REDUCTIONS)})")
        return _call(_REDUCTIONS[name], x, list(axes), keep_dims=keep_dim)

    def gather(self, table, ids, axis=0):
        """The slices of `table` at integer positions along an axis."""
        return _call("take", table, ids, axis)

    def narrow(self, x, axis, start, length):
        """Elements start .. start + length - 1 along an axis."""
        return x[(slice(None),) * place_of(axis, x.ndim) + (slice(start, start + length),)]

    def concat(self, values, axis=0):
        return _call("concat", list(values), axis)

    def where_(self, condition, x, y):
        return _call("where", condition, x, y)

    def cast(self, x, dtype):
        return x.astype(dtype)

    def layer_norm(self, x, gamma=None, beta=None, eps=1e-5, axis=-1):
        return _call("layer_norm", x, gamma, beta, eps=eps, axes=[axis])

    def rms_norm(self, x, gamma=None, beta=None, eps=1e-5, axis=-1):
        y = _call("rms_norm", x, gamma, eps=eps, axes=[axis])
        return y if beta is None else y + beta

    def attention(self, q, k, v, mask=None, **options):
        """softmax(q k^T scale) v of (batch, heads, tokens, features); options are those of rlx.attention."""
        return _call("attention", q, k, v, mask=mask, **options)

    def attention_kind(self, q, k, v, kind="none", mask=None, window=0, **options):
        """The same with a mask by its name: none, causal, sliding_window (of `window` keys), custom (a boolean `mask`) or bias (an additive one)."""
        if kind not in _ATTENTION:
            raise Error(f"Graph.attention_kind: there is no mask {kind!r} (allowed: {', '.join(_ATTENTION)})")
        more = {"window": window} if kind == "sliding_window" else {"bias" if kind == "bias" else "mask": mask} if mask is not None else {}
        return _call("attention", q, k, v, **_ATTENTION[kind], **more, **options)

    def cumsum(self, x, axis=-1, exclusive=False):
        return _call("cumsum", x, axis, exclusive=exclusive)

    def dense_solve(self, a, b):
        """x with a x = b."""
        from .numpy import linalg

        return linalg.solve(a, b)

    def custom_fn(self, function, *values, jvp=None, vjp=None):
        """function(*values) with a derivative of one's own: `jvp`, a rule as of custom_jvp, or `vjp`, a pair of rules as of custom_vjp."""
        from ._custom import custom_jvp, custom_vjp

        if (jvp is None) == (vjp is None):
            raise Error("Graph.custom_fn: one of jvp and vjp is needed")
        made = custom_jvp(function) if vjp is None else custom_vjp(function)
        made.defjvp(jvp) if vjp is None else made.defvjp(*vjp)
        return made(*values)

    def __getattr__(self, name):
        """Every function of the registry, on values of this graph: g.rope(x, ...), g.softmax(x)."""
        from . import ops

        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(ops, name)

    def __dir__(self):
        from . import ops

        return sorted({*super().__dir__(), *dir(ops)})

    # Graphs made of this one.

    def _names(self, wrt):
        return [name for name, kind, type_ in self.inputs if kind == "param" and type_[0] in "fb"] if wrt is None else list(wrt)

    def grad(self, wrt=None, with_value=False):
        """A graph with `grad_<input>` for each name, by default the float parameters: the gradient of the only output, a float scalar."""
        return _made(_core.grad_graph(self, self._names(wrt), with_value))

    def jvp(self, wrt=None):
        """All outputs, then `tangent_<output>`; `tangent_<input>` are further inputs."""
        return _made(_core.jvp_graph(self, self._names(wrt)))

    def hvp(self, wrt=None):
        """`hvp_<input>`: the change of the gradients along the further inputs `vector_<input>`."""
        return _made(_core.hvp_graph(self, self._names(wrt)))

    def jacfwd(self, wrt=None):
        """`jacobian_<output>_<input>`, one pass for each element of the inputs."""
        return _made(_core.jacobian_graph(self, self._names(wrt), True))

    def jacrev(self, wrt=None):
        """The same with one backward pass for each element of the outputs."""
        return _made(_core.jacobian_graph(self, self._names(wrt), False))

    def vmap(self, in_axes, size, out_axis=0):
        """The graph for `size` examples: an input has the batch on the axis that `in_axes` gives by its name, others have none."""
        return _made(_core.vmap_graph(self, dict(in_axes), out_axis, size))

    def to_dot(self):
        """The graph as text for Graphviz."""
        lines = [f'digraph "{self.name}" {{', "node [shape=box, fontsize=10, style=rounded];"]
        for line in str(self).splitlines():
            output = re.match(r"\s*output (\S+) = %(\w+)", line)
            if output:
                lines += [f'"output {output[1]}" [shape=ellipse];', f'"{output[2]}" -> "output {output[1]}";']
                continue
            made, _, call = line.partition(" = ")
            results = re.findall(r"%(\w+)(?:: ([^%=]+?))?(?=,? %|$)", made.strip())
            if not call or not results:
                continue
            op, label = call.split("(")[0].split(" ")[0], re.search(r'label="([^"]*)"', call)
            title = "\\n".join([label[1] if label else op, *(type_ for _, type_ in results if type_)])
            lines.append(f'"{results[0][0]}" [label="{title}"];')
            lines += [f'"{name}" [label="{op}"]; "{results[0][0]}" -> "{name}";' for name, _ in results[1:]]
            operands = call[call.index("(") + 1 : call.index(")")] if "(" in call.split("{")[0] else ""
            lines += [f'"{operand}" -> "{results[0][0]}";' for operand in re.findall(r"%(\w+)", operands)]
        return "\n".join([*lines, "}"])

    def _repr_svg_(self):
        """A drawing in a notebook, where Graphviz is there."""
        program = shutil.which("dot")
        if program is None:
            return None
        return subprocess.run([program, "-Tsvg"], input=self.to_dot(), capture_output=True, text=True, check=True, timeout=60).stdout

    def _repr_html_(self):
        return None if shutil.which("dot") else f"<pre>{str(self).replace('<', '&lt;')}</pre>"

    def __reduce__(self):
        return parse_graph, (str(self), self.name)


def make_graph(function, static_argnums=(), static_argnames=()):
    """A function that gives the graph of function(*args, **kwargs), where jax.make_jaxpr gives one of JAX's own: str(graph) is its text.
    Its inputs have the names of arguments and of what is in them, its outputs begin with "out"; large arrays that the function captures
    are inputs, too."""
    from ._jit import Jit

    traced = Jit(function, static_argnums, static_argnames)

    @functools.wraps(function)
    def graph_of(*args, **kwargs):
        static, dynamic = traced._split(args, kwargs)
        leaves, tree = _trees.flatten(dynamic)
        arrays = [leaf_of(leaf) for leaf in leaves]
        call = _misses.Call(traced._dynamic_names(static), static, dynamic, tree, arrays)
        graph = Graph(name_of(function))
        inputs = [graph.input(name, array.shape, array.dtype) for name, array in zip(call.types, arrays)]
        for array, like in zip(inputs, arrays):
            if like._weak:
                array._set_weak()
        with inside_of(graph._trace):
            args, kwargs = traced._joined(static, _trees.unflatten(tree, inputs))
            result = function(*args, **kwargs)
            for path, leaf in _trees.leaves_with_path(result):
                graph.output("out" + _trees.keystr(path), leaf_of(leaf))
        return graph

    return graph_of


def _made(graph):
    result = Graph.__new__(Graph)
    _core.Graph.__init__(result, graph)
    result._trace = _core.Trace.of(result)
    return result


def _made_again(origin, values):
    make, *arguments = origin
    executable = make(*arguments)
    executable.set_params(values)
    return executable


def parse_graph(text, what="graph") -> Graph:
    """The graph that a text describes; `what` it is called in errors."""
    return _made(_core.parse_graph(text, what))


def load_program(path, device="", threads=0) -> "Executable":
    """What Executable.save, jit(f).lower(...).save or `rlx compile` wrote, ready to run: nothing is traced or compiled. Its code is run: open
    files of those whom you trust alone. A function's inputs are the leaves of its arguments, for `run_flat`."""
    compiled, graph = _core.load_program(path, device, threads)
    return Executable(compiled, _made(graph), (load_program, os.path.abspath(path), device, threads))


class Session(_core.Session):
    """A device with its threads and its compiler. threads: 0 takes as many as the process may use. precision of matrix products: f32, bf16, f16
    or int8. device: a name of rlx.devices(); empty: RLX_DEVICE, else the CPU. Pickled by these options."""

    def __init__(self, device: str = "", precision: str = "f32", threads: int = 0, claims: bool = True, fuse: bool = True, check_indices: bool = False,
                 cache_folder=None, cpu_level: str = ""):  # fmt: skip
        self._options = device, precision, threads, claims, fuse, check_indices, cache_folder, cpu_level
        super().__init__(threads, precision, claims, fuse, check_indices, cache_folder, cpu_level, device)

    def compile(self, graph) -> "Executable":
        """The graph as a program."""
        return Executable(super().compile(graph), graph, (Session.compile, self, graph))

    def __reduce__(self):
        return Session, self._options


class Executable(_core.Executable):
    """A compiled graph. Any number of threads may run it. Pickled by its graph and session, or by the file that it was loaded from; parameters
    that were set go with it, and the states as they are."""

    def __init__(self, compiled, graph, origin):
        super().__init__(compiled)
        self.graph, self._origin, self._params = graph, origin, {}

    def set_param(self, name, value):
        """Binds a parameter, without a copy where the array owns its memory."""
        self.set_params({name: value})

    def set_params(self, values):
        """Binds parameters and replaces states by their names, all of them or none."""
        arrays = {name: _implicit(value) for name, value in values.items()}
        super().set_params(arrays)
        self._params.update(arrays)

    def __reduce__(self):
        states = {name: self.state(name) for name, kind, _ in self.graph.inputs if kind == "state"}
        return _made_again, (self._origin, {**self._params, **states})

    def set_param_typed(self, name, data, dtype):
        """Binds a parameter from bytes of elements of a type; the graph has its shape."""
        import numpy

        shape = next((shape for each, _, shape in self._input_shapes() if each == name), None)
        if shape is None:
            raise Error(f"set_param_typed: there is no parameter {name!r} (allowed: {', '.join(each for each, *_ in self.graph.inputs)})")
        flat = numpy.frombuffer(data, numpy.uint8)
        self.set_param(name, _core.from_bytes(flat, as_dtype(dtype), shape, flat))

    def run_typed(self, inputs):
        """As `run`: results have the types of the graph."""
        return self.run(inputs)

    def run_flat(self, *arrays):
        """The results, in order, for the inputs in order."""
        names = [name for name, kind, _ in self.graph.inputs if kind == "input"]
        if len(names) != len(arrays):
            raise Error(f"run_flat: the graph has {len(names)} inputs (given: {len(arrays)})")
        return list(self.run(dict(zip(names, arrays))).values())

    def _input_shapes(self):
        for name, kind, text in self.graph.inputs:
            sizes = text[text.index("[") + 1 : -1]
            yield name, kind, [int(size) for size in sizes.split(",")] if sizes.replace(",", "").isdigit() else []

    def profile(self, inputs, repeats=5):
        """For each launch its cost and the least time of several runs: a Table, which notebooks show."""
        return Table(super().profile(inputs, repeats), "seconds")

    def explain(self):
        """For each node its text, how it is computed, and by what."""
        return Table([dict(zip(("node", "how", "by"), row)) for row in super().explain()])
