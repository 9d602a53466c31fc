"""The bars that this project sets itself on the CPU, and what a folder of results says of each: the table of bars beside them.

With AMX (tiles) and without the bars differ, as the machines do. A comparison is judged by the fastest runs; medians stand in brackets.
"""
import statistics

NOT_MEASURED = ("not measured", "", "", None)


def percent(share):
    return f"{100 * share:.0f}%"


def spread(shares):
    return f"{percent(min(shares))} to {percent(max(shares))}, mean {percent(statistics.mean(shares))}"


def ahead(rows):
    """Of the cases of bench/op_peers.py: how many are ahead, the ratios to torch, and whether all are."""
    ratios = [row["ratio"] for row in rows if row.get("measurable")]
    count = sum(ratio <= 1 for ratio in ratios)
    return f"{count} of {len(ratios)} ahead", f"torch: ratios {min(ratios):.2f} to {max(ratios):.2f}", count == len(ratios)


def large_products(kind):
    def reached(files, bar):
        shares = [case["share"] for case in files[f"gemm_large_{kind}"]["cases"]]
        good = sum(share >= bar for share in shares)
        beside = ahead(files[f"gemm_large_{kind}_peers"]["rows"])
        return f"{spread(shares)}; {good} of {len(shares)} reach it", f"{beside[0]} of torch", "as reached", good == len(shares)
    return reached


def small_products(kind):
    def reached(files, _):
        text, peer, all_ahead = ahead(files[f"gemm_small_{kind}_peers"]["rows"])
        return text, peer, spread([case["share"] for case in files[f"gemm_small_{kind}"]["cases"]]), all_ahead
    return reached


def few_rows(kind):
    def reached(files, bar):
        cases = files[f"gemm_memory_{kind}"]["cases"]
        good = sum(case["share"] >= bar for case in cases)
        slow = [f"{case['name'].split(',')[0]}: {percent(case['share'])} of {case['bound']}" for case in cases if case["share"] < bar]
        return f"{good} of {len(cases)} reach it" + (f"; {', '.join(slow)}" if slow else ""), ahead(files[f"gemm_memory_{kind}_peers"]["rows"])[1], \
            spread([case["share"] for case in cases]), good == len(cases)
    return reached


def model(name, title):
    """A row of a comparison of models; None where it was not measured."""
    def row_of(files):
        return next((row for row in files[name]["rows"] if row["case"] == title), None)
    return row_of


def beside_best(name, *titles):
    def reached(files, bar):
        rows = [model(name, title)(files) for title in titles]
        ratios = [row["ratio_to_best"] for row in rows]
        ours, best = [row["sides"]["rlx"] for row in rows], [min((side["min_ms"], peer) for peer, side in row["sides"].items() if peer != "rlx") for row in rows]
        return (", ".join(f"{ratio['min_ms']:.2f} ({ratio['median_ms']:.2f})" for ratio in ratios),
                ", ".join(f"{side['min_ms']:.1f} ms beside {peer} {ms:.1f}" for side, (ms, peer) in zip(ours, best)),
                ", ".join(percent(side["share_of_peak"]) if side.get("share_of_peak") else "-" for side in ours),
                all(round(ratio["min_ms"], 2) <= bar for ratio in ratios))
    return reached


def bert(precision):
    return beside_best("bert_base", *(f"batch {batch}, 128 tokens, {precision}" for batch in (1, 8)))


def training_memory(files, bar):
    row = model("training", "gpt2, f32")(files)
    return f"{row['ratio_to_best']['peak_bytes']:.2f}", f"{row['sides']['rlx']['peak_bytes'] / 1e9:.1f} GB", "", row["ratio_to_best"]["peak_bytes"] <= bar


