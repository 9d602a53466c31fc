"""Runs an image model through vision beside ONNX Runtime and OpenVINO: same threads, parameters and images, logits checked against each other
first, runs in turn. Prints minimum and median and the ratios to the best peer.

usage: vision_peers.py --bench build/release/bench/vision --folder FOLDER [--models resnet50 vit_b16] [--batches 1 8] [--json FILE]

FOLDER keeps the parameters and ONNX files, which are made when they are missing.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import machine
import serve_peer
import vision_onnx
from side import Side, Unavailable

PEERS = ("onnxruntime", "openvino")
MOST_ERROR = 1e-4  # of the largest logit: f32 sums of some thousand terms through 50 layers differ by 1e-6 to 1e-5, another network by 1


def prepare(args, model, batch):
    """The folder with model.safetensors, bench.onnx and image.npy of a model and batch."""
    folder = pathlib.Path(args.folder) / f"{model}-{batch}"
    if not (folder / "bench.onnx").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([args.bench, "--model", model, "--batch", str(batch), "--save", folder], check=True)
        vision_onnx.build(model, folder / "model.safetensors", folder / "bench.onnx.part")
        (folder / "bench.onnx.part").rename(folder / "bench.onnx")
    return folder


def start(args, name, model, batch, folder):
    if name == "rlx":
        return Side([args.bench, "--model", model, "--batch", batch, "--threads", args.threads, "--serve"], args.threads)
    return Side([sys.executable, __file__, "--serve", name, "--folder", folder, "--threads", args.threads], args.threads)


def check(sides):
    """The largest difference of each side's logits from the first's, in parts of the largest logit. All must be the same network."""
    differences, reference = {}, None
    with tempfile.TemporaryDirectory() as folder:
        for name, side in sides.items():
            side.ask(f"result {folder}/logits.npy")
            logits = np.load(f"{folder}/logits.npy")
            reference = logits if reference is None else reference
            differences[name] = float(np.abs(logits - reference).max() / np.abs(reference).max())
            if not differences[name] < MOST_ERROR:
                raise SystemExit(f"{name}: logits differ by {differences[name]:.1e} of the largest (allowed: {MOST_ERROR})")
    return differences


def compare(args, model, batch):
    folder, sides = prepare(args, model, batch), {}
    row = {"case": f"{model}, batch {batch}, f32", "missing": {}, "sides": {}}
    for name in ("rlx", *PEERS):
        try:
            sides[name] = start(args, name, model, batch, folder)
        except Unavailable as reason:
            row["missing"][name] = str(reason)
    differences, times = check(sides), {name: [] for name in sides}
    for _ in range(args.rounds):
        for name, side in sides.items():
            times[name] += side.run(max(2, 8 // batch))
    for name, side in sides.items():
        side.close()
        row["sides"][name] = {**side.about, "min_ms": min(times[name]) * 1e3, "median_ms": statistics.median(times[name]) * 1e3,
                              "runs": len(times[name]), "difference": differences[name]}
    peers = [side for name, side in row["sides"].items() if name != "rlx"]
    if "rlx" in row["sides"] and peers:
        row["ratio_to_best"] = {kind: row["sides"]["rlx"][kind] / min(peer[kind] for peer in peers) for kind in ("min_ms", "median_ms")}
    print_row(row)
    return row


def print_row(row):
    print(row["case"])
    for name, side in row["sides"].items():
        print(f"  {name:12} {side['version']:12} min {side['min_ms']:8.2f} ms  median {side['median_ms']:8.2f} ms  logits differ by {side['difference']:.1e}")
    for name, reason in row["missing"].items():
        print(f"  {name:12} not available: {reason}")
    if "ratio_to_best" in row:
        print(f"  rlx / best peer: {row['ratio_to_best']['min_ms']:.3f} (min), {row['ratio_to_best']['median_ms']:.3f} (median)", flush=True)


def serve(args):
    """Is one peer: the engines of serve_peer, for the file and the images in the folder."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print does not get between the answers
    args.model, args.precision = args.folder, "f32"
    inputs = {"image": np.load(pathlib.Path(args.folder) / "image.npy")}
    try:
        begin = time.perf_counter()
        version, run = serve_peer.ENGINES[args.serve](args, [inputs])
        run(inputs)
    except Exception as error:  # whatever keeps a peer from taking part is reported, and the others go on
        print(json.dumps({"unavailable": f"{type(error).__name__}: {error}".splitlines()[0]}), file=out, flush=True)
        return
    print(json.dumps({"version": version, "open_s": time.perf_counter() - begin}), file=out, flush=True)
    serve_peer.serve(lambda: run(inputs), lambda: run(inputs), out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--models", nargs="+", choices=vision_onnx.NETWORKS, default=list(vision_onnx.NETWORKS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", choices=PEERS, help="be this peer")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.serve:
        return serve(args)
    rows = [compare(args, model, batch) for model in args.models for batch in args.batches]
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"machine": machine.describe(), "threads": args.threads, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
