"""Fourier transforms, factorisations, sorts, scatters and running sums beside PyTorch (MKL), SciPy (pocketfft, OpenBLAS) and NumPy: all sides
in turn, minimum and median.

usage: library_peers.py build/release/bench/library [--rounds 3] [--seconds 0.3] [--json FILE]
"""
import argparse
import json
import statistics
import subprocess

import numpy as np
import scipy.fft
import torch

import machine
from timed import timed

THREADS = 2
TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
PRIME = 999983


def cases():
    for complex_type, real_type in (("c64", "f32"), ("c128", "f64")):
        for shape in ((1 << 20,), (10**6,), (PRIME,), (64, 4096), (512, 512)):
            yield "fft", complex_type, shape
            yield "rfft", real_type, shape
        yield "fft2", complex_type, (512, 512)
    for kind in ("f32", "f64"):
        for op in ("lu", "cholesky", "triangular_solve"):
            yield op, kind, (1024, 1024)
            yield op, kind, (256, 32, 32)
    for kind in ("f32", "bf16"):
        yield "scatter_add", kind, (50000, 768)
    for op in ("sort", "argsort", "top_k"):
        for shape in ((10**6,), (64, 32768)):
            yield op, "f32", shape
    for kind in ("f32", "f64"):
        yield "cumsum0", kind, (10**7,)
        yield "cumsum0", kind, (3000, 3000)
        yield "cumsum1", kind, (3000, 3000)


def operand(op, kind, shape):
    random = np.random.default_rng(1)
    x = random.uniform(-1, 1, shape)
    if kind[0] == "c":
        x = x + 1j * random.uniform(-1, 1, shape)
    if op in ("lu", "cholesky", "triangular_solve"):
        x = x + 2 * shape[-1] * np.eye(shape[-1])
    if kind == "bf16":
        return torch.from_numpy(x).to(torch.bfloat16)
    return x.astype(TYPES[kind])


def scattered(t):
    rows = len(t) * 3 // 5
    places = torch.from_numpy(np.random.default_rng(2).integers(0, rows, len(t)))
    return lambda: torch.zeros(rows, t.shape[1], dtype=t.dtype).index_add_(0, places, t)


def best_of(x, k=50):
    found = np.argpartition(x, -k, axis=-1)[..., -k:]
    return np.take_along_axis(found, np.argsort(-np.take_along_axis(x, found, -1), axis=-1), -1)


def ways(op, x):
    t = x if isinstance(x, torch.Tensor) else torch.from_numpy(x)
    if op == "scatter_add":
        return {"torch": scattered(t)}
    if op in ("sort", "argsort"):
        return {"torch": lambda: getattr(torch, op)(t), "numpy": lambda: getattr(np, op)(x)}
    if op == "top_k":
        return {"torch": lambda: torch.topk(t, 50), "numpy": lambda: best_of(x)}
    if op in ("cumsum0", "cumsum1"):
        return {"torch": lambda: torch.cumsum(t, int(op[-1])), "numpy": lambda: np.cumsum(x, int(op[-1]))}
    if op == "triangular_solve":
        return {"torch": lambda: torch.linalg.solve_triangular(t, t, upper=False)}
    if op == "lu":
        return {"torch": lambda: torch.linalg.lu_factor(t)}
    if op == "cholesky":
        return {"torch": lambda: torch.linalg.cholesky(t)}
    return {"torch": lambda: getattr(torch.fft, op)(t), "scipy": lambda: getattr(scipy.fft, op)(x, workers=THREADS)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--only", default="", help="ops whose names begin so")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    ours = subprocess.Popen([args.bench], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows = []
    for op, kind, shape in cases():
        if not op.startswith(args.only):
            continue
        x = operand(op, kind, shape)
        sides = {"rlx": []} | {name: [] for name in ways(op, x)}
        for _ in range(args.rounds):
            ours.stdin.write(f"{op} {kind} {args.seconds / args.rounds} {' '.join(map(str, shape))}\n")
            ours.stdin.flush()
            sides["rlx"].append(tuple(map(float, ours.stdout.readline().split())))
            for name, call in ways(op, x).items():
                sides[name].append(timed(call, args.seconds / args.rounds))
        best = {name: (min(t[0] for t in times), statistics.median(t[1] for t in times)) for name, times in sides.items()}
        peer = min(best[name][0] for name in best if name != "rlx")
        peer_median = min(best[name][1] for name in best if name != "rlx")
        rows.append({"op": op, "type": kind, "shape": shape, "seconds": best})
        print(f"{op:18} {kind:5} {'x'.join(map(str, shape)):12} " + "  ".join(f"{n} {a * 1e6:9.1f} ({b * 1e6:9.1f}) us" for n, (a, b) in best.items())
              + f"  of the best peer: {best['rlx'][0] / peer:.2f} ({best['rlx'][1] / peer_median:.2f})", flush=True)
    ours.stdin.close()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine.describe(), "command": machine.command(), "threads": THREADS, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
