"""PyTorch's side of op_peers.py: reads one case a line (JSON, as the benchmarks describe it) and answers "time" and "result".

A call from Python goes through its interpreter and PyTorch's dispatcher, which no model that runs from C++ pays. So each way comes with an
empty one: the same call on operands without elements. Both are timed in the same manner, and the caller gets both.

usage: serve_torch_ops.py --threads N
"""
import argparse
import itertools
import json
import os
import statistics
import sys
import time

import numpy as np
import torch
from torch.nn import functional as F

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def filled(shape, seed, kind="f32"):
    """The numbers of rlx::bench::fill; bf16 and f16 are those rounded, int8 256 times them rounded down."""
    count = int(np.prod(shape))
    bits = (np.arange(1, count + 1, dtype=np.uint64) * np.uint64(2654435761 * seed % 2**32)).astype(np.uint32)
    values = torch.from_numpy(((bits >> np.uint32(8)).astype(np.float32) / np.float32(1 << 24) - np.float32(0.5)).reshape(shape))
    return torch.floor(256 * values).to(torch.int8) if kind == "int8" else values.to(TYPES[kind])


def way(call, full, empty):
    """A way and its empty one: `call` on each tuple of operands; an operand that is a list gives another of its items each time."""
    def bound(operands):
        turns = [itertools.cycle(operand) if isinstance(operand, list) else itertools.repeat(operand) for operand in operands]
        return lambda: call(*map(next, turns))

    return bound(full), bound(empty)


def optional(ways, name, make):
    """Adds a way of oneDNN's own ops where this version of PyTorch has them."""
    try:
        ways[name] = make()
        for run in ways[name]:
            run()
    except (AttributeError, RuntimeError, NotImplementedError, TypeError) as error:
        ways.pop(name, None)
        print(f"torch: no way {name!r}: {str(error).splitlines()[0]}", file=sys.stderr)


def product(case):
    """Every way that a user has: the plain product with B as rows or as columns, and oneDNN's with weights packed beforehand."""
    kind, batch, m, n, k = (case[key] for key in ("type", "batch", "m", "n", "k"))
    a, columns = filled((batch, m, k), 1, kind), filled((batch, n, k), 3, kind)
    if kind == "int8":
        return {} if batch > 1 else product_int8(case, a[0], columns[0])
    out = torch.empty(batch, m, n, dtype=a.dtype)
    if batch > 1:
        multiply = lambda a, b, out: torch.bmm(a, b.transpose(1, 2), out=out)
        return {"bmm": way(multiply, (a, columns, out), (a[:, :0], columns[:, :0], out[:, :0, :0]))}
    a, out, copies = a[0], out[0], [columns[0].clone() for _ in range(case["copies"])]
    multiply = lambda a, b, out: torch.mm(a, b.T, out=out)
    none = a[:0], columns[0][:0], torch.empty(0, 0, dtype=a.dtype)
    ways = {"mm, columns": way(multiply, (a, copies, out), none)}
    if case["b"] == "packed":
        rows = [columns[0].T.contiguous().T for _ in copies]
        ways["mm"] = way(multiply, (a, rows, out), none)
        linear = lambda a, b: torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
        pack = lambda: [torch.ops.mkldnn._reorder_linear_weight(w, m) for w in copies]
        optional(ways, "oneDNN, packed", lambda: way(linear, (a, pack()), (a[:0], columns[0])))
    return ways


def product_int8(case, a, columns):
    """Sums of integers, and oneDNN's product of quantized layers with all scales 1, whose sums are floats."""
    copies = [columns.clone() for _ in range(case["copies"])]
    multiply = lambda a, b: torch._int_mm(a, b.T)
    ways = {}
    optional(ways, "_int_mm", lambda: way(multiply, (a, copies), (a[:0], columns)))
    if case["b"] == "packed":
        ops, scales, zeros = torch.ops.onednn, torch.ones(len(columns)), torch.zeros(len(columns), dtype=torch.int64)
        raised = (a.int() + 128).to(torch.uint8)  # as its fast kernels want them, with an offset of 128
        linear = lambda a, b: ops.qlinear_pointwise(a, 1.0, 128, b, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")
        pack = lambda: [ops.qlinear_prepack(w, list(a.shape)) for w in copies]
        optional(ways, "oneDNN, quantized and packed", lambda: way(linear, (raised, pack()), (raised[:0], pack()[0])))
    return ways


def attention(case):
    shape = (1, case["heads"], case["length"], case["depth"])
    operands = [filled(shape, seed, case["type"]) for seed in (1, 3, 5)]
    attend = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=case["causal"])
    return {"scaled_dot_product_attention": way(attend, operands, [operand[:, :, :0] for operand in operands])}


