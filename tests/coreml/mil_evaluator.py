"""Runs an ML Program without a Mac: coremltools loads and types the package, and each operation is computed here.

Operations are computed by coremltools' own value inference where it has one, and by NumPy below where it has none, or where that says in
a comment why. Nothing of it shows what a device does.
"""
import logging
import pathlib
import sys

import numpy as np

logging.disable(logging.WARNING)  # coremltools says which of its libraries are for macOS alone
import coremltools as ct  # noqa: E402
from coremltools.converters.mil import Builder as mb  # noqa: E402
from coremltools.converters.mil.frontend.milproto.load import load as load_program  # noqa: E402
from coremltools.converters.mil.mil import Function  # noqa: E402
from coremltools.converters.mil.mil.types.symbolic import is_symbolic  # noqa: E402

logging.disable(logging.NOTSET)
DTYPES = {"fp32": np.float32, "fp16": np.float16, "int32": np.int32, "bool": np.bool_}


def convolution(x, weight, strides, pad, dilations, groups, **_):
    spatial = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad[2 * s], pad[2 * s + 1]) for s in range(spatial)])
    kernel = weight.shape[2:]
    out = [(x.shape[2 + s] - (kernel[s] - 1) * dilations[s] - 1) // strides[s] + 1 for s in range(spatial)]
    y = np.zeros((x.shape[0], weight.shape[0], *out), np.float64)
    each_in, each_out = weight.shape[1], weight.shape[0] // groups
    for place in np.ndindex(*kernel):
        cut = tuple(slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, o, s in zip(place, dilations, out, strides))
        for g in range(groups):
            part = x[(slice(None), slice(g * each_in, (g + 1) * each_in), *cut)]
            w = weight[(slice(g * each_out, (g + 1) * each_out), slice(None), *place)]
            y[:, g * each_out : (g + 1) * each_out] += np.einsum("nc...,oc->no...", part.astype(np.float64), w)
    return y.astype(x.dtype)


def windows(x, kernel_sizes, strides, pad, fill):
    spatial = range(2, x.ndim)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad[::2], pad[1::2])], constant_values=fill)
    all_windows = np.lib.stride_tricks.sliding_window_view(x, tuple(kernel_sizes), tuple(spatial))
    return all_windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]


def max_pool(x, kernel_sizes, strides, pad, **_):
    return windows(x, kernel_sizes, strides, pad, -np.inf).max(tuple(range(x.ndim, 2 * x.ndim - 2)))


def avg_pool(x, kernel_sizes, strides, pad, exclude_padding_from_average, **_):
    axes = tuple(range(x.ndim, 2 * x.ndim - 2))
    ones = windows(np.ones_like(x), kernel_sizes, strides, pad, 0 if exclude_padding_from_average else 1)
    return windows(x, kernel_sizes, strides, pad, 0).sum(axes) / ones.sum(axes)


def scatter(data, indices, updates, axis, mode, **_):
    assert axis == 0
    y = data.copy()
    change = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}.get(mode)
    for i, place in enumerate(indices):  # one after another: places may meet
        assert 0 <= place < len(y), f"scatter at {place} of {len(y)}"
        y[place] = updates[i] if change is None else change(y[place], updates[i])
    return y


def gather(x, indices, axis, **_):
    indices = np.asarray(indices)
    assert indices.size == 0 or (0 <= indices.min() and indices.max() < x.shape[axis]), "gather outside of its operand"
    return np.take(x, indices, axis)


def floor_div(x, y):
    return np.floor_divide(x, y) if np.asarray(x).dtype.kind == "i" else np.floor(x / y)


