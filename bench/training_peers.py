"""Training steps of RLX beside PyTorch: same threads, weights and batch, the losses of the first steps checked against each other, runs in turn.
Prints minimum and median, the peak of memory and the ratios to the best peer. bf16 is RLX's precision beside torch's autocast.

usage: training_peers.py --bench build/release/bench/training --folder FOLDER [--models gpt2 convnet] [--precisions f32 bf16] [--json FILE]

gpt2: 124M parameters, AdamW, 4 texts of 64 tokens. convnet: two convolutions of 3 x 3 with max-pools and two dense layers, SGD with momentum, 32
images of 32 x 32. FOLDER keeps the weights. Peers: eager attention by its formula, sdpa, both in eager mode, and sdpa compiled; for images eager,
channels_last and compiled.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np

import machine
import made
from side import Side, Unavailable

PEERS = {"gpt2": ("eager", "sdpa", "compile"), "convnet": ("eager", "channels_last", "compile")}
MOST_ERROR = {"f32": 1e-4, "bf16": 2e-2}  # of the loss, over three steps: another network or optimiser differs by far more
CHECKED_STEPS = 3


def gpt2(attention):
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, heads, layers = 768, 12, 12

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (part.view(b, t, heads, width // heads).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
            if attention == "eager":
                scores = (q @ k.transpose(-2, -1)) * (width // heads) ** -0.5
                seen = torch.ones(t, t, dtype=torch.bool).tril()
                y = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
            else:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(y.transpose(1, 2).reshape(b, t, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(50257, width), nn.Embedding(1024, width)
            self.h, self.ln_f = nn.ModuleList(Block() for _ in range(layers)), nn.LayerNorm(width)
            for parameter in self.parameters():
                if parameter.dim() == 2:
                    nn.init.normal_(parameter, std=0.02)

        def forward(self, ids, targets):
            x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
            for block in self.h:
                x = block(x)
            logits = F.linear(self.ln_f(x), self.wte.weight)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    network = Network()
    batch = torch.randint(0, 50257, (4, 64)), torch.randint(0, 50257, (4, 64))
    return network, batch, lambda: torch.optim.AdamW(network.parameters(), fused=True)


def convnet(way):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
            self.fc1, self.fc2 = nn.Linear(64 * 8 * 8, 128), nn.Linear(128, 10)

        def forward(self, x, labels):
            for conv in (self.conv1, self.conv2):
                x = F.max_pool2d(F.relu(conv(x)), 2)
            return F.cross_entropy(self.fc2(F.relu(self.fc1(x.flatten(1)))), labels)

    network, batch = Network(), (torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,)))
    if way == "channels_last":
        network, batch = network.to(memory_format=torch.channels_last), (batch[0].to(memory_format=torch.channels_last), batch[1])
    return network, batch, lambda: torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)


MODELS = {"gpt2": gpt2, "convnet": convnet}


def write(model, path):
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(1)
    network, (inputs, targets), _ = MODELS[model]("eager")
    ids = lambda tensor: tensor.to(torch.int32) if tensor.dtype == torch.int64 else tensor
    save_file({**{name: value.detach() for name, value in network.named_parameters()}, "in": ids(inputs), "targets": ids(targets)}, path)


def serve(args):
    """Is one peer: answers as bench/serve.h does."""
    import time

    import torch
    from safetensors.torch import load_file

    torch.set_num_threads(args.threads)
    begin = time.perf_counter()
    network, batch, optimiser = MODELS[args.model](args.serve)
    given = load_file(args.folder)
    inputs, targets = given.pop("in"), given.pop("targets").long()
    network.load_state_dict(given)
    inputs = inputs.long() if not inputs.is_floating_point() else inputs.contiguous(memory_format=torch.channels_last) if args.serve == "channels_last" else inputs
    optimiser = optimiser()
    del given
    forward = torch.compile(network) if args.serve == "compile" else network

    def step():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bf16"):
            loss = forward(inputs, targets)
        loss.backward()
        optimiser.step()
        return loss.item()

    out = sys.stdout
    print(json.dumps({"version": torch.__version__, "compile_s": time.perf_counter() - begin}), file=out, flush=True)
    for line in sys.stdin:
        command, argument = line.split()
        if command == "run":
            step()
            times = []
            for _ in range(int(argument)):
                start = time.perf_counter()
                step()
                times.append(time.perf_counter() - start)
            print(" ".join(map(str, times)), file=out, flush=True)
        else:
            np.save(argument, np.float32(step()))
            print("saved", file=out, flush=True)


def peak_bytes(side):
    """The most memory that a side had at once."""
    status = pathlib.Path(f"/proc/{side.process.pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def start(args, name, model, precision, path):
    if name == "rlx":
        return Side([args.bench, "--model", model, "--precision", precision, "--threads", args.threads, "--file", path, "--serve"], args.threads)
    return Side([sys.executable, __file__, "--serve", name, "--model", model, "--precision", precision, "--folder", path, "--threads", args.threads],
                args.threads)


def losses(side):
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for _ in range(CHECKED_STEPS):
            side.ask(f"result {folder}/loss.npy")
            found.append(float(np.load(f"{folder}/loss.npy")))
        return found


def compare(args, model, precision):
    pathlib.Path(args.folder).mkdir(parents=True, exist_ok=True)
    path = made.kept(pathlib.Path(args.folder) / f"{model}-{made.key('training_peers.py')}.safetensors", lambda to: write(model, to))
    row, reference = {"case": f"{model}, {precision}", "missing": {}, "sides": {}}, None
    sides, times = {}, {}
    for name in ("rlx", *PEERS[model]):
        try:
            sides[name] = start(args, name, model, precision, path)
        except Unavailable as reason:
            row["missing"][name] = str(reason)
            continue
        found = losses(sides[name])
        reference = reference or found
        difference = max(abs(a - b) / b for a, b in zip(found, reference))
        if difference > MOST_ERROR[precision]:
            raise SystemExit(f"{name}: losses {found}, but {reference} (allowed: {MOST_ERROR[precision]} of them)")
        times[name] = []
    for _ in range(args.rounds):
        for name, side in sides.items():
            times[name] += side.run(args.steps)
    for name, side in sides.items():
        row["sides"][name] = {**side.about, "min_ms": min(times[name]) * 1e3, "median_ms": statistics.median(times[name]) * 1e3,
                              "runs": len(times[name]), "peak_bytes": peak_bytes(side)}
        side.close()
    peers = [side for name, side in row["sides"].items() if name != "rlx"]
    if "rlx" in row["sides"] and peers:
        row["ratio_to_best"] = {kind: row["sides"]["rlx"][kind] / min(peer[kind] for peer in peers) for kind in ("min_ms", "median_ms", "peak_bytes")}
    print_row(row)
    return row


def print_row(row):
    print(row["case"])
    for name, side in row["sides"].items():
        print(f"  {name:14} {side['version']:12} min {side['min_ms']:8.2f} ms  median {side['median_ms']:8.2f} ms  peak {side['peak_bytes'] / 1e6:6.0f} MB")
    for name, reason in row["missing"].items():
        print(f"  {name:14} not available: {reason}")
    if "ratio_to_best" in row:
        ratio = row["ratio_to_best"]
        print(f"  rlx / best peer: {ratio['min_ms']:.3f} (min), {ratio['median_ms']:.3f} (median), memory {ratio['peak_bytes']:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--precisions", nargs="+", choices=MOST_ERROR, default=list(MOST_ERROR))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="timed steps of a round")
    parser.add_argument("--serve", help="be this peer")
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--precision", choices=MOST_ERROR)
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.serve:
        return serve(args)
    rows = [compare(args, model, precision) for model in args.models for precision in args.precisions]
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"machine": machine.describe(), "command": machine.command(), "threads": args.threads, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
