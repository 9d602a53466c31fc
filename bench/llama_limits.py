"""What a language model of random weights reaches beside its own single sequence, short prompt, file and memory, where no peer is asked: the models
are those of bench/llama_peers.py, in Q4_0 where no other type is named.

usage: llama_limits.py [TASK...] --build build/release [--work build/llama] [--results FOLDER]
TASK (all of them where none is named; each replaces its rows in llama_limits.json):
  sequences   eight sequences that are continued together, beside one
  long        time per token of a prompt of 8192, beside one of 512
  mixture     tokens one by one of 8 experts of which 2 are chosen, as a share of reading what a token reads
  start       seconds of `rlx run -n 1` as a whole, from the start of the process
  memory      the most that `rlx bench -p 16 -n 64` holds, beside the file and the keys and values of 80 tokens, in each type of `llama_peers.py speed`
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import gguf

import machine
from llama_peers import SPEED_TYPES, in_turn, model_file, rlx, start, weight_bytes

TOGETHER, LONG, SHORT, DECODED = 8, 8192, 512, 64
EXPERTS = {"experts": 8, "ffn": 2816}  # two of which are as wide as the one of the dense model


def median_and_best(values, best):
    return {"median": statistics.median(values), "best": best(values), "runs": len(values)}


def in_pairs(args, one, other):
    """Both functions in turn, after a round that does not count."""
    found = [(one(), other()) for _ in range(args.rounds + 1)][1:]
    return [list(values) for values in zip(*found)]


def sequences(args):
    model = model_file(args, "Q4_0", layers=args.layers)

    def rate(count):
        line = rlx(args, "bench", model, "-p", 0, "-n", DECODED, "-r", 1, "--sequences", count, "--threads", args.threads, "--json")
        return json.loads(line.splitlines()[-1])["tokens_per_second"]

    one, many = in_pairs(args, lambda: rate(1), lambda: rate(TOGETHER))
    times = median_and_best([b / a for a, b in zip(one, many)], max)
    return [{"case": f"{TOGETHER} sequences together", "unit": "tokens/s", "one": median_and_best(one, max), "result": median_and_best(many, max), "ratio": times,
             "of": "one sequence", "bar": 4, "at_least": True}]


def long(args):
    side = start(args, "rlx", model_file(args, "Q4_0", layers=args.layers), LONG)
    works = {"short": f"prompt {SHORT}", "long": f"prompt {LONG}"}
    seconds, _ = in_turn({"rlx": side}, list(works.values()), args.rounds, False)
    side.close()
    short, whole = (seconds[works[name]]["rlx"] for name in ("short", "long"))
    per_token = [(b / LONG) / (a / SHORT) for a, b in zip(short, whole)]
    return [{"case": f"a prompt of {LONG}", "unit": "tokens/s", "one": median_and_best([SHORT / s for s in short], max), "result": median_and_best([LONG / s for s in whole], max),
             "ratio": median_and_best(per_token, min), "of": f"the time per token of {SHORT}", "bar": 1.6, "at_least": False}]


def read_by_a_token(model, chosen):
    """Of the stacked matrices those of the chosen experts."""
    tensors = gguf.GGUFReader(model).tensors
    stacked = sum(int(t.n_bytes) for t in tensors if "_exps." in t.name)
    return weight_bytes(model) - stacked + stacked * chosen // EXPERTS["experts"]


def mixture(args):
    model, chosen = model_file(args, "Q4_0", layers=args.layers, **EXPERTS), 2
    side, work = start(args, "rlx", model, 1024), f"decode {DECODED}"
    rates, shares = [], []
    for _ in range(args.rounds + 1):  # reading is measured beside each: its rate moves by the minute
        reading = json.loads(side.ask("limits 200"))["read"]
        rates.append(DECODED / float(side.ask(work)))
        shares.append(rates[-1] * read_by_a_token(model, chosen) / reading)
    side.close()
    return [{"case": f"{EXPERTS['experts']} experts, {chosen} chosen, one by one", "unit": "tokens/s", "result": median_and_best(rates[1:], max),
             "ratio": median_and_best(shares[1:], max), "of": "reading what a token reads", "bar": 0.85, "at_least": True}]


def watched(args, *words):
    """Seconds of the whole process and the most bytes that it held."""
    begin = time.perf_counter()
    process = subprocess.Popen([args.build / "rlx", *map(str, words), "--threads", str(args.threads)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"rlx {' '.join(map(str, words))}: status {status}")
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def start_up(args):
    model = model_file(args, "Q4_0", layers=args.layers)
    seconds = [watched(args, "run", model, "-p", "e t a o", "-n", 1)[0] for _ in range(args.rounds + 1)][1:]
    return [{"case": "from the start of the process to the first token", "unit": "s", "result": median_and_best(seconds, min), "ratio": median_and_best(seconds, min),
             "of": "a second", "bar": 0.5, "at_least": False}]


def memory(args):
    cache = (16 + DECODED) * args.layers * 2 * 4 * 64 * 2  # keys and values of 4 heads of 64, in f16
    rows = []
    for kind in SPEED_TYPES:
        model = model_file(args, kind, layers=args.layers)
        held = [watched(args, "bench", model, "-p", 16, "-n", DECODED, "-r", 1)[1] for _ in range(2)]
        needed = model.stat().st_size + cache
        rows.append({"case": f"the most memory held, {kind}", "unit": "MiB", "result": median_and_best([each / 2**20 for each in held], min),
                     "ratio": median_and_best([each / needed for each in held], min), "of": "the file, keys and values", "bar": 1.05, "at_least": False})
    return rows


TASKS = {"sequences": sequences, "long": long, "mixture": mixture, "start": start_up, "memory": memory}


def show(row):
    result, ratio = row["result"], row["ratio"]
    print(f"{row['case']}: {result['median']:.2f} ({result['best']:.2f} at best) {row['unit']}, {ratio['median']:.2f} ({ratio['best']:.2f}) of {row['of']}; asked for: {row['bar']}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/llama"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if unknown := set(args.tasks) - set(TASKS):
        parser.error(f"no task {', '.join(sorted(unknown))} (there are {', '.join(TASKS)})")
    args.work.mkdir(parents=True, exist_ok=True)
    file = args.results / "llama_limits.json"
    kept = json.loads(file.read_text())["rows"] if file.exists() else []
    rows = {task: [row for row in kept if row["task"] == task] for task in TASKS}
    for task in args.tasks or TASKS:
        rows[task] = [{"task": task, **row} for row in TASKS[task](args)]
        for row in rows[task]:
            show(row)
        report = {"machine": machine.describe(), "command": machine.command(), "threads": args.threads, "layers": args.layers, "rows": [row for each in rows.values() for row in each]}
        file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
