"""Runs a BERT sentence model through sentence_model beside its peers: same threads, same inputs, results checked against each other first,
runs in turn. Prints minimum and median and the ratios to the best peer; and how long our side takes to compile: with an empty cache, from
the disk, for other lengths. What cannot take part is named with its reason.

usage: peers.py --bench build/release/bench/sentence_model --model FOLDER [--precision f32 bf16 int8] [--peaks peaks.json] [--json FILE]

Two ways to run a batch of mixed lengths: "one padded batch" gives every peer the batch padded to its longest row; ours reads the same rows
one behind the other, in one run. "as batches by length" lets each side sort the rows by length and run them in batches of the size that is
fastest for it, out of --batch-sizes; our side is then SentenceEncoder::encode, which also tokenizes the texts, while the peers get ids.

"first result" is, for all sides, the time from the model file (ours: the folder; ONNX Runtime's and OpenVINO's: an ONNX file that was made
before; the weights for torch and jax) to the results of the first run, without the start of the process or the import of a library.
"open" is of our side alone, for its compile times: without that first run.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np

import machine
import sentences
from side import Side, Unavailable

PEERS = ("onnxruntime", "openvino", "torch", "torch.compile", "jax")
CASES = {"b1": ("batch 1, 128 tokens", [128]), "b8": ("batch 8, 128 tokens", [128] * 8), "mixed": ("batch 32, mixed lengths to 128", sentences.MIXED)}
# Of each embedding to the f32 reference. Below LEAST_OF_MODEL it is another model, or of other inputs, and that side is out. Ours must reach
# LEAST_COSINE, the bounds of its own tests (1 - 5e-11: two embeddings 1e-5 apart); a peer that does not is timed, and its row says so.
LEAST_OF_MODEL = {"f32": 0.99999, "bf16": 0.99, "int8": 0.9}
LEAST_COSINE = {"f32": 1 - 5e-11, "bf16": 0.9995, "int8": 0.995}
HERE = pathlib.Path(__file__).parent


def start(args, name, precision, files, batch):
    """A side with the rows of `files` in one padded batch (batch 0) or in batches by length."""
    common = ["--model", args.model, "--threads", args.threads]
    if name == "rlx":
        rows = ["--texts", files["texts"], "--batch-size", batch] if batch else ["--ids", files["ids"]]
        return Side([args.bench, *common, "--serve", *rows, "--precision", precision], args.threads)
    return Side([sys.executable, HERE / "serve_peer.py", name, *common, "--precision", precision, "--ids", files["ids"], "--batch", batch], args.threads)


def start_fastest(args, name, precision, files):
    """The side in batches by length, of the size that is fastest for it. Returns it and the size."""
    best = None
    for batch in args.batch_sizes:
        side = start(args, name, precision, files, batch)
        seconds = min(side.run(5))
        if best and best[0] <= seconds:
            side.close()
            continue
        if best:
            best[1].close()
        best = seconds, side, batch
    return best[1:]


def start_all(args, precision, files, by_length):
    """The sides that can take part, the sizes of their batches, and why the others cannot."""
    sides, sizes, missing = {}, {}, {}
    for name in ("rlx", *args.peers):
        try:
            sides[name], sizes[name] = start_fastest(args, name, precision, files) if by_length else (start(args, name, precision, files, 0), None)
        except Unavailable as reason:
            if name == "rlx":
                raise
            missing[name] = str(reason)
    return sides, sizes, missing


def result(side, folder):
    path = pathlib.Path(folder) / "result.npy"
    side.ask(f"result {path}")
    return np.load(path)


def distance(a, b):
    """Smallest cosine of two rows, largest difference of two elements."""
    if a.shape != b.shape:
        raise SystemExit(f"results of different shapes: {a.shape} and {b.shape}")
    a, b = a.astype(np.float64), b.astype(np.float64)
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return {"min_cosine": float(cosines.min()), "max_difference": float(np.abs(a - b).max())}


def flops(args, ids):
    """Of the products for the tokens that are not padding; a multiply-add counts two."""
    config = json.loads((pathlib.Path(args.model) / "config.json").read_text())
    width, wide = config["hidden_size"], config["intermediate_size"]
    return sum(2 * config["num_hidden_layers"] * len(row) * (4 * width**2 + 2 * width * wide + 2 * len(row) * width) for row in ids)


def reference_of(args, files, folder):
    """Embeddings in f32 by the first peer that can compute them, in no case ours when there is another; and its name."""
    for name in (*PEERS, "rlx"):
        try:
            side = start(args, name, "f32", files, 0)
        except Unavailable:
            continue
        embeddings = result(side, folder)
        side.close()
        return embeddings, name
    raise SystemExit("no side can compute a reference")


def check(sides, precision, reference, folder, missing):
    """How far each side's embeddings are from the reference; "misses" says what a peer does not reach. A side of another model is closed and
    goes to `missing`. Ends where ours misses its bound."""
    rows = {}
    for name, side in list(sides.items()):
        rows[name] = distance(result(side, folder), reference)
        cosine, least = rows[name]["min_cosine"], LEAST_COSINE[precision]
        text = f"cosine {cosine:.12g} to the f32 reference (needed: {least:.12g})"
        if not cosine >= least:
            if name == "rlx":
                raise SystemExit(f"rlx, {precision}: {text}")
            rows[name]["misses"] = text
        if not cosine >= LEAST_OF_MODEL[precision]:
            missing[name] = f"it computes something else: {text}"
            sides.pop(name).close()
    return rows


def time_in_turn(sides, rounds, tokens):
    per_round = max(2, 400 // tokens)
    times = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            times[name] += side.run(per_round)
    return times


def compare(args, key, precision, by_length, references):
    title, lengths = CASES[key]
    title += f", {precision}" + ("" if key != "mixed" else ", as batches by length" if by_length else ", one padded batch")
    print(f"\n{title}")
    texts, ids = sentences.make(args.model, lengths)
    with tempfile.TemporaryDirectory() as folder:
        files = {"ids": f"{folder}/ids.json", "texts": f"{folder}/texts.txt"}
        pathlib.Path(files["ids"]).write_text(json.dumps(ids))
        pathlib.Path(files["texts"]).write_text("\n".join(texts) + "\n")
        sides, sizes, missing = start_all(args, precision, files, by_length)
        row = {"case": title, "precision": precision, "sentences": len(ids), "flops": flops(args, ids), "missing": missing, "sides": {}}
        if sides:
            if key not in references:
                references[key] = reference_of(args, files, folder)
            reference, row["reference"] = references[key]
            distances = check(sides, precision, reference, folder, missing)
            for name, seconds in time_in_turn(sides, args.rounds, sum(lengths)).items():
                row["sides"][name] = {"version": sides[name].about["version"], "first_result_s": sides[name].about["first_result_s"], "batch_size": sizes[name],
                                      "min_ms": min(seconds) * 1e3, "median_ms": statistics.median(seconds) * 1e3, "runs": len(seconds),
                                      "sentences_per_s": len(ids) / statistics.median(seconds), **distances[name]}
        for side in sides.values():
            side.close()
    add_ratios(row, machine.peak(args.peaks, args.threads, precision))
    print_row(row)
    return row


def add_ratios(row, machine_peak):
    peers = [side for name, side in row["sides"].items() if name != "rlx"]
    for side in row["sides"].values():
        side["share_of_peak"] = row["flops"] / side["min_ms"] * 1e3 / machine_peak if machine_peak else None
    if "rlx" in row["sides"] and peers:
        row["ratio_to_best"] = {kind: row["sides"]["rlx"][kind] / min(peer[kind] for peer in peers) for kind in ("min_ms", "median_ms")}


def print_row(row):
    for name, side in row["sides"].items():
        share = f"{100 * side['share_of_peak']:5.1f}% of peak" if side["share_of_peak"] else ""
        batch = f"batches of {side['batch_size']}" if side["batch_size"] else ""
        note = f"  MISSES {side['misses']}" if "misses" in side else ""
        print(f"  {name:14} {side['version']:12} min {side['min_ms']:9.2f} ms  median {side['median_ms']:9.2f} ms {side['sentences_per_s']:8.1f} sentences/s "
              f"{share}  cosine {side['min_cosine']:.6f}, first result {side['first_result_s'] * 1e3:.0f} ms  {batch}{note}")
    for name, reason in row["missing"].items():
        print(f"  {name:14} not available: {reason.removeprefix('not available: ')}")
    if "ratio_to_best" in row:
        print(f"  rlx / best peer: {row['ratio_to_best']['min_ms']:.3f} (min), {row['ratio_to_best']['median_ms']:.3f} (median)")


def compile_times(args):
    """Opening the model: reading, building the graph, compiling. Cold, then from the disk cache; then runs of other lengths."""
    figures = {}
    with tempfile.TemporaryDirectory() as cache:
        for case in ("cold", "from disk"):
            side = Side([args.bench, "--model", args.model, "--threads", args.threads, "--cache", cache, "--serve"], args.threads)
            side.close()
            figures[case] = side.about
            print(f"open, {case:10} {1e3 * side.about['open_s']:8.1f} ms: {side.about['compiled']} kernels compiled, {side.about['from_disk']} from "
                  f"disk; {side.about['compiled_for_new_lengths']} for other lengths and batches")
    return figures


def without_claims(args):
    """One row of 128 tokens by generated kernels only: what the hand-written kernels are worth. Two runs, for each takes long."""
    side = Side([args.bench, "--model", args.model, "--threads", args.threads, "--no-claims", "--serve"], args.threads)
    milliseconds = min(side.run(2)) * 1e3
    side.close()
    print(f"batch 1, 128 tokens, f32, by generated kernels alone: {milliseconds:.2f} ms")
    return milliseconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["b1", "mixed"])
    parser.add_argument("--precision", nargs="+", choices=machine.ARITHMETIC, default=["f32"])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[1, 4, 8, 16, 32])
    parser.add_argument("--peaks", help="what bench/peaks wrote on this machine")
    parser.add_argument("--no-claims", action="store_true", help="also time generated kernels alone")
    parser.add_argument("--json")
    args = parser.parse_args()
    report = {"machine": machine.describe(), "command": machine.command(), "model": pathlib.Path(args.model).name, "threads": args.threads, "compile": compile_times(args)}
    references = {}
    report["rows"] = [compare(args, key, precision, by_length, references) for key in args.cases
                      for precision in sorted(args.precision, key=list(machine.ARITHMETIC).index)
                      for by_length in ([False, True] if key == "mixed" else [False])]
    if args.no_claims:
        report["no_claims_min_ms"] = without_claims(args)
    if args.json:
        pathlib.Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
