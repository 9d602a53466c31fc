"""What the files of a folder of results say, as sections with charts: the page and the tables beside the files are made of the same."""
import json
from dataclasses import dataclass, field

import bars


@dataclass
class Bar:
    label: str
    value: float  # its length; nothing is drawn where it is None
    text: str  # beside it
    cells: list  # the same and more, as a table has it
    ours: bool = True


@dataclass
class Chart:
    title: str
    columns: list  # names, of the labels first
    bars: list
    limit: float = None  # where a line is drawn
    note: str = ""


@dataclass
class Section:
    title: str
    note: str
    command: str
    charts: list = field(default_factory=list)


class Fields(dict):
    """An object of a file of results. What another version of the benchmarks left out ends the report with its name."""
    path = None

    def __missing__(self, key):
        raise SystemExit(f"{self.path}: no {key!r} beside {', '.join(map(repr, self)) or 'nothing'}: it is incomplete, or of another version; measure it again (make bench)")


def read(path):
    of_file = type("FieldsOfFile", (Fields,), {"path": path})
    return json.loads(path.read_text(), object_hook=of_file)


def peaks(data):
    row = data["peaks"][-1]
    rates = [Bar(name, rate, f"{rate / 1e9:.0f} G operations/s", [f"{rate / 1e9:.0f}"]) for name, rate in row["operations_per_s"].items()]
    moved = [Bar(f"{place}, {how}", rate, f"{rate / 1e9:.1f} GB/s", [f"{rate / 1e9:.1f}"])
             for how, places in row["bytes_per_s"].items() for place, rate in places.items()]
    loops = [Bar(name, seconds, f"{seconds * 1e6:.2f} us", [f"{seconds * 1e6:.2f}"]) for name, seconds in row["parallel_loop_s"].items()]
    return Section("Limits of this machine", f"{data['cpu']}; {row['threads']} threads. A copy counts what is read and what is written.", data["command"],
                   [Chart("", ["multiply-adds", "G operations/s"], rates), Chart("", ["memory", "GB/s"], moved), Chart("", ["parallel loop", "us"], loops)])


def microseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1e6:.1f}"


def shares(title):
    def section(data):
        bars = [Bar(case["name"], case["share"], f"{100 * case['share']:.0f}% of {case['bound']}, {case['seconds'] * 1e6:.1f} us",
                    [microseconds(case["seconds"]), microseconds(case.get("median_s")), f"{100 * case['share']:.0f}% of {case['bound']}"]) for case in data["cases"]]
        all_shares = [bar.value for bar in bars]
        note = (f"{100 * min(all_shares):.0f} to {100 * max(all_shares):.0f}% of the limit that binds, measured in the same run (the line is 100%), "
                f"{data['threads']} threads.")
        return Section(title, note, data["command"], [Chart("", ["case", "min, us", "median, us", "share"], bars, 1)])
    return section


def claims(level=None):
    """Of a level below the machine's best, if one is named."""
    def section(data):
        bars = [Bar(case["name"], case["times_faster"], f"{case['times_faster']:.2f} times faster",
                    [f"{case['claimed_s'] * 1e6:.1f}", f"{case['generated_s'] * 1e6:.1f}", f"{case['times_faster']:.2f}"]) for case in data["cases"]]
        return Section("What hand-written kernels are worth" + (f", level {level}" if level else ""), f"Beside the generated kernels that they replace, in turn, {data['threads']} threads; the line is 1.1 times.",
                       (f"RLX_CPU={level} " if level else "") + data["command"], [Chart("", ["case", "claimed, us", "generated, us", "times faster"], bars, 1.1)])
    return section


def busy(data):
    bars = [Bar(case["name"], case["ratio"], f"{100 * case['ratio']:.0f}%", [f"{case['quiet_per_s']:.1f}", f"{case['busy_per_s']:.1f}", f"{100 * case['ratio']:.0f}%"])
            for case in data["cases"]]
    return Section("Beside a process that spins on one core", f"Runs per second over those of the quiet machine, medians, in turn in one run, {data['threads']} threads; "
                   f"the line is {100 * data['least_ratio']:.0f}%.", data["command"],
                   [Chart("", ["case", "quiet, runs/s", "busy, runs/s", "share"], bars, data["least_ratio"])])


