"""Runs the cases of a benchmark (gemm, conv, attention, rows) beside PyTorch: same numbers, results checked against each other first, in turn.

usage: op_peers.py [--threads 2] [--rounds 5] [--seconds 0.3] [--json FILE] -- build/release/bench/gemm --set small

Where PyTorch has several ways to compute a case, the fastest of them counts. Its calls come from Python, ours from C++: so what a call on
operands without elements takes, timed in the same manner, is subtracted from its time. Nothing is subtracted from ours. Where less than a
tenth of the empty call is left, the difference of two timings says nothing: such cases are marked and not counted. Which side is ahead is
judged by the fastest run of all rounds; the medians stand beside it, of each round's median run.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np

import machine
from side import Side, Unavailable

HERE = pathlib.Path(__file__).parent


def most_difference(case):
    """Of the largest element. f32: sums of thousands of terms in another order. int8: sums of integers, which one of torch's ways gives as floats.
    bf16: torch's result is of that type, and one rounding is 2^-8 of the largest element at most; ours of attention too, and a session that
    leaves a convolution f32 does not round its operands. Torch rounds the weights of attention, whose sums cancel where all queries see all keys.
    f16: torch rounds both operands and its result, by 2^-11 each; ours the weights alone."""
    if case["type"] == "bf16":
        return {"product": 1.01 * 2**-8, "conv": 2**-6, "attention": 2**-6 if case.get("causal") else 2**-4}[case["kind"]]
    return {"f32": 1e-4, "f16": 2**-9, "int8": 1e-6}[case["type"]]


def difference(ours, theirs):
    """Largest difference, as a share of the largest element of theirs."""
    return float(np.abs(ours.reshape(-1) - theirs.reshape(-1)).max() / max(np.abs(theirs).max(), 1e-30))


def check(ours, index, torch, ways, case):
    """The differences of the ways from ours, as shares of the largest element, of those that agree with ours; and the names of the others,
    which are wrong where some agree. Ends where none does."""
    with tempfile.TemporaryDirectory() as folder:
        ours.ask(f"result {index} {folder}/ours.npy")
        mine = np.load(f"{folder}/ours.npy")
        if not np.isfinite(mine).all():
            raise SystemExit(f"{describe(case)}: our result has numbers that are not finite")
        if ways:
            torch.ask(f"result {folder}/torch")
        differences = {way: difference(mine, np.load(f"{folder}/torch.{i}.npy")) for i, way in enumerate(ways)}
    agree = {way: found for way, found in differences.items() if found <= most_difference(case)}
    if ways and not agree:
        raise SystemExit(f"{describe(case)}: results differ by {min(differences.values()):.1e} of the largest element (allowed: {most_difference(case):.1e})")
    return agree, [way for way in ways if way not in agree]


def time_in_turn(args, ours, torch, index, ways):
    """By round the fastest and the median run of each, in seconds: (ours, {way: {"call": ..., "empty": ...}})."""
    for _ in range(args.rounds):
        seconds = [float(word) for word in ours.ask(f"time {index} {args.seconds / args.rounds}").split()]
        yield seconds, json.loads(torch.ask(f"time {args.seconds / args.rounds}")) if ways else {}


def figures(rounds, ways, kind, of_rounds):
    """Our time, and of each way that of a call and of an empty one: `kind` 0 the fastest run of a round, 1 its median one, `of_rounds` of those."""
    theirs = {part: {way: of_rounds([torch[way][part][kind] for _, torch in rounds]) for way in ways} for part in ("call", "empty")}
    return of_rounds([ours[kind] for ours, _ in rounds]), theirs["call"], theirs["empty"]


def compare(args, ours, torch, index, case):
    ways = json.loads(torch.ask("case " + json.dumps(case))) if torch else []
    differences, wrong = check(ours, index, torch, ways, case)
    ways, row = list(differences), {"case": case, "difference": max(differences.values(), default=0.0), "wrong": wrong}
    rounds = list(time_in_turn(args, ours, torch, index, ways))
    seconds, calls, empty = figures(rounds, ways, 0, min)
    median, median_calls, median_empty = figures(rounds, ways, 1, statistics.median)
    row |= {"rlx_s": seconds, "torch_call_s": calls, "torch_empty_s": empty, "rlx_median_s": median}
    line = f"{describe(case):60} rlx {seconds * 1e6:10.1f} us ({median * 1e6:.1f})"
    if ways:
        fastest = min(ways, key=lambda name: calls[name] - empty[name])
        work, median_work = calls[fastest] - empty[fastest], median_calls[fastest] - median_empty[fastest]
        row |= {"peer": fastest, "peer_s": work, "measurable": work >= 0.1 * empty[fastest], "ratio": seconds / work if work > 0 else None,
                "peer_median_s": median_work, "median_ratio": median / median_work if median_work > 0 else None}
        ratio = f"ratio {row['ratio']:.2f} ({ratio_text(row['median_ratio'])})" if row["measurable"] else "nothing is left beside the call"
        line += (f"   torch {work * 1e6:10.1f} us ({median_work * 1e6:.1f}; less {empty[fastest] * 1e6:.1f} us of call, {fastest})   {ratio}"
                 f"   difference {row['difference']:.1e}")
    print(line + "".join(f"   WRONG: torch's {way}" for way in wrong), flush=True)
    return row


def ratio_text(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def describe(case):
    return " ".join(f"{key}={value}" for key, value in case.items() if key != "copies")


def report_summary(rows, version):
    compared = [row for row in rows if row.get("measurable")]
    ahead = sum(row["ratio"] <= 1 for row in compared)
    print(f"{ahead} of {len(compared)} ahead of torch {version}; {len(rows) - len(compared)} more that torch does not compute, or whose time there is the call's")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", nargs="+", help="the benchmark and its options")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each case and way")
    parser.add_argument("--json")
    args = parser.parse_args()
    ours = Side([*args.command, "--serve", "--threads", args.threads], args.threads)
    report = {"machine": machine.describe(), "command": machine.command(), "threads": args.threads, "rows": []}
    try:
        torch = Side([sys.executable, HERE / "serve_torch_ops.py", "--threads", args.threads], args.threads)
        report["torch"] = torch.about["version"]
    except Unavailable as reason:
        torch, report["missing"] = None, {"torch": str(reason)}
        print(f"torch: not available: {reason}")
    for index, case in enumerate(ours.about["cases"]):
        report["rows"].append(compare(args, ours, torch, index, case))
    for side in (ours, torch):
        if side:
            side.close()
    if torch:
        report_summary(report["rows"], report["torch"])
    if args.json:
        pathlib.Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
