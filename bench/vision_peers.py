"""Runs an image model through vision beside ONNX Runtime and OpenVINO: same threads, parameters and images, logits checked against each other
first, runs in turn. Prints minimum and median, shares of the multiply-add peak and the ratios to the best peer.

usage: vision_peers.py --bench build/release/bench/vision --folder FOLDER [--models resnet50 vit_b16] [--batches 1 8] [--peaks peaks.json] [--json FILE]

FOLDER keeps the parameters and ONNX files, which are made when they are missing, or when the code that makes them has changed. "first result"
is the time from a side's model file (parameters and, for the peers, ONNX) to its first logits, without the start of its process or the
import of its library. A share of the peak counts the multiply-adds of all products, convolutions and attention as the network defines them: who
computes convolutions of 3 x 3 by Winograd's products needs fewer, and may be above 100%.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

import machine
import made
import serve_peer
import vision_onnx
from side import Side, Unavailable

PEERS = ("onnxruntime", "openvino")
MOST_ERROR = 1e-4  # of the largest logit: f32 sums of some thousand terms through 50 layers differ by 1e-6 to 1e-5, another network by 1


def prepare(args, model, batch):
    """The folder with model.safetensors, model.onnx and image.npy of a model and batch."""
    code = made.key("vision.cpp", "vision_onnx.py", "bert_onnx.py")

    def make(folder):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([args.bench, "--model", model, "--batch", str(batch), "--save", folder], check=True)
        vision_onnx.build(model, folder / "model.safetensors", folder / "model.onnx")

    return made.kept(pathlib.Path(args.folder) / f"{model}-{batch}-{code}", make)


def start(args, name, model, batch, folder):
    if name == "rlx":
        return Side([args.bench, "--model", model, "--batch", batch, "--threads", args.threads, "--parameters", folder, "--serve"], args.threads)
    return Side([sys.executable, __file__, "--serve", name, "--folder", folder, "--threads", args.threads], args.threads)


def check(sides, missing):
    """The largest difference of each side's logits from the first peer's, in parts of the largest logit. A peer that computes another network is
    closed and goes to `missing`; ours must not."""
    differences, reference = {}, None
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(sides, key=lambda name: name == "rlx"):
            sides[name].ask(f"result {folder}/logits.npy")
            logits = np.load(f"{folder}/logits.npy")
            reference = logits if reference is None else reference
            differences[name] = float(np.abs(logits - reference).max() / np.abs(reference).max())
            if differences[name] < MOST_ERROR:
                continue
            missing[name] = f"its logits differ by {differences[name]:.1e} of the largest (allowed: {MOST_ERROR})"
            if name == "rlx":
                raise SystemExit(f"rlx: {missing[name]}")
            sides.pop(name).close()
    return differences


def compare(args, model, batch):
    folder, sides = prepare(args, model, batch), {}
    row = {"case": f"{model}, batch {batch}, f32", "missing": {}, "sides": {}}
    for name in ("rlx", *PEERS):
        try:
            sides[name] = start(args, name, model, batch, folder)
        except Unavailable as reason:
            if name == "rlx":
                raise
            row["missing"][name] = str(reason)
    row["flops"], machine_peak = sides["rlx"].about.pop("flops"), machine.peak(args.peaks, args.threads, "f32")
    differences = check(sides, row["missing"])
    times = {name: [] for name in sides}
    for _ in range(args.rounds):
        for name, side in sides.items():
            times[name] += side.run(max(2, 8 // batch))
    for name, side in sides.items():
        side.close()
        row["sides"][name] = {**side.about, "min_ms": min(times[name]) * 1e3, "median_ms": statistics.median(times[name]) * 1e3,
                              "runs": len(times[name]), "difference": differences[name],
                              "share_of_peak": row["flops"] / min(times[name]) / machine_peak if machine_peak else None}
    peers = [side for name, side in row["sides"].items() if name != "rlx"]
    if "rlx" in row["sides"] and peers:
        row["ratio_to_best"] = {kind: row["sides"]["rlx"][kind] / min(peer[kind] for peer in peers) for kind in ("min_ms", "median_ms")}
    print_row(row)
    return row


def print_row(row):
    print(row["case"])
    for name, side in row["sides"].items():
        share = f"{100 * side['share_of_peak']:5.1f}% of peak" if side["share_of_peak"] else ""
        print(f"  {name:12} {side['version']:12} min {side['min_ms']:8.2f} ms  median {side['median_ms']:8.2f} ms {share}  first result {side['first_result_s'] * 1e3:7.0f} ms  logits differ by {side['difference']:.1e}")
    for name, reason in row["missing"].items():
        print(f"  {name:12} not available: {reason}")
    if "ratio_to_best" in row:
        print(f"  rlx / best peer: {row['ratio_to_best']['min_ms']:.3f} (min), {row['ratio_to_best']['median_ms']:.3f} (median)", flush=True)


def serve(args):
    """Is one peer: the engines of serve_peer, for the file and the images in the folder."""
    out, folder = serve_peer.answers(), pathlib.Path(args.folder)
    args.onnx, args.precision = folder / "model.onnx", "f32"
    inputs = {"image": np.load(folder / "image.npy")}
    run = serve_peer.open_engine(args.serve, args, [inputs], out)
    if run:
        serve_peer.serve(lambda: run(inputs), lambda: run(inputs), out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--models", nargs="+", choices=vision_onnx.NETWORKS, default=list(vision_onnx.NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peaks", help="what bench/peaks wrote: shares of the peak are printed")
    parser.add_argument("--serve", choices=PEERS, help="be this peer")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.serve:
        return serve(args)
    rows = [compare(args, model, batch) for model in args.models for batch in args.batches]
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"machine": machine.describe(), "command": machine.command(), "threads": args.threads, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
