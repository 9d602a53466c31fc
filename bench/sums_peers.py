"""Sums of 1e4, 1e6 and 1e8 numbers in all layouts beside NumPy and PyTorch, over the same numbers: relative errors, and times of all sides in turn.

usage: sums_peers.py build/release/bench/sums [--largest 100000000] [--rounds 3] [--seconds 0.3] [--json FILE]
       sums_peers.py --record tests/fixtures/sums/peers.txt

--record writes the largest relative error of each peer for the cases of tests/backends/sums_test.cpp.
"""
import argparse
import json
import statistics
import subprocess

import numpy as np
import torch

import machine
from timed import timed

THREADS = 2
TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}


def numbers(count):
    """As in sums.cpp."""
    i = np.arange(count, dtype=np.uint32)
    return (bits(i) + bits(~i) / (1 << 24)) / (1 << 24)


def bits(i):
    """24 bits of the finisher of MurmurHash3."""
    i = i ^ (i >> np.uint32(16))
    i *= np.uint32(0x85EBCA6B)
    i ^= i >> np.uint32(13)
    i *= np.uint32(0xC2B2AE35)
    i ^= i >> np.uint32(16)
    return (i >> np.uint32(8)).astype(np.float64)


def layouts(size):
    """Axes and shapes of about `size` elements: rows, columns, both, the outer and the middle axes of three, few and many results."""
    root = round(size**0.5)
    yield (0,), (size,)
    for rows, columns in ((root, root), (size // 100, 100), (100, size // 100)):
        for axes in ((0,), (1,), (0, 1)):
            yield axes, (rows, columns)
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        yield axes, (size // 1000, 20, 50)


def cases(largest):
    for size in (10**4, 10**6, 10**8):
        if size <= largest:
            for axes, shape in layouts(size):
                yield "sum", "f32", axes, shape
            for op in ("mean", "var", "squares"):
                yield op, "f32", (0, 1), (size // 100, 100)


def recorded_cases():
    for op, kind, axes, shape in cases(10**6):
        yield op, kind, axes, shape
    for kind in ("f64", "bf16"):
        for axes, shape in layouts(10**4):
            yield "sum", kind, axes, shape
    for length in (2, 7, 16, 31, 100, 257, 513, 1000, 1025, 2047, 4096, 5000):
        yield "sum", "f32", (1,), (50, length)
        yield "sum", "f32", (0,), (length, 50)


def by_numpy(op, x, axes):
    if op == "squares":
        return np.sum(x * x, axis=axes)
    return getattr(np, op)(x, axis=axes)


def by_torch(op, x, axes):
    if op == "var":
        return torch.var(x, dim=axes, correction=0)
    return getattr(x * x if op == "squares" else x, "mean" if op == "mean" else "sum")(dim=axes)


def wide(op, x, axes):
    return by_numpy(op, x.astype(np.longdouble), axes)


def error(result, exact):
    errors = np.abs((np.asarray(result, dtype=np.longdouble) - exact) / exact)
    return float(errors.max()), float(errors.mean())


def sides(op, kind, axes, shape):
    """What each peer does, and its error."""
    x = torch.from_numpy(numbers(int(np.prod(shape))).reshape(shape)).to(TYPES[kind])
    exact = wide(op, x.double().numpy(), axes)
    ways = {"torch": lambda: by_torch(op, x, axes)}
    if kind != "bf16":
        array = x.numpy()
        ways["numpy"] = lambda: by_numpy(op, array, axes)
    return ways, {name: error(torch.as_tensor(way()).double().numpy(), exact) for name, way in ways.items()}


def text_of(op, kind, axes, shape):
    return f"{op} {kind} {','.join(map(str, axes))} {'x'.join(map(str, shape))}"


def record(path):
    with open(path, "w", encoding="utf-8") as file:
        for case in recorded_cases():
            errors = sides(*case)[1]
            file.write(text_of(*case) + "".join(f" {name} {largest:.7g}" for name, (largest, _) in errors.items()) + "\n")


def measure(args):
    ours = subprocess.Popen([args.bench], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows = []
    for op, kind, axes, shape in cases(args.largest):
        ways, errors = sides(op, kind, axes, shape)
        times = {"rlx": []} | {name: [] for name in ways}
        for _ in range(args.rounds):
            ours.stdin.write(f"{op} {kind} {args.seconds / args.rounds} {','.join(map(str, axes))} {' '.join(map(str, shape))}\n")
            ours.stdin.flush()
            fastest, median, largest, mean = map(float, ours.stdout.readline().split())
            times["rlx"].append((fastest, median))
            errors["rlx"] = largest, mean
            for name, call in ways.items():
                times[name].append(timed(call, args.seconds / args.rounds))
        best = {name: (min(t[0] for t in all), statistics.median(t[1] for t in all)) for name, all in times.items()}
        rows.append({"op": op, "type": kind, "axes": axes, "shape": shape, "seconds": best, "errors": errors})
        print(f"{text_of(op, kind, axes, shape):30}" + "  ".join(
            f"{name} {best[name][0] * 1e6:9.1f} ({best[name][1] * 1e6:9.1f}) us error {errors[name][0]:.1e}" for name in best), flush=True)
    ours.stdin.close()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine.describe(), "command": machine.command(), "threads": THREADS, "rows": rows}, file, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench", nargs="?")
    parser.add_argument("--largest", type=int, default=10**8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--json")
    parser.add_argument("--record")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    if args.record:
        record(args.record)
    else:
        measure(args)


if __name__ == "__main__":
    main()