def compile_times(data):
    bars = [Bar(name, data[key]["seconds"], f"{1e3 * data[key]['seconds']:.0f} ms, {data[key]['compiled']} kernels compiled, {data[key]['from_disk']} from disk",
                [f"{1e3 * data[key]['seconds']:.0f}", data[key]["compiled"], data[key]["from_disk"]]) for key, name in (("empty", "empty"), ("disk", "from disk"))]
    return Section(f"Compiling a decoder of {data['layers']} layers, {data['width']} wide", f"From the start of a session to the program, the fastest of some new processes, "
                   f"{data['threads']} threads. Kernels compiled for new lengths: {data['compiled_for_new_lengths']}.", data["command"],
                   [Chart("", ["cache", "ms", "kernels compiled", "from disk"], bars)])


def python(data):
    bars = [Bar(row["work"], None, f"{row['rlx']:.4g} (bar: {row['bar']})",
                [row["bar"], f"{row['rlx']:.4g}", ", ".join(f"{name} {value:.4g}" for name, value in row["peers"].items()) or "-", "yes" if row["met"] else "**no**"])
            for row in data["rows"]]
    return Section("Work through Python", "The fastest of many rounds, each line beside its peers in the same run.", data["command"],
                   [Chart("", ["work", "bar", "reached", "beside it", "met"], bars)])


def compile_families(data):
    bars = [Bar(f"{family['name']}, {one['size']}", 1e3 * one["seconds"] / one["nodes"], f"{1e3 * one['seconds'] / one['nodes']:.2f} ms a node",
                [one["nodes"], f"{1e3 * one['seconds']:.0f}", f"{1e3 * one['seconds'] / one['nodes']:.2f}", one["kernels"]]) if "seconds" in one else
            Bar(f"{family['name']}, {one['size']}", None, one["error"], ["-", one["error"], "-", "-"]) for family in data["families"] for one in family["sizes"]]
    return Section("Compiling values that are read at many places", "Steps, levels or elements, with an empty cache, the fastest of some new processes, which have loaded LLVM before, "
                   f"{data['threads']} threads; the line is 2 ms a node.", data["command"],
                   [Chart("", ["family, size", "nodes", "ms", "ms a node", "kernels compiled"], bars, 2)])


def describe(case):
    """The sizes of a case of bench/op_peers.py."""
    return " ".join(f"{key} {value}" for key, value in case.items() if key not in ("kind", "copies"))


def torch_bar(row):
    label = f"{row['case']['kind']}: {describe(row['case'])}"
    ours = both(row["rlx_s"], row.get("rlx_median_s"))
    if "peer" not in row:
        return Bar(label, None, "torch computes none", [ours, "-", "-", "torch computes none", "-", "-"])
    subtracted = microseconds(row["torch_empty_s"][row["peer"]])
    wrong, difference = "".join(f"; its {way} is wrong" for way in row["wrong"]), f"{row['difference']:.1e}"
    if not row["measurable"]:
        return Bar(label, None, "nothing is left beside torch's call", [ours, f"below {subtracted}", subtracted, "not measurable" + wrong, "-", difference])
    median = row.get("median_ratio")
    return Bar(label, row["ratio"], f"{row['ratio']:.2f} of torch's time ({row['peer']})",
               [ours, both(row["peer_s"], row.get("peer_median_s")), subtracted, f"{row['ratio']:.2f} ({row['peer']}{wrong})",
                "-" if median is None else f"{median:.2f}", difference], row["ratio"] <= 1)


def both(seconds, median):
    return f"{microseconds(seconds)} / {microseconds(median)}"


