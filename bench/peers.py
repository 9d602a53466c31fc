"""Runs sentence_model beside ONNX Runtime on the same inputs, in turn, with the product claim and without, and prints the times and
their ratios; and how long the model takes to compile: with an empty cache, from the disk, and for other lengths.

usage: peers.py --bench build/release/bench/sentence_model --model DIR [--threads 2] [--rounds 7] [--json FILE]
"""
import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time

import numpy as np

import bert_onnx

MIXED = [12, 20, 33, 45, 60, 7, 128, 90, 14, 18, 22, 31, 40, 64, 5, 100, 17, 26, 75, 8, 9, 111, 50, 34, 28, 16, 80, 66, 11, 13, 44, 39]
CASES = {"batch 1, 128 tokens": [128], "batch 32, mixed lengths to 128": MIXED}


def inputs_for(lengths):
    """The ids that sentence_model makes: see make_inputs there."""
    ids = np.zeros((len(lengths), max(lengths)), np.int64)
    mask = np.zeros_like(ids)
    for b, length in enumerate(lengths):
        s = np.arange(length)
        ids[b, :length] = 1000 + (b * 7919 + s * 104729) % 20000
        mask[b, :length] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


class Ours:
    def __init__(self, args, lengths, *options):
        command = [args.bench, "--model", args.model, "--threads", str(args.threads), "--lengths", ",".join(map(str, lengths)), "--serve"]
        self.process = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline().split()
        self.open_seconds, self.compiled, self.from_disk, self.compiled_for_lengths = float(ready[1]), *map(int, ready[2:])

    def run(self, count):
        self.process.stdin.write(f"run {count}\n")
        self.process.stdin.flush()
        return [float(t) for t in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class OnnxRuntime:
    def __init__(self, args, lengths):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            bert_onnx.build(args.model, path)
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = inputs_for(lengths)
        self.version = onnxruntime.__version__
        self.run(3)

    def run(self, count):
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            self.session.run(None, self.inputs)
            times.append(time.perf_counter() - begin)
        return times

    def close(self):
        pass


def compare(args, name, lengths):
    sides = {"rlx": Ours(args, lengths), "onnxruntime": OnnxRuntime(args, lengths)}
    per_round = max(2, 400 // sum(lengths))
    times = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, runner in sides.items():
            time.sleep(0.05)  # spinning threads of the other side go to sleep
            times[side] += runner.run(per_round)
    row = {"case": name, "runs": per_round * args.rounds}
    for side, seconds in times.items():
        row[side] = {"min_ms": min(seconds) * 1e3, "median_ms": statistics.median(seconds) * 1e3}
        sides[side].close()
    row["ratio_min"] = row["rlx"]["min_ms"] / row["onnxruntime"]["min_ms"]
    row["ratio_median"] = row["rlx"]["median_ms"] / row["onnxruntime"]["median_ms"]
    print(f"{name:32} rlx {row['rlx']['min_ms']:8.2f} / {row['rlx']['median_ms']:8.2f} ms   onnxruntime {row['onnxruntime']['min_ms']:8.2f} / "
          f"{row['onnxruntime']['median_ms']:8.2f} ms   ratio {row['ratio_min']:.2f} / {row['ratio_median']:.2f}   (min / median)")
    return row


def without_claims(args, row):
    """The first case by generated kernels only: what the product claim is worth. Two runs, for each takes long."""
    side = Ours(args, next(iter(CASES.values())), "--no-claims")
    row["no_claims_min_ms"] = min(side.run(2)) * 1e3
    side.close()
    print(f"{row['case']:32} without the product claim {row['no_claims_min_ms']:8.2f} ms")


def compile_times(args):
    """Opening the model: reading, building the graph, compiling. Cold, then from the disk cache; then runs of other lengths."""
    figures = {}
    with tempfile.TemporaryDirectory() as cache:
        for case in ("cold", "from disk"):
            side = Ours(args, [128], "--cache", cache)
            side.close()
            figures[case] = {"open_ms": side.open_seconds * 1e3, "compiled": side.compiled, "from_disk": side.from_disk,
                             "compiled_for_new_lengths": side.compiled_for_lengths}
            print(f"open, {case:10} {figures[case]['open_ms']:8.1f} ms: {side.compiled} kernels compiled, {side.from_disk} from disk; "
                  f"{side.compiled_for_lengths} for other lengths and batches")
    return figures


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n")
    pick = lambda key: next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")
    flags = pick("flags").split()
    wanted = [f for f in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16") if f in flags]
    return {"processor": pick("model name"), "family": pick("cpu family"), "model": pick("model"), "features": wanted, "system": platform.platform()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    args = parser.parse_args()
    compiling = compile_times(args)
    rows = [compare(args, name, lengths) for name, lengths in CASES.items()]
    without_claims(args, rows[0])
    if args.json:
        pathlib.Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(args.json).write_text(json.dumps({"machine": machine(), "threads": args.threads, "compile": compiling, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