def minilm(precision):
    """Sentences a second over those of ONNX Runtime in f32, which has batches by length."""
    def side(files, kind, way, name):
        return model("minilm", f"batch 32, mixed lengths to 128, {kind}, {way}")(files)["sides"][name]

    def reached(files, bar):
        ours, at_once = (side(files, precision, way, "rlx") for way in ("as batches by length", "one padded batch"))
        theirs, their_padded = (side(files, "f32", way, "onnxruntime") for way in ("as batches by length", "one padded batch"))
        ratio = theirs["min_ms"] / ours["min_ms"]
        text = (f"{ratio:.2f} ({theirs['median_ms'] / ours['median_ms']:.2f}) times theirs in batches by length; "
                f"{their_padded['min_ms'] / at_once['min_ms']:.2f} theirs in one padded batch, ours in one run")
        return text, f"{ours['min_ms']:.0f} ms beside onnxruntime {theirs['min_ms']:.0f}", percent(ours["share_of_peak"]), ratio >= bar
    return reached


def attention(kind):
    def reached(files, bar):
        cases = [case for case in files[f"attention_{kind}"]["cases"] if case["about"]["length"] == 2048]
        text, peer, all_ahead = ahead(files[f"attention_{kind}_peers"]["rows"])
        return f"{text}; {' and '.join(percent(case['share']) for case in cases)} at 2048 (all keys and causal)", peer, \
            spread([case["share"] for case in files[f"attention_{kind}"]["cases"]]), all_ahead and all(case["share"] >= bar for case in cases)
    return reached


def rows(files, bar):
    shares = {case["name"].split()[0]: case["share"] for case in files["rows"]["cases"]}
    return ", ".join(f"{name} {percent(share)}" for name, share in shares.items()), ahead(files["rows_peers"]["rows"])[1], "as reached", min(shares.values()) >= bar


def compiling(files, _):
    data = files["compile"]
    cold, disk, new = data["empty"]["seconds"], data["disk"]["seconds"], data["compiled_for_new_lengths"]
    return f"{cold:.2f} s / {disk:.3f} s / {new} kernels", "", "", cold < 1 and disk < 0.1 and new == 0


def compiling_families(files, bar):
    """The most of any family at its largest size; linear where its nodes do not take longer than those of the size before, but for noise."""
    def per_node(one):
        return 1e3 * one["seconds"] / one["nodes"]
    last = [family["sizes"][-2:] for family in files["compile_families"]["families"]]
    most = max(per_node(large) for _, large in last)
    growth = max(per_node(large) / per_node(small) for small, large in last if large["nodes"] > small["nodes"])
    return f"at most {most:.2f} ms, and {growth:.2f} times that of the next smaller graph", "", "", most <= bar and growth <= 1.25


def python(files, _):
    rows = files["python"]["rows"]
    met = sum(row["met"] for row in rows)
    return f"{met} of {len(rows)}", "", "", met == len(rows)


def case_name(row):
    """A case of bench/library_peers.py, recurrent_peers.py or sums_peers.py."""
    if "case" in row:
        kind, layers, size, batch, steps = row["case"]
        return f"{kind}, {layers} x {size}, batch {batch}, {steps} steps"
    axes = f" over {', '.join(map(str, row['axes']))}" if "axes" in row else ""
    return f"{row['op']}{axes}, {' x '.join(map(str, row['shape']))}, {row['type']}"


def to_best(row):
    """Our time over that of the fastest peer, by minimum and by median, and which is the fastest."""
    peers = {name: times for name, times in row["seconds"].items() if name != "rlx"}
    fastest, median = (ours / min(times[i] for times in peers.values()) for i, ours in enumerate(row["seconds"]["rlx"]))
    return fastest, median, min(peers, key=peers.get)


def in_turn(name, *begins):
    """Of cases whose names begin so: how many reach it, and which do not."""
    def reached(files, bar):
        found = {case_name(row): to_best(row) for row in files[name]["rows"] if case_name(row).startswith(begins)}
        slow = [f"{case}: {ratio:.2f}" for case, (ratio, _, _) in found.items() if ratio > bar]
        ratios, medians = zip(*((ratio, median) for ratio, median, _ in found.values()))
        return (f"{len(found) - len(slow)} of {len(found)} reach it" + (f"; {', '.join(slow)}" if slow else ""),
                f"ratios {min(ratios):.2f} to {max(ratios):.2f} (medians to {max(medians):.2f})", "", not slow)
    return reached