def conv(case):
    """Channels first and last, and oneDNN's with weights packed beforehand."""
    if case["type"] == "int8":
        return {}
    x = filled((case["batch"], case["channels"], case["size"], case["size"]), 1).to(TYPES[case["type"]])
    w = filled((case["out_channels"], case["channels"], case["kernel"], case["kernel"]), 3).to(TYPES[case["type"]])
    padding, stride = [case["kernel"] // 2] * 2, [case["stride"]] * 2
    convolve = lambda x, w: F.conv2d(x, w, None, stride, padding)
    last = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
    ways = {"conv2d": way(convolve, (x, w), (x[:0], w)), "conv2d, channels last": way(convolve, last, (last[0][:0], last[1]))}
    packed = lambda x, w: torch.ops.mkldnn._convolution_pointwise(x, w, None, padding, stride, [1, 1], 1, "none", [], "")
    reorder = lambda: torch.ops.mkldnn._reorder_convolution_weight(w, padding, stride, [1, 1], 1, list(x.shape))
    optional(ways, "oneDNN, packed", lambda: (way(packed, (last[0], reorder()), (x[:0], w))[0], ways["conv2d"][1]))  # its own empty call plans anew
    return ways


def rows(case):
    """With new memory for each result, and into memory that stays the same, as our side does."""
    shape = case["rows"], case["cols"]
    gamma, beta, aten = filled(shape[1:], 11), filled(shape[1:], 13), torch.ops.aten
    operands = [filled(shape, 1), filled(shape, 3), torch.empty(shape), torch.empty(shape), torch.empty(shape[0], 1), torch.empty(shape[0], 1)]
    added = lambda x, y, between: torch.add(x, y, out=between) if case["kind"] == "residual_norm" else x
    calls = {"softmax": (lambda x, y, out, *rest: torch.softmax(x, -1), lambda x, y, out, *rest: aten._softmax.out(x, -1, False, out=out)),
             "gelu": (lambda x, y, out, *rest: F.gelu(x), lambda x, y, out, *rest: aten.gelu.out(x, out=out))}
    norms = (lambda x, y, *rest: F.layer_norm(x + y if case["kind"] == "residual_norm" else x, shape[1:], gamma, beta),
             lambda x, y, out, between, mean, deviation: aten.native_layer_norm.out(
                 added(x, y, between), shape[1:], gamma, beta, 1e-5, out0=out, out1=mean, out2=deviation)[0])
    eager, into = calls.get(case["kind"], norms)
    none = [operand[:0] for operand in operands]
    return {"eager": way(eager, operands, none), "eager, into": way(into, operands, none)}


def times_of(run, budget):
    """As the benchmarks do: short runs back to back; the fastest and the median of those within the budget, at least three."""
    def seconds_of(calls):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        return (time.perf_counter() - begin) / calls

    run()
    once = min(seconds_of(1) for _ in range(3))
    calls = int(min(max(1e-3 / once, 1), 1e5))
    all = []
    while len(all) < 3 or sum(all) * calls < budget:
        all.append(seconds_of(calls))
    return min([*all, *([once] if calls == 1 else [])]), statistics.median(all)


def save(run, path):
    result = run()
    np.save(path, (result.float() if result.dtype == torch.bfloat16 else result).numpy())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(args.threads)
    print(json.dumps({"version": torch.__version__}), file=out, flush=True)
    with torch.inference_mode():
        for line in sys.stdin:
            command, _, rest = line.partition(" ")
            if command == "case":
                case = json.loads(rest)
                ways = {"product": product, "attention": attention, "conv": conv}.get(case["kind"], rows)(case)
                answer = list(ways)
            elif command == "time":
                answer = {name: {"call": times_of(run, float(rest)), "empty": times_of(empty, float(rest) / 10)} for name, (run, empty) in ways.items()}
            else:
                for number, (run, _) in enumerate(ways.values()):
                    save(run, f"{rest.strip()}.{number}.npy")
                answer = len(ways)
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