def beside_torch(title):
    def section(data):
        bars = [torch_bar(row) for row in data["rows"]]
        ratios = [bar.value for bar in bars if bar.value is not None]
        missing = "".join(f" {name}: {reason}." for name, reason in data.get("missing", {}).items())
        summary = f"{sum(ratio <= 1 for ratio in ratios)} of {len(ratios)} ahead of torch {data['torch']}" if ratios else "Nothing was compared"
        medians = [row["median_ratio"] for row in data["rows"] if row.get("measurable") and row.get("median_ratio")]
        by_median = f" ({sum(ratio <= 1 for ratio in medians)} of {len(medians)} by the medians)" if medians else ""
        note = (f"{summary}{by_median}: our time over that of its fastest way, in turn in one run, {data['threads']} threads, minimum / median. From torch's time that of a "
                f"call on operands without elements is subtracted. Results differ by parts of the largest element.{missing}")
        return Section(title, note, data["command"], [Chart("", ["case", "rlx, us", "torch, us", "subtracted, us", "ratio", "median ratio", "difference"], bars, 1)])
    return section


# Of a side of a model's row, those that it has: key, name, text.
MODEL_COLUMNS = [("version", "version", str), ("min_ms", "min, ms", "{:.2f}".format), ("median_ms", "median, ms", "{:.2f}".format),
                 ("sentences_per_s", "sentences/s", "{:.1f}".format), ("share_of_peak", "of peak", lambda share: f"{100 * share:.0f}%" if share else "-"),
                 ("min_cosine", "cosine to f32", "{:.6f}".format), ("difference", "difference", "{:.1e}".format),
                 ("peak_bytes", "peak, GB", lambda peak: f"{peak / 1e9:.2f}"), ("first_result_s", "first result, ms", lambda seconds: f"{1e3 * seconds:.0f}")]


def side_bar(name, side):
    share = f", {100 * side['share_of_peak']:.0f}% of peak" if side.get("share_of_peak") else ""
    misses = ", misses the accuracy asked of ours" if "misses" in side else ""
    cells = [text(side[key]) for key, _, text in MODEL_COLUMNS if key in side]
    return Bar(name, side["min_ms"], f"{side['min_ms']:.1f} / {side['median_ms']:.1f} ms{share}{misses}", cells, name == "rlx")


def model_chart(row):
    sides = row["sides"]
    ratio = row.get("ratio_to_best")
    title = row["case"] + (f": {ratio['min_ms']:.2f} (min), {ratio['median_ms']:.2f} (median) of the best peer's time" if ratio else "")
    notes = [f"{name}: not available: {reason}." for name, reason in row["missing"].items()]
    notes += [f"{name} misses {side['misses']}." for name, side in sides.items() if "misses" in side]
    some = next(iter(sides.values()), {})
    columns = ["side", *(title for key, title, _ in MODEL_COLUMNS if key in some)]
    return Chart(title, columns, [side_bar(name, side) for name, side in sides.items()], note=" ".join(notes))


def open_chart(compiled):
    bars = [Bar(name, about["open_s"], f"{1e3 * about['open_s']:.0f} ms, {about['compiled']} kernels compiled, {about['from_disk']} from disk",
                [f"{1e3 * about['open_s']:.0f}", about["compiled"], about["from_disk"], about["compiled_for_new_lengths"]]) for name, about in compiled.items()]
    return Chart("Opening it, without a run", ["cache", "ms", "kernels compiled", "from disk", "compiled for other lengths"], bars)


def model(title):
    def section(data):
        note = (f"Minimum and median, {data['threads']} threads, all sides in turn in one run. First result: from the model file to the first result, without "
                "the start of the process and the import of a library.")
        if "no_claims_min_ms" in data:
            note += f" By generated kernels alone the first case takes {data['no_claims_min_ms']:.0f} ms."
        charts = [model_chart(row) for row in data["rows"]]
        return Section(title, note, data["command"], charts + ([open_chart(data["compile"])] if "compile" in data else []))
    return section


