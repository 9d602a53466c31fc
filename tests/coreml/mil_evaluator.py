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


OWN = {
    "conv": convolution,
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
    "slice_by_index": lambda x, begin, end, stride, **_: x[tuple(slice(b, e, s) for b, e, s in zip(begin, end, stride))],
    "reduce_sum": lambda x, axes, keep_dims: np.sum(x, tuple(axes), keepdims=keep_dims, dtype=x.dtype),
    "reduce_max": lambda x, axes, keep_dims: np.max(x, tuple(axes), keepdims=keep_dims),
    "reduce_min": lambda x, axes, keep_dims: np.min(x, tuple(axes), keepdims=keep_dims),
    "reduce_prod": lambda x, axes, keep_dims: np.prod(x, tuple(axes), keepdims=keep_dims, dtype=x.dtype),
    "matmul": lambda x, y, transpose_x, transpose_y: np.matmul(
        np.swapaxes(x, -1, -2) if transpose_x else x, np.swapaxes(y, -1, -2) if transpose_y else y),
    "concat": lambda values, axis, **_: np.concatenate(values, axis),
}


SCALARS = {"axis", "dtype", "mode", "keep_dims", "interleave", "groups", "exclusive", "reverse"}  # parameters that Python wants as such


def value_of(var, known):
    if isinstance(var, (list, tuple)):
        return [value_of(v, known) for v in var]
    return known[var] if var in known else var.val


class Program:
    def __init__(self, package):
        package = pathlib.Path(package)
        spec = ct.utils.load_spec(str(package))
        weights = package / "Data" / "com.apple.CoreML" / "weights"
        program = load_program(spec, spec.specificationVersion, str(weights))
        program._check_early_error_out_for_invalid_program()
        self.function = program.functions["main"]
        self.inputs = {f.name: f.type.multiArrayType for f in spec.description.input}
        self.outputs = [f.name for f in spec.description.output]
        assert list(self.inputs) == list(self.function.inputs), "features and inputs of the function differ"

    def run(self, inputs):
        known = {self.function.inputs[name]: np.asarray(value) for name, value in inputs.items()}
        with np.errstate(all="ignore"):
            results = self.block(self.function, known)
        return dict(zip(self.outputs, results))

    def block(self, block, known):
        for op in block.operations:
            try:
                values = self.operation(op, known)
            except Exception as error:
                error.add_note(f"in {op.op_type} {op.name}")
                raise
            for var, value in zip(op.outputs, values):
                value = np.asarray(value)
                wanted = tuple(var.shape)
                assert value.shape == wanted, f"{op.op_type} {op.name}: {value.shape}, typed as {wanted}"
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
        given = {name: value_of(v, known) for name, v in op.inputs.items() if v is not None}
        given = {k: v.item() if k in SCALARS and isinstance(v, (np.ndarray, np.generic)) else v for k, v in given.items() if k != "name"}
        if op.op_type in OWN:
            return [OWN[op.op_type](**given)]
        with Function({}, opset_version=self.function.opset_version):
            result = getattr(mb, op.op_type)(**given)
        results = result if isinstance(result, (list, tuple)) else [result]
        assert all(r.val is not None for r in results), f"no value of {op.op_type}"
        return [r.val for r in results]


def main(folder):
    """Runs FOLDER/*/model.mlpackage on the FOLDER/*/in/*.npy beside it, and writes FOLDER/*/out/*.npy, or why there is none: error.txt."""
    for package in sorted(pathlib.Path(folder).glob("*/model.mlpackage")):
        try:
            program = Program(package)
            inputs = {name: np.load(package.parent / "in" / f"{name}.npy") for name in program.inputs}
            (package.parent / "out").mkdir()
            for name, value in program.run(inputs).items():
                np.save(package.parent / "out" / f"{name}.npy", value)
        except Exception as error:  # noqa: BLE001: whatever coremltools throws is what the test says
            notes = " ".join(getattr(error, "__notes__", []))
            (package.parent / "error.txt").write_text(f"{type(error).__name__}: {error} {notes}")


if __name__ == "__main__":
    main(sys.argv[1])
