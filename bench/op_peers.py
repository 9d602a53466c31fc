"""Runs the cases of a benchmark (gemm, attention, rows) beside PyTorch: same numbers, results checked against each other first, in turn.

usage: op_peers.py [--threads 2] [--rounds 5] [--seconds 0.3] [--json FILE] -- build/release/bench/gemm --set small

Where PyTorch has several ways to compute a case, the fastest of them counts.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

import machine
from side import Side, Unavailable

HERE = pathlib.Path(__file__).parent


def difference(ours, theirs):
    """Largest difference, as a share of the largest element of theirs."""
    return float(np.abs(ours.reshape(-1) - theirs.reshape(-1)).max() / max(np.abs(theirs).max(), 1e-30))


def check(ours, index, torch, ways, case):
    """Throws where a result differs by more than sums of thousands of terms in another order can: 1e-4 of the largest element."""
    with tempfile.TemporaryDirectory() as folder:
        ours.ask(f"result {index} {folder}/ours.npy")
        if torch:
            torch.ask(f"result {folder}/torch")
        mine = np.load(f"{folder}/ours.npy")
        if not np.isfinite(mine).all():
            raise SystemExit(f"{case}: our result has numbers that are not finite")
        largest = max((difference(mine, np.load(f"{folder}/torch.{i}.npy")) for i in range(len(ways))), default=0.0)
    if not largest < 1e-4:
        raise SystemExit(f"{case}: results differ by {largest:.1e} of the largest element")
    return largest


def compare(args, ours, torch, index, case):
    ways = json.loads(torch.ask("case " + json.dumps(case))) if torch else []
    row = {"case": case, "difference": check(ours, index, torch, ways, case)}
    best = {name: float("inf") for name in ("rlx", *ways)}
    for _ in range(args.rounds):
        best["rlx"] = min(best["rlx"], float(ours.ask(f"time {index} {args.seconds / args.rounds}")))
        if torch:
            for name, seconds in json.loads(torch.ask(f"time {args.seconds / args.rounds}")).items():
                best[name] = min(best[name], seconds)
    row["seconds"] = best
    text = " ".join(f"{key}={value}" for key, value in case.items() if key != "copies")
    line = f"{text:60} rlx {best['rlx'] * 1e6:10.1f} us"
    if ways:
        fastest = min(ways, key=best.get)
        row |= {"peer": fastest, "ratio": best["rlx"] / best[fastest]}
        line += f"   torch {best[fastest] * 1e6:10.1f} us ({fastest})   ratio {row['ratio']:.2f}   difference {row['difference']:.1e}"
    print(line, flush=True)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", nargs="+", help="the benchmark and its options")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each case and way")
    parser.add_argument("--json")
    args = parser.parse_args()
    ours = Side([*args.command, "--serve", "--threads", args.threads], args.threads)
    report = {"machine": machine.describe(), "command": args.command[1:], "threads": args.threads, "rows": []}
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
    behind = [row for row in report["rows"] if row.get("ratio", 0) > 1]
    if torch:
        print(f"{len(report['rows']) - len(behind)} of {len(report['rows'])} ahead of torch {report['torch']}")
    if args.json:
        pathlib.Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