def training(data):
    return Section("Training steps", f"Minimum and median, {data['threads']} threads, all sides in turn in one run; the losses of the first steps are compared first. Peak: "
                   "the most memory that a side held, weights as they were read included.", data["command"], [model_chart(row) for row in data["rows"]])


def in_turn(title, note, more=()):
    """Cases of one operation each, and columns of (name, text of a row)."""
    def section(data):
        rows = []
        for row in data["rows"]:
            ratio, median, peer = bars.to_best(row)
            rows.append(Bar(bars.case_name(row), ratio, f"{ratio:.2f} of {peer}'s time", [both(*row["seconds"]["rlx"]), f"{both(*row['seconds'][peer])} ({peer})",
                                                                                          f"{ratio:.2f}", f"{median:.2f}", *(text(row) for _, text in more)], ratio <= 1))
        return Section(title, f"{note} Minimum and median, {data['threads']} threads, all sides in turn in one run: our time over that of the fastest peer; the line is where both are as fast.",
                       data["command"], [Chart("", ["case", "rlx, us", "best peer, us", "ratio", "median ratio", *(name for name, _ in more)], rows, 1)])
    return section


def shape_text(shape):
    return ", ".join(f"{key} {value}" for key, value in shape.items())


def llama_tokens(data):
    bar = Bar(shape_text(data["shape"]), data["same_tokens"], f"{data['same_tokens']} of {data['steps']} tokens are the same",
              [data["steps"], data["same_tokens"], data["distinct_tokens"], f"{data['largest_difference']:.1e}", f"{data['deviation']:.2f}", f"{data['smallest_lead']:.1e}"])
    note = (f"Greedy steps in F32 beside llama-cpp-python {data['llama_cpp_python']}, with all other sizes of the 1.1B shape: how many tokens are the same, how many differ from each other, "
            "the largest difference of a logit, the deviation of the logits, and the least that the most likely token is ahead.")
    return Section("Greedy tokens beside llama.cpp", note, data["command"],
                   [Chart("", ["model", "steps", "the same", "distinct", "largest difference", "deviation", "least lead"], [bar], data["steps"])])


def llama_perplexity(data):
    rows = [row for row in data["rows"] if "missing" not in row]
    bars = [Bar(row["type"], abs(row["difference"]), f"{100 * row['difference']:+.3f}%",
                [f"{row['rlx']:.2f}", f"{row['llama_cpp']:.2f}", *(f"{100 * row[key]:+.3f}%" for key in ("difference", "to_decoded", "llama_cpp_to_decoded"))])
            for row in rows]
    missing = "".join(f" {row['type']}: {row['missing']}." for row in data["rows"] if "missing" in row)
    note = (f"{data['windows']} windows of {data['window']} tokens, random weights and words ({shape_text(data['shape'])}), all matrices in one type but where several are named, llama-cpp-python {data['llama_cpp_python']}; "
            f"the line is 0.5%. Exact is the same weights decoded to F32: what is left is what rounding the activations costs.{missing}")
    return Section("Perplexity beside llama.cpp", note, data["command"], [Chart("", ["type", "rlx", "llama.cpp", "difference", "rlx to exact", "llama.cpp to exact"], bars, 0.005)])


def llama_families(data):
    tokens = lambda row: f"{row['same_tokens']} of {row['tokens']}" if "tokens" in row else "-"
    bars = [Bar(f"{row['family']}, {row['source']}", row["difference"] / row["bound"], f"{row['difference']:.1e}, allowed {row['bound']:.0e}",
                [row["architecture"], row["measure"], tokens(row), f"{row['difference']:.1e}", f"{row['bound']:.0e}", "; ".join(filter(None, (row["lacks"], row["why"]))) or "-"])
            if "difference" in row else Bar(f"{row['family']}, {row['source']}", None, row["refused"], ["-", "-", "-", "-", "-", row["refused"]]) for row in data["rows"]]
    note = (f"What llama-cpp-python {data['llama_cpp_python']} computes in F32 from the fixtures' GGUF files and from those that `rlx convert` writes, beside what transformers computed of the same weights, or where "
            "a part was taken out, rlx: greedy tokens, and the largest difference of an output as a share of the largest output. The last column says what llama.cpp lacks or computes otherwise; the line is the bound.")
    return Section("Families of models beside llama.cpp", note, data["command"], [Chart("", ["model, file", "architecture", "beside", "same tokens", "difference", "allowed", "of llama.cpp"], bars, 1)])


