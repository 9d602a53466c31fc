"""A training step of recurrent networks, forward and backward by x and all weights, beside PyTorch: both sides in turn on the same numbers,
whose losses and gradients must agree; minimum and median.

usage: recurrent_peers.py build/release/bench/recurrent [--rounds 5] [--seconds 2] [--json FILE]
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
# kind, layers, size, batch, steps
CASES = (("lstm", 2, 512, 16, 128), ("gru", 2, 512, 16, 128), ("rnn", 2, 512, 16, 128), ("lstm", 1, 128, 32, 64))
MOST_DIFFERENCE = 1e-4  # of the loss and of each gradient's sum of absolute values: f32 sums of thousands of terms in another order


def waves(shape, seed, scale):
    return torch.from_numpy((scale * np.sin(1.7 * np.arange(np.prod(shape)) + seed)).astype(np.float32).reshape(shape))


class Torch:
    def __init__(self, kind, layers, size, batch, steps):
        self.module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](size, size, layers, batch_first=True)
        self.x = waves((batch, steps, size), 0, 1).requires_grad_()
        self.weights = list(self.module.parameters())
        for seed, weight in enumerate(self.weights, 1):
            weight.data = waves(tuple(weight.shape), seed, size**-0.5)
        self.dy = waves((batch, steps, size), len(self.weights) + 1, 1)

    def step(self):
        y = self.module(self.x)[0]
        return y, torch.autograd.grad(y, [self.x, *self.weights], self.dy)

    def sums(self):
        y, gradients = self.step()
        return [float((y.detach().double() * self.dy).sum()), *(float(g.double().abs().sum()) for g in gradients)]


def check(ours, theirs, case):
    for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if not abs(mine - other) <= MOST_DIFFERENCE * max(abs(other), 1):
            raise SystemExit(f"{case}: sum {i} is {mine}, torch's {other}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", default="", help="kinds whose names begin so")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    ours = subprocess.Popen([args.bench], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows = []
    for case in CASES:
        if not case[0].startswith(args.only):
            continue
        peer, sides = Torch(*case), {"rlx": [], "torch": []}
        sums = peer.sums()
        for _ in range(args.rounds):
            ours.stdin.write(f"{case[0]} {args.seconds / args.rounds} {' '.join(map(str, case[1:]))}\n")
            ours.stdin.flush()
            answer = list(map(float, ours.stdout.readline().split()))
            check(answer[2:], sums, case)
            sides["rlx"].append(answer[:2])
            sides["torch"].append(timed(peer.step, args.seconds / args.rounds))
        best = {name: (min(t[0] for t in times), statistics.median(t[1] for t in times)) for name, times in sides.items()}
        rows.append({"case": case, "seconds": best})
        print(f"{case[0]:5} {'x'.join(map(str, case[1:])):16} " + "  ".join(f"{n} {a * 1e3:8.2f} ({b * 1e3:8.2f}) ms" for n, (a, b) in best.items())
              + f"  of torch: {best['rlx'][0] / best['torch'][0]:.2f} ({best['rlx'][1] / best['torch'][1]:.2f})", flush=True)
    ours.stdin.close()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine.describe(), "command": machine.command(), "threads": THREADS, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
