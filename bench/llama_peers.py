"""Language models beside llama.cpp: the same file, threads and tokens. Models of random weights are written by bench/llama_model.py and stay in the
working folder.

usage: llama_peers.py TASK... --build build/release [--work build/llama] [--results FOLDER]
TASK:
  tokens      200 steps of greedy decoding in F32: the same tokens, logits alike
  perplexity  of one text, for every type of weights that both read: within 0.5%. llama.cpp's is computed from its logits as its tool does it
  speed       a prompt of 512 and 128 tokens one by one, each type in turn, with shares of what the machine reaches in the same rounds
  depth       the same behind a prompt of 512 and behind one of 8192
  quantize    F16 to Q4_K_M
Each writes llama_TASK.json to the folder of results. Both have their own defaults; where numbers are compared they keep keys and values in
F32, and llama.cpp computes attention without its flash kernel, which rounds to F16 inside: logits of an F32 model are 1e-3 to 1e-2 off with it, 1e-5 without.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import gguf
import numpy as np

import machine
import made
import serve_llama
from side import Side

HERE = pathlib.Path(__file__).parent
SPEED_TYPES = ["Q4_0", "Q4_K_M", "Q8_0", "BF16"]
PERPLEXITY_TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS",
                    "IQ2_M", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4"]
SMALL = {"layers": 4, "width": 512, "heads": 8, "kv-heads": 2, "ffn": 1536, "vocab": 4096, "gain": 4}  # logits differ by 1.8: exp of them is felt
STEPS, WINDOW, WINDOWS = 200, 512, 16
MOST_DIFFERENCE = 0.005  # of perplexities
MOST_LOGIT_DIFFERENCE = 3e-4  # over the deviation of the logits: a single rounding to F16 on the way leaves 1e-3, sums in another order 4e-5


def model_file(args, kind, **shape):
    """A model of random weights, written once."""
    options = [word for key, value in shape.items() for word in (f"--{key}", str(value))]
    name = "-".join([kind.lower(), *map(str, shape.values()), made.key("llama_model.py")])
    make = lambda path: subprocess.run([sys.executable, HERE / "llama_model.py", path, "--type", kind, *options], check=True)
    return made.kept(args.work / f"{name}.gguf", make)


def start(args, name, model, context, *options):
    command = [args.build / "bench/language_model"] if name == "rlx" else [sys.executable, HERE / "serve_llama.py"]
    return Side([*command, "--model", model, "--threads", args.threads, "--context", context, *options], args.threads)


def rlx(args, *words):
    return subprocess.run([args.build / "rlx", *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def write(args, task, report):
    report = {"machine": machine.describe(), "command": machine.command(), "threads": args.threads, "llama_cpp_python": serve_llama.version(), **report}
    (args.results / f"llama_{task}.json").write_text(json.dumps(report, indent=1) + "\n")


def tokens(args):
    """The sides one after the other: two copies of the weights need not be held at a time."""
    shape = {"layers": args.layers}
    model, prompt, logits = model_file(args, "F32", **shape), 16, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rlx", "llama.cpp"):
            side = start(args, name, model, prompt + STEPS, "--exact")
            side.ask(f"fill {prompt}")
            side.ask(f"greedy {STEPS} {folder}/logits.npy")
            side.close()
            logits[name] = np.load(f"{folder}/logits.npy")
    ours, theirs = logits["rlx"], logits["llama.cpp"]
    other = np.flatnonzero(ours.argmax(1) != theirs.argmax(1))
    alike = int(other[0]) if len(other) else STEPS
    compared = slice(0, alike + 1)  # behind the same tokens
    best = np.sort(theirs[compared], axis=1)[:, -2:]
    report = {"shape": shape, "steps": STEPS, "same_tokens": alike, "distinct_tokens": int(len(np.unique(theirs.argmax(1)))),
              "largest_difference": float(np.abs(ours[compared] - theirs[compared]).max()), "deviation": float(theirs[compared].std()),
              "smallest_lead": float((best[:, 1] - best[:, 0]).min())}
    print(json.dumps(report))
    write(args, "tokens", report)
    failures = [] if alike == STEPS else [f"tokens: other tokens from step {alike} on"]
    if not report["largest_difference"] <= MOST_LOGIT_DIFFERENCE * report["deviation"]:
        failures.append(f"tokens: a logit differs by {report['largest_difference']:.1e}, allowed {MOST_LOGIT_DIFFERENCE * report['deviation']:.1e}")
    return failures


def words_of(model, count):
    """A text of words that the tokenizer has, chosen by chance."""
    reader = gguf.GGUFReader(model)
    field = reader.get_field("tokenizer.ggml.tokens")
    words = [bytes(field.parts[i]).decode() for i in field.data[259 + 12 + 1:]]
    rng = np.random.default_rng(11)
    return "".join(words[i] for i in rng.integers(0, len(words), count)).replace("▁", " ").strip()


def nll_of(logits, ids):
    """-log(probability) of each token; the logits are (len(ids), vocab_size)."""
    wide = logits.astype(np.float64)
    top = wide.max(1)
    return np.log(np.exp(wide - top[:, None]).sum(1)) + top - wide[np.arange(len(ids)), ids]


def llama_perplexity(model, text, threads):
    """As the tool computes it: windows of their own, the first token of each replaced by the one that texts begin with, the second half counts."""
    side = serve_llama.Model(model, WINDOW, threads, exact=True)
    ids = side.tokenize(text)
    begin = ids[0]
    judged, nll = WINDOW - WINDOW // 2 - 1, []
    for at in range(0, len(ids) - WINDOW + 1, WINDOW):
        window = [begin, *ids[at + 1:at + WINDOW]]
        side.rewind(0)
        nll.append(nll_of(side.append(window, judged + 1)[:-1], window[-judged:]))
    side.close()
    nll = np.concatenate(nll)
    return {"ids": ids, "tokens": len(nll), "nll": float(nll.mean()), "perplexity": float(np.exp(nll.mean()))}


def perplexity(args):
    rows, failures = [], []
    source = model_file(args, "F32", **SMALL)
    text = words_of(source, WINDOW * WINDOWS)
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        text_file, model, decoded = (pathlib.Path(folder) / name for name in ("text", "model.gguf", "decoded.gguf"))
        judge = lambda of: json.loads(rlx(args, "perplexity", of, "-f", text_file, "--context", WINDOW, "--threads", args.threads, "--cache-type", "f32", "--json"))
        text_file.write_text(text)
        our_ids = json.loads(rlx(args, "tokenize", "--model", source, "--file", text_file, "--json"))["ids_special"]
        for kind, *pure in [*((kind, "--pure") for kind in PERPLEXITY_TYPES), ("Q4_K_M",)]:
            about = json.loads(rlx(args, "quantize", source, model, "--type", kind, *pure, "--threads", args.threads, "--json"))
            rlx(args, "quantize", model, decoded, "--type", "F32", "--threads", args.threads)
            ours, held = judge(model), sorted({each["type"] for each in about["types"]} - {"F32"}) or ["F32"]
            row = {"type": held[0] if len(held) == 1 else f"{kind} ({', '.join(held)})", "rlx": ours["perplexity"], "decoded": judge(decoded)["perplexity"], "tokens": ours["tokens"]}
            try:
                theirs = llama_perplexity(model, text, args.threads)
                row |= {"llama_cpp": theirs["perplexity"], "difference": ours["perplexity"] / theirs["perplexity"] - 1}
                row["llama_cpp_to_decoded"] = theirs["perplexity"] / row["decoded"] - 1
                if theirs["ids"] != our_ids or theirs["tokens"] != ours["tokens"]:
                    failures.append(f"perplexity: {kind}: other ids")
                if abs(row["difference"]) > MOST_DIFFERENCE:
                    failures.append(f"perplexity: {kind}: {ours['perplexity']:.4f}, llama.cpp {theirs['perplexity']:.4f}")
            except RuntimeError as reason:
                row["missing"] = str(reason).replace(str(model), "it")
            row["to_decoded"] = row["rlx"] / row["decoded"] - 1
            rows.append(row)
            print(json.dumps(row), flush=True)
    write(args, "perplexity", {"shape": SMALL, "window": WINDOW, "windows": WINDOWS, "rows": rows})
    return failures


def weight_bytes(model):
    """Of the matrices that every token reads: all but the embeddings, of which it reads one row."""
    return sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(model).tensors if tensor.name != "token_embd.weight")


def product_flops(model):
    """Of one token; a multiply-add counts two."""
    return sum(2 * int(tensor.n_elements) for tensor in gguf.GGUFReader(model).tensors if tensor.name != "token_embd.weight" and len(tensor.shape) == 2)


def in_turn(sides, works, rounds, limits):
    """Seconds of each work on each side, in turn, the first round not counted; and medians of what the machine reaches in the same rounds."""
    seconds = {work: {name: [] for name in sides} for work in works}
    reached = []
    for i in range(rounds + 1):
        found = json.loads(sides["rlx"].ask("limits 100")) if limits else {}
        for work in works:
            for name, side in sides.items():
                taken = float(side.ask(work))
                if i > 0:
                    seconds[work][name].append(taken)
        reached.append(found)
    return seconds, {key: statistics.median(found[key] for found in reached[1:]) for key in reached[0]}


def row_of(case, count, seconds, **more):
    """Tokens per second of each side, at best and in the median."""
    sides = {name: {"max_tokens_per_s": count / min(times), "median_tokens_per_s": count / statistics.median(times), "runs": len(times)} for name, times in seconds.items()}
    ratio = {kind: sides["rlx"][kind] / sides["llama.cpp"][kind] for kind in ("max_tokens_per_s", "median_tokens_per_s")}
    row = {"case": case, "tokens": count, "sides": sides, "times_faster": ratio, **more}
    print(f"{case:24} rlx {sides['rlx']['max_tokens_per_s']:8.1f} / {sides['rlx']['median_tokens_per_s']:8.1f} tok/s  llama.cpp "
          f"{sides['llama.cpp']['max_tokens_per_s']:8.1f} / {sides['llama.cpp']['median_tokens_per_s']:8.1f}  {ratio['max_tokens_per_s']:.2f} / {ratio['median_tokens_per_s']:.2f} times", flush=True)
    return row


def shares(row, limits, flops=None, read=None):
    """Of each side, in the median: operations per second over the peaks of the operands, or bytes per second over what reading reaches."""
    for side in row["sides"].values():
        rate = side["median_tokens_per_s"]
        side["shares"] = {f"{operands} peak": rate * flops / limits[operands] for operands in ("bf16", "int8") if limits[operands]} if flops else \
            {"reading": rate * read / limits["read"]}
    row["limits"] = limits
    return row


def speed(args):
    rows = []
    for kind in args.types:
        model = model_file(args, kind, layers=args.layers)
        sides = {name: start(args, name, model, 1024) for name in ("rlx", "llama.cpp")}
        works = {"prompt 512": 512, f"decode {args.decode}": args.decode}
        seconds, limits = in_turn(sides, works, args.rounds, True)
        for work, count in works.items():
            case = f"{kind}, {work.replace('prompt', 'a prompt of').replace('decode', 'one by one,')}"
            row = row_of(case, count, seconds[work], open_s={name: side.about["open_s"] for name, side in sides.items()})
            rows.append(shares(row, limits, flops=product_flops(model)) if "prompt" in work else shares(row, limits, read=weight_bytes(model)))
        for side in sides.values():
            side.close()
        write(args, "speed", {"rows": rows})  # what is measured so far
    return []


def depth(args):
    rows = []
    for kind in args.types:
        model = model_file(args, kind, layers=args.layers)
        sides = {name: start(args, name, model, 8192 + 512 + args.decode) for name in ("rlx", "llama.cpp")}
        for filled in (0, 512, 7680, 8192):  # what a prompt of 512 leaves is what the next one needs
            for side in sides.values():
                side.ask(f"fill {filled}")
            work, count = ("decode 32", 32) if filled in (512, 8192) else ("prompt 512", 512)
            seconds, _ = in_turn(sides, [work], args.rounds, False)
            rows.append(row_of(f"{kind}, {work.replace('decode', 'one by one,').replace('prompt', 'prompt of')} behind {filled}", count, seconds[work]))
        for side in sides.values():
            side.close()
        for first, last in ((0, 2), (1, 3)):
            growth = {name: rows[first - 4]["sides"][name]["median_tokens_per_s"] / rows[last - 4]["sides"][name]["median_tokens_per_s"] for name in sides}
            rows[last - 4]["times_slower"] = growth
            print(f"  time per token, {rows[last - 4]['case']}: " + ", ".join(f"{name} {times:.2f}" for name, times in growth.items()) + " times that of the shorter", flush=True)
    write(args, "depth", {"rows": rows})
    return []


def quantize(args):
    """Ours is the whole command, llama.cpp's its call in a process that is there already."""
    model, times, sizes = model_file(args, "F16", layers=args.layers), {"rlx": [], "llama.cpp": []}, {}
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        works = {"rlx": lambda out: rlx(args, "quantize", model, out, "--type", "Q4_K_M", "--threads", args.threads),
                 "llama.cpp": lambda out: serve_llama.quantize(model, out, args.threads)}
        for _ in range(args.rounds):
            for name, work in works.items():
                out = pathlib.Path(folder) / name
                begin = time.perf_counter()
                work(out)
                times[name].append(time.perf_counter() - begin)
                sizes[name] = out.stat().st_size
                print(f"{name:12} {times[name][-1]:8.2f} s, {sizes[name]} bytes", flush=True)
                out.unlink()
    sides = {name: {"min_s": min(each), "median_s": statistics.median(each), "runs": len(each), "bytes": sizes[name]} for name, each in times.items()}
    ratio = {kind: sides["llama.cpp"][kind] / sides["rlx"][kind] for kind in ("min_s", "median_s")}
    print(f"rlx is {ratio['min_s']:.2f} (min), {ratio['median_s']:.2f} (median) times as fast")
    write(args, "quantize", {"layers": args.layers, "source_bytes": model.stat().st_size, "sides": sides, "times_faster": ratio})
    return []


TASKS = {"tokens": tokens, "perplexity": perplexity, "speed": speed, "depth": depth, "quantize": quantize}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", nargs="+", choices=TASKS)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/llama"))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", nargs="+", choices=SPEED_TYPES, default=SPEED_TYPES)
    parser.add_argument("--layers", type=int, default=22, help="of the models but that of perplexity; all other sizes are those of the 1.1B shape")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--decode", type=int, default=128, help="tokens one by one")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    args.results.mkdir(parents=True, exist_ok=True)
    failures = [failure for task in args.tasks for failure in TASKS[task](args)]
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main()