def rate_cells(row, name):
    side = row["sides"][name]
    return f"{side['max_tokens_per_s']:.1f} / {side['median_tokens_per_s']:.1f}"


def ratio_text(row):
    return f"{row['times_faster']['max_tokens_per_s']:.2f} / {row['times_faster']['median_tokens_per_s']:.2f}"


def share_text(row, name):
    return ", ".join(f"{100 * share:.0f}% of {limit}" for limit, share in row["sides"][name].get("shares", {}).items()) or "-"


def llama_rates(title, column, text):
    """Tokens per second of both sides, and one more column."""
    def section(data):
        bars = [Bar(row["case"], row["times_faster"]["median_tokens_per_s"], f"{ratio_text(row)} times faster",
                    [rate_cells(row, "rlx"), rate_cells(row, "llama.cpp"), ratio_text(row), *text(row)]) for row in data["rows"]]
        note = (f"Tokens per second, best and median, in turn in one run, {data['threads']} threads, llama-cpp-python {data['llama_cpp_python']}; {column[1]}; the line is where both are as fast.")
        return Section(title, note, data["command"], [Chart("", ["case", "rlx", "llama.cpp", "times faster", *column[0]], bars, 1)])
    return section


def growth_cells(row):
    return [f"{row['times_slower'][name]:.2f}" if "times_slower" in row else "-" for name in row["sides"]]


llama_speed = llama_rates("A 1.1B Llama beside llama.cpp", (["of rlx", "of llama.cpp"], "shares are of what the machine reached in the same rounds, medians: peaks of multiply-adds, "
                          "or reading memory, over the bytes of the weights"), lambda row: [share_text(row, "rlx"), share_text(row, "llama.cpp")])
llama_depth = llama_rates("The same behind long prompts", (["rlx", "llama.cpp"], "and the time per token as a multiple of that behind the short prompt"), growth_cells)


def llama_quantize(data):
    bars = [Bar(name, side["min_s"], f"{side['min_s']:.1f} / {side['median_s']:.1f} s", [f"{side['min_s']:.2f}", f"{side['median_s']:.2f}", side["bytes"]], name == "rlx")
            for name, side in data["sides"].items()]
    note = (f"F16 to Q4_K_M, {data['source_bytes'] / 1e9:.2f} GB ({data['layers']} layers of the 1.1B shape), in turn, {data['threads']} threads, llama-cpp-python {data['llama_cpp_python']}: "
            f"{data['times_faster']['min_s']:.2f} (min), {data['times_faster']['median_s']:.2f} (median) times as fast. Ours is the whole command.")
    return Section("Quantizing beside llama.cpp", note, data["command"], [Chart("", ["side", "min, s", "median, s", "bytes written"], bars)])


def llama_limits(data):
    def pair(value):
        return f"{value['median']:.2f} / {value['best']:.2f}"
    bars = [Bar(row["case"], row["ratio"]["median"], f"{pair(row['ratio'])} of {row['of']}",
                [f"{pair(row['result'])} {row['unit']}", f"{pair(row['one'])}" if "one" in row else "-", pair(row["ratio"]), row["of"],
                 f"{'at least' if row['at_least'] else 'at most'} {row['bar']}"]) for row in data["rows"]]
    return Section("A 1.1B Llama by itself", f"{data['layers']} layers, {data['threads']} threads, Q4_0 where no other type is named; median and best of rounds in which both sides of a ratio were measured in turn.", data["command"],
                   [Chart("", ["case", "result", "what it is beside", "ratio", "of", "asked for"], bars)])