def blockwise_shift_scale(data, scale, offset=None):
    for axis in range(data.ndim):
        scale = np.repeat(scale, data.shape[axis] // scale.shape[axis], axis)
        offset = None if offset is None else np.repeat(offset, data.shape[axis] // offset.shape[axis], axis)
    return scale * (data.astype(scale.dtype) - (0 if offset is None else offset.astype(scale.dtype)))


def lut_to_dense(indices, lut, vector_axis=None):
    assert vector_axis is None and lut.shape[-1] == 1 and all(n == 1 for n in lut.shape[:-2]), "tables of blocks, or of vectors"
    return lut.reshape(-1)[indices.astype(np.int32)]


def slice_update(x, update, begin, end, **_):
    assert (begin >= 0).all() and (end <= x.shape).all(), "an update outside of its operand"
    y = x.copy()
    y[tuple(slice(b, e) for b, e in zip(begin, end))] = update
    return y


def slice_by_size(x, begin, size):
    size = np.where(size == -1, x.shape - begin, size)
    assert (begin >= 0).all() and (begin + size <= x.shape).all(), "a slice outside of its operand"
    return x[tuple(slice(b, b + n) for b, n in zip(begin, size))]


def slice_by_index(x, begin, end, stride, begin_mask, end_mask):
    begin = [None if whole else b for b, whole in zip(begin, begin_mask)]
    end = [None if whole else e for e, whole in zip(end, end_mask)]
    return x[tuple(slice(b, e, s) for b, e, s in zip(begin, end, stride))]


def recurrent(x, states, gates, bias, weight_ih, weight_hh, step):
    """One step after another: `step` gives the next states from the sum of what reaches the gates, which lie apart."""
    rows = []
    for now in x:
        reaching = now @ weight_ih.T + states[0] @ weight_hh.T + (0 if bias is None else bias)
        states = step(np.split(reaching, gates, -1), states)
        rows.append(states[0])
    return [np.stack(rows), *states]


def lstm(x, initial_h, initial_c, weight_ih, weight_hh, direction, output_sequence, recurrent_activation, cell_activation, activation, bias=None):
    assert (direction, output_sequence, recurrent_activation, cell_activation, activation) == ("forward", True, "sigmoid", "tanh", "tanh")

    def step(gates, states):
        i, f, o = (1 / (1 + np.exp(-g)) for g in gates[:3])  # as the documentation of MIL orders them
        c = f * states[1] + i * np.tanh(gates[3])
        return [o * np.tanh(c), c]

    return recurrent(x, [initial_h, initial_c], 4, bias, weight_ih, weight_hh, step)


def rnn(x, initial_h, weight_ih, weight_hh, direction, output_sequence, activation, bias=None):
    assert (direction, output_sequence) == ("forward", True)
    bend = {"tanh": np.tanh, "relu": lambda v: np.maximum(v, 0)}[activation]
    return recurrent(x, [initial_h], 1, bias, weight_ih, weight_hh, lambda gates, _: [bend(gates[0])])


OWN = {
    "lstm": lstm,
    "rnn": rnn,
    "conv": convolution,
    "max_pool": max_pool,
    "avg_pool": avg_pool,
    "slice_update": slice_update,
    "slice_by_size": slice_by_size,
    "constexpr_blockwise_shift_scale": blockwise_shift_scale,
    "constexpr_lut_to_dense": lut_to_dense,
    "quantize": lambda input, scale, output_dtype: np.clip(np.round(input / scale), -128, 127).astype(output_dtype),
    "dequantize": lambda input, scale: input.astype(scale.dtype) * scale,
    "range_1d": lambda start, end, step: np.arange(start, end, step, dtype=np.int32),
    "shape": lambda x: np.array(x.shape, np.int32),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "scatter": scatter,
    "gather": gather,
    "gather_along_axis": lambda x, indices, axis, **_: np.take_along_axis(x, indices, axis),
    "identity": lambda x: x,
    # What value inference computes in other types, or warns about where integers wrap.
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "mod": lambda x, y: np.mod(x, y),
    "floor_div": floor_div,
    "real_div": lambda x, y: x / y,
    "maximum": lambda x, y: np.maximum(x, y),
    "minimum": lambda x, y: np.minimum(x, y),
    "select": lambda cond, a, b: np.where(cond, a, b),
    "cast": lambda x, dtype: x.astype(DTYPES[dtype]),
    "log": lambda x, epsilon: np.log(x + epsilon),
    "tile": lambda x, reps: np.tile(x, reps),
    "fill": lambda shape, value: np.full(shape, value),
    "slice_by_index": slice_by_index,
    "reduce_sum": lambda x, axes, keep_dims: np.sum(x, tuple(axes), keepdims=keep_dims, dtype=x.dtype),
    "reduce_max": lambda x, axes, keep_dims: np.max(x, tuple(axes), keepdims=keep_dims),
    "reduce_min": lambda x, axes, keep_dims: np.min(x, tuple(axes), keepdims=keep_dims),
    "reduce_prod": lambda x, axes, keep_dims: np.prod(x, tuple(axes), keepdims=keep_dims, dtype=x.dtype),
    "matmul": lambda x, y, transpose_x, transpose_y: np.matmul(
        np.swapaxes(x, -1, -2) if transpose_x else x, np.swapaxes(y, -1, -2) if transpose_y else y),
    "concat": lambda values, axis, **_: np.concatenate(values, axis),
}


SCALARS = {"axis", "dtype", "output_dtype", "mode", "keep_dims", "interleave", "groups", "exclusive", "reverse", "direction",
           "output_sequence", "activation", "recurrent_activation", "cell_activation"}  # parameters that Python wants as such


def value_of(var, known):
    if isinstance(var, (list, tuple)):
        return [value_of(v, known) for v in var]
    return known[var] if var in known else var.val


def check_shape(feature, value):
    """What CoreML asks of an input: the shape that the package says, or one of those that it says."""
    array = feature.type.multiArrayType
    choices = [tuple(s.shape) for s in array.enumeratedShapes.shapes]
    ranges = [(r.lowerBound, r.upperBound) for r in array.shapeRange.sizeRanges]
    usual = tuple(array.shape)
    assert usual in choices or not choices, f"{feature.name}: the usual shape {usual} is not in {choices}"
    if ranges:
        assert len(ranges) == value.ndim and all(lo <= n <= hi for n, (lo, hi) in zip(value.shape, ranges)), (
            f"{feature.name}: {value.shape} is not in {ranges}")
    else:
        assert value.shape in (choices or [usual]), f"{feature.name}: {value.shape} is not in {choices or [usual]}"


class Program:
    """A package, with what its states hold from run to run."""

    def __init__(self, package):
        package = pathlib.Path(package)
        spec = ct.utils.load_spec(str(package))
        weights = package / "Data" / "com.apple.CoreML" / "weights"
        program = load_program(spec, spec.specificationVersion, str(weights))
        program._check_early_error_out_for_invalid_program()
        described = {f.name: f for f in spec.description.functions} or {"main": spec.description}
        assert set(described) == set(program.functions), "functions that are described, and those that are there"
        assert spec.description.defaultFunctionName in ("", *described)
        self.functions = program.functions
        self.inputs = {name: {f.name: f for f in d.input} for name, d in described.items()}
        self.outputs = {name: [f.name for f in d.output] for name, d in described.items()}
        self.default = spec.description.defaultFunctionName or "main"
        self.states = {}
        for name, d in described.items():
            for f in d.state:
                array = f.type.stateType.arrayType
                assert array.dataType == 65552, "states are f16"
                self.states[f.name] = np.zeros(tuple(array.shape), np.float16)
            there = set(self.inputs[name]) | {f.name for f in d.state}
            assert there == set(self.functions[name].inputs), "features and inputs of the function differ"

    def run(self, inputs, name=None):
        name = name or self.default
        self.function = self.functions[name]
        for n, value in inputs.items():
            check_shape(self.inputs[name][n], value)
        known = {self.function.inputs[n]: np.asarray(value) for n, value in inputs.items()}
        with np.errstate(all="ignore"):
            results = self.block(self.function, known)
        return dict(zip(self.outputs[name], results))

    def block(self, block, known):
        for op in block.operations:
            try:
                values = self.operation(op, known)
            except Exception as error:
                error.add_note(f"in {op.op_type} {op.name}")
                raise
            for var, value in zip(op.outputs, values):
                value = np.asarray(value)
                wanted = tuple(var.shape)  # symbols stand for sizes of a run
                same = [is_symbolic(w) or n == w for n, w in zip(value.shape, wanted)]
                assert len(value.shape) == len(wanted) and all(same), f"{op.op_type} {op.name}: {value.shape}, typed as {wanted}"
                known[var] = value
        return [value_of(v, known) for v in block.outputs]

    def operation(self, op, known):
        if op.op_type == "const":
            return [op.outputs[0].val]
        if op.op_type == "while_loop":
            carry = [value_of(v, known) for v in op.loop_vars]
            condition, step = op.blocks
            while self.block(condition, {**known, **dict(zip(condition.inputs, carry))})[0]:
                carry = self.block(step, {**known, **dict(zip(step.inputs, carry))})
            return carry
        if op.op_type == "cond":
            return self.block(op.blocks[0 if value_of(op.pred, known) else 1], dict(known))
        if op.op_type == "read_state":
            return [self.states[op.input.name].copy()]
        if op.op_type == "coreml_update_state":
            self.states[op.state.name] = np.array(value_of(op.value, known))
            return [self.states[op.state.name].copy()]
        given = {name: value_of(v, known) for name, v in op.inputs.items() if v is not None}
        given = {k: v.item() if k in SCALARS and isinstance(v, (np.ndarray, np.generic)) else v for k, v in given.items() if k != "name"}
        if op.op_type in OWN:
            result = OWN[op.op_type](**given)
            return result if isinstance(result, list) else [result]
        with Function({}, opset_version=self.function.opset_version):
            result = getattr(mb, op.op_type)(**given)
        results = result if isinstance(result, (list, tuple)) else [result]
        assert all(r.val is not None for r in results), f"no value of {op.op_type}"
        return [r.val for r in results]


def main(folder):
    """Runs FOLDER/*/model.mlpackage on the FOLDER/*/in/*.npy beside it, and writes FOLDER/*/out/*.npy, or why there is none: error.txt.

    in_1, in_2 and so on are more runs, with the states of those before. Their folders may name a function: function.txt.
    """
    for package in sorted(pathlib.Path(folder).glob("*/model.mlpackage")):
        try:
            program = Program(package)
            runs = sorted(package.parent.glob("in*"), key=lambda f: int(f.name[3:] or 0))
            for given in runs:
                chosen = given / "function.txt"
                function = chosen.read_text() if chosen.exists() else program.default
                out = package.parent / given.name.replace("in", "out")
                out.mkdir()
                inputs = {name: np.load(given / f"{name}.npy") for name in program.inputs[function]}
                for name, value in program.run(inputs, function).items():
                    np.save(out / f"{name}.npy", value)
        except Exception as error:  # noqa: BLE001: whatever coremltools throws is what the test says
            notes = " ".join(getattr(error, "__notes__", []))
            (package.parent / "error.txt").write_text(f"{type(error).__name__}: {error} {notes}")


if __name__ == "__main__":
    main(sys.argv[1])