def least_error(row):
    """Of the peers, whose largest relative errors these are."""
    return min(error[0] for name, error in row["errors"].items() if name != "rlx")


def sums(files, bar):
    cases = files["sums"]["rows"]
    wrong = [case_name(row) for row in cases if row["errors"]["rlx"][0] > bar * least_error(row)]
    return (f"{len(cases) - len(wrong)} of {len(cases)} reach it" + (f"; not {', not '.join(wrong)}" if wrong else ""),
            f"errors {max(row['errors']['rlx'][0] for row in cases):.1e} at most, peers' {max(map(least_error, cases)):.1e}", "", not wrong)


def busy(files, bar):
    ratios = [case["ratio"] for case in files["busy"]["cases"]]
    return " and ".join(map(percent, ratios)), "", "", min(ratios) >= bar


def parallel_loop(files, bar):
    seconds = files["peaks"]["peaks"][-1]["parallel_loop_s"]["at once"]
    return f"{seconds * 1e6:.2f} us", "", "", seconds <= bar


def claims(files, bar):
    cases = [case for name, file in files.items() if name.startswith("claims") for case in file["cases"]]  # at every level
    least = min(cases, key=lambda case: case["times_faster"])
    return f"{least['times_faster']:.2f} times at least ({least['name']})", "", "", least["times_faster"] >= bar


def llama(work, kind):
    """Tokens a second over those of llama.cpp; the share is a median's."""
    def reached(files, bar):
        row = next(row for row in files["llama_speed"]["rows"] if row["case"] == f"{kind}, {work}")
        ours, theirs = row["sides"]["rlx"], row["sides"]["llama.cpp"]
        best, median = (row["times_faster"][f"{each}_tokens_per_s"] for each in ("max", "median"))
        share = ours["shares"].get("reading")
        limit = f"{percent(share)} of reading" if share else ", ".join(f"{percent(of)} of the {name}" for name, of in ours["shares"].items())
        enough = share >= READING if share else bar < AMX_PROMPT or ours["shares"]["bf16 peak"] >= AMX_PROMPT_PEAK
        return f"{best:.2f} ({median:.2f}) times", f"{ours['max_tokens_per_s']:.0f} tokens/s beside {theirs['max_tokens_per_s']:.0f}", limit, best >= bar and enough
    return reached


def own_limit(task):
    """Of bench/llama_limits.py: judged by the best round."""
    def reached(files, bar):
        rows = [row for row in files["llama_limits"]["rows"] if row["task"] == task]
        met = [row["ratio"]["best"] >= bar if row["at_least"] else row["ratio"]["best"] <= bar for row in rows]
        return (", ".join(f"{row['ratio']['best']:.2f} ({row['ratio']['median']:.2f})" for row in rows), "",
                ", ".join(f"{row['result']['best']:.4g} {row['unit']}" for row in rows), all(met) if rows else None)
    return reached


def same_tokens(files, bar):
    found = files["llama_tokens"]
    return f"{found['same_tokens']} of {found['steps']}, logits within {found['largest_difference']:.1e}", "", "", found["same_tokens"] >= bar


def perplexities(files, bar):
    found = [abs(row["difference"]) for row in files["llama_perplexity"]["rows"] if "difference" in row]
    return f"{max(found):.2%} at most, {len(found)} types", "", "", max(found) <= bar


def families(files, _):
    found = files["llama_families"]["rows"]
    passed = sum(row.get("passed", False) for row in found)
    return f"{passed} of {len(found)} files", "", "", passed == len(found)


def tokenizing(files, bar):
    found = [row["ratio"] for row in files["tokenize"]["results"]]
    return f"{min(found):.1f} to {max(found):.1f} times", "", "", min(found) >= bar