def tokenize(data):
    bars = [Bar(row["kind"], row["ratio"], f"{row['ratio']:.2f} times faster", [f"{row['rlx_mb_per_s']:.1f}", f"{row['tokenizers_mb_per_s']:.1f}", f"{row['ratio']:.2f}"]) for row in data["results"]]
    return Section("Tokenizing beside tokenizers", f"{data['results'][0]['bytes'] / 1e6:.1f} MB of text, one thread each, the ids compared first, tokenizers {data['tokenizers']}; the line is 3 times.",
                   data["command"], [Chart("", ["tokenizer", "rlx, MB/s", "tokenizers, MB/s", "times faster"], bars, 3)])


TYPED = {"gemm_model": "Products of MiniLM", "gemm_large": "Products, 512 and more", "gemm_small": "Products, 1 to 256",
         "gemm_memory": "Products with weights from memory", "attention": "Attention", "conv": "Convolutions of ResNet-50"}
# Files of cases of one operation each.
LIBRARY = in_turn("Fourier transforms, factorisations, sorts, scatters and running sums", "Beside PyTorch, SciPy and NumPy.")
RECURRENT = in_turn("Recurrent networks", "A training step by x and all weights beside PyTorch, losses and gradients compared.")
SUMS = in_turn("Sums", "Beside PyTorch and NumPy over the same numbers; errors are the largest relative ones, of the peers the least of those.",
               [("error", lambda row: f"{row['errors']['rlx'][0]:.1e}"), ("peers' error", lambda row: f"{bars.least_error(row):.1e}")])
OPERATIONS = {f"{name}_{kind}": f"{title}, {kind}" for name, title in TYPED.items() for kind in ("f32", "bf16", "f16", "int8")} | {"rows": "Row and elementwise programs"}

# The files of a folder of results in the order of the page; those that are not there are left out.
SECTIONS = {"peaks": peaks, "bert_base": model("BERT-base"), "minilm": model("MiniLM"), "vision": model("Image models"), "training": training, "recurrent": RECURRENT, "library": LIBRARY, "sums": SUMS, "llama_speed": llama_speed,
            "llama_depth": llama_depth, "llama_tokens": llama_tokens, "llama_perplexity": llama_perplexity, "llama_families": llama_families, "llama_quantize": llama_quantize, "llama_limits": llama_limits, "tokenize": tokenize, "claims": claims(), **{f"claims_{level}": claims(level) for level in ("avx512", "avx2", "neon", "portable")},
            "pack": shares("Packing weights"), "compile": compile_times, "compile_families": compile_families, "python": python, "busy": busy}
for name, title in OPERATIONS.items():
    SECTIONS |= {name: shares(title), f"{name}_peers": beside_torch(f"{title}, beside torch")}


def section_of(path):
    try:
        return SECTIONS[path.stem](read(path))
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise SystemExit(f"{path}: {error}: it is incomplete, or of another version; measure it again (make bench)")


def bar_section(files):
    rows = [Bar(cells[0], None if met is None else float(met), cells[2], cells[1:], bool(met)) for _, cells, met in bars.lines(files)]
    met, measured = sum(row.ours for row in rows), sum(row.value is not None for row in rows)
    return Section("What is aimed at, and what is reached", f"{met} of {measured} bars are met, by the fastest runs; medians are in brackets. What the last column names measures a line "
                   "again. Ratios are of our time to the best peer's in the same run.", "python3 bench/report.py", [Chart("", bars.COLUMNS, rows)])


def paths_of(folder):
    """Of the files that are there. Ends where there is none."""
    paths = [path for path in (folder / f"{name}.json" for name in SECTIONS) if path.exists()]
    if not paths:
        raise SystemExit(f"{folder}: no results (make bench writes them)")
    return paths


def contents_of(folder):
    return {path.stem: json.loads(path.read_text()) for path in paths_of(folder)}


def sections(folder):
    """Of all files that are there, by their names. Ends where a file is not as this version writes it."""
    return {path.stem: section_of(path) for path in paths_of(folder)}