def quantizing(files, bar):
    found = files["llama_quantize"]
    ratio, sides = found["times_faster"], found["sides"]
    return f"{ratio['min_s']:.2f} ({ratio['median_s']:.2f}) times", f"{sides['rlx']['min_s']:.1f} s beside {sides['llama.cpp']['min_s']:.1f}", "", ratio["min_s"] >= bar


READING, AMX_PROMPT, AMX_PROMPT_PEAK = 0.85, 5, 0.35

# Work; how a bar is written; bars with AMX and without; what the files say; what scripts/bench.sh calls them.
BARS = [
    *((f"products of 512 and more, {kind}", "at least {:.0%} of the peak", *bars, large_products(kind), f"gemm_large_{kind}")
      for kind, *bars in (("f32", 0.9, 0.93), ("bf16", 0.75, 0.9), ("int8", 0.75, 0.85))),
    *((f"products of 1 to 256, ragged, {kind}", "ahead of torch's oneDNN on every shape", 1, 1, small_products(kind), f"gemm_small_{kind}") for kind in ("f32", "bf16", "int8")),
    *((f"1 to 8 rows, weights from memory, {kind}", "at least {:.0%} of reading memory", 0.9, 0.9, few_rows(kind), f"gemm_memory_{kind}") for kind in ("f32", "bf16", "int8")),
    *((f"BERT-base, 128 tokens, batch 1 and 8, {kind}", "at most {} of the best peer's time", *bars, bert(kind), "bert_base")
      for kind, *bars in (("f32", 0.75, 0.85), ("bf16", 0.35, 0.95), ("int8", 0.6, 0.8))),
    *((f"MiniLM, 32 texts of mixed lengths, {kind}", "at least {} times ONNX Runtime's sentences", *bars, minilm(kind), "minilm") for kind, *bars in (("f32", 1.5, 1.4), ("bf16", 5, 2.2))),
    *((f"attention, 12 heads x 64, 128 to 4096, {kind}", "ahead of torch on every line, at least {:.0%} of the peak at 2048", 0.6, 0.75, attention(kind), f"attention_{kind}")
      for kind in ("f32", "bf16")),
    ("ResNet-50, batch 1 and 8, f32", "ahead of ONNX Runtime and OpenVINO", 1, 1, beside_best("vision", "resnet50, batch 1, f32", "resnet50, batch 8, f32"), "vision"),
    ("ViT-B/16, batch 1 and 8, f32", "ahead of ONNX Runtime and OpenVINO", 1, 1, beside_best("vision", "vit_b16, batch 1, f32", "vit_b16, batch 8, f32"), "vision"),
    *((f"GPT-2 124M, a step with AdamW, 4 x 64 tokens, {kind}", "at most {} of PyTorch's best time", bar, bar, beside_best("training", f"gpt2, {kind}"), "training")
      for kind, bar in (("f32", 0.8), ("bf16", 0.75))),
    ("the same, the most memory held, f32", "at most {} of PyTorch's", 1, 1, training_memory, "training"),
    ("a step of a small network of convolutions, f32", "ahead of PyTorch's best", 1, 1, beside_best("training", "convnet, f32"), "training"),
    ("an LSTM of 2 x 512, batch 16, 128 steps, forward and backward", "ahead of PyTorch", 1, 1, in_turn("recurrent", "lstm, 2 x 512,"), "recurrent"),
    ("sums of 1e4, 1e6 and 1e8 elements, all layouts", "errors at most PyTorch's and NumPy's", 1, 1, sums, "sums"),
    ("an embedding's gradient: 50000 rows of 768 added into 30000", "at most {} of PyTorch's time", 1, 1, in_turn("library", "scatter_add,"), "library"),
    ("sort, argsort, top_k, cumsum", "ahead of PyTorch and NumPy", 1, 1, in_turn("library", "sort,", "argsort,", "top_k,", "cumsum"), "library"),
    ("fft and rfft of 2^20, 1e6, a prime, 64 x 4096, 512 x 512", "at most {} of PyTorch's and SciPy's best time", 1, 1, in_turn("library", "fft", "rfft,"), "library"),
    ("lu, cholesky, triangular_solve of 1024 and 256 x 32 x 32", "at most {} of PyTorch's time", 1.1, 1.1, in_turn("library", "lu,", "cholesky,", "triangular_solve,"), "library"),
    ("softmax, norm, GELU, residual + norm, 4096 x 4096", "at least {:.0%} of copying memory", 0.85, 0.85, rows, "rows"),
    ("compiling a decoder of 24 layers", "below 1 s cold, 0.1 s from disk, nothing for a new length", None, None, compiling, "compile"),
    ("compiling twelve families of graphs, values read at many places", "linear in nodes, at most {} ms a node", 2, 2, compiling_families, "compile_families"),
    ("work through Python", "every bar of its table", None, None, python, "python"),
    ("a process that spins on one core", "at least {:.0%} of the quiet throughput", 0.45, 0.45, busy, "busy"),
    ("the start of a parallel loop", "at most 2 us", 2e-6, 2e-6, parallel_loop, "peaks"),
    ("every hand-written kernel", "at least {} times as fast as the generated one", 1.1, 1.1, claims, "claims"),
    *((f"1.1B, a prompt of 512, {kind}", "at least {} times llama.cpp's rate", AMX_PROMPT, 2, llama("a prompt of 512", kind), "llama_speed") for kind in ("Q4_0", "Q4_K_M", "Q8_0", "BF16")),
    *((f"1.1B, single tokens, {kind}", f"at least {{}} times llama.cpp's rate, and {READING:.0%} of reading", 1.25, bar, llama("one by one, 128", kind), "llama_speed")
      for kind, bar in (("Q4_0", 1.5), ("Q4_K_M", 1.5), ("Q8_0", 1.25))),
    ("1.1B, eight sequences together, Q4_0", "at least {} times the rate of one", 4, 4, own_limit("sequences"), "llama_limits"),
    ("1.1B, a prompt of 8192, Q4_0", "at most {} times the time per token of 512", 1.6, 1.6, own_limit("long"), "llama_limits"),
    ("8 experts, 2 chosen, single tokens, Q4_0", "at least {:.0%} of reading what a token reads", 0.85, 0.85, own_limit("mixture"), "llama_limits"),
    ("1.1B, from the start of the process to the first token", "at most {} s", 0.5, 0.5, own_limit("start"), "llama_limits"),
    ("1.1B, the most memory held, Q4_0, Q4_K_M, Q8_0, BF16", "at most {} of the file, keys and values", 1.05, 1.05, own_limit("memory"), "llama_limits"),
    ("1.1B in F32, greedy tokens beside llama.cpp", "{} the same", 200, 200, same_tokens, "llama_tokens"),
    ("perplexity beside llama.cpp", "within {:.1%} for every type", 0.005, 0.005, perplexities, "llama_perplexity"),
    ("GGUF files of every family, read by llama.cpp", "the recorded tokens and outputs", None, None, families, "llama_families"),
    ("tokenizing 10 MB", "at least {} times Hugging Face's tokenizers", 3, 3, tokenizing, "tokenize"),
    ("F16 to Q4_K_M", "at least {} times llama.cpp's speed", 1.5, 1.5, quantizing, "llama_quantize"),
]

COLUMNS = ["work", "bar", "reached", "best peer in the same run", "share of the limit", "met", "scripts/bench.sh build/release"]


def lines(files):
    """For each bar the name of its file, its cells and whether it is met, None where its files are not there: files is a mapping from names to what
    is in them."""
    tiles = any("tile" in name for name in files["peaks"]["peaks"][-1]["operations_per_s"]) if "peaks" in files else False
    for work, text, with_amx, without, reached, name in BARS:
        bar = with_amx if tiles else without
        try:
            figures, peer, share, met = reached(files, bar)
        except (KeyError, TypeError, ValueError):  # a file, or a line of one, that this machine has no results of
            figures, peer, share, met = NOT_MEASURED
        yield name, [work, text.format(bar), figures, peer, share, "-" if met is None else "yes" if met else "**no**", f"`{name}`"], met
