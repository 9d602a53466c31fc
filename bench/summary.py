"""What a folder of results says at a glance: the bars by area, our time beside the fastest peer's, and the shares of the limits."""
import statistics

import bars
import figures

# Of each area: its title, the page in bench/results that says what binds there, and how the names of its files begin.
AREAS = [("Matrix products", "products", ("gemm",)), ("Attention", "attention", ("attention",)), ("Encoders of texts", "encoders", ("bert_base", "minilm")),
         ("Image models", "images", ("vision", "conv")), ("Training", "training", ("training", "recurrent")), ("Other operations", "operations", ("rows", "sums", "library")),
         ("Language models", "language_models", ("llama", "tokenize")), ("Compiling, threads, kernels", "engine", ("compile", "python", "busy", "peaks", "claims", "pack"))]


def area_of(name):
    return next(page for _, page, begins in AREAS if name.startswith(begins))


def areas(files):
    """For each area: its title, its page, how many bars are met, how many were measured, and the cells of the missed ones."""
    lines = list(bars.lines(files))
    for title, page, begins in AREAS:
        measured = [(cells, met) for name, cells, met in lines if name.startswith(begins) and met is not None]
        yield title, page, sum(met for _, met in measured), len(measured), [cells for cells, met in measured if not met]


def means(pairs):
    """Of pairs of a label and a ratio: the geometric mean of each label's."""
    of_label = {}
    for label, ratio in pairs:
        of_label.setdefault(label, []).append(ratio)
    return {label: statistics.geometric_mean(ratios) for label, ratios in of_label.items()}


MODELS = {"bert_base": "BERT-base", "minilm": "MiniLM", "vision": None, "training": None}


def model_rows(name, data):
    """Pairs of a label (of all batches of one model and type) and a row."""
    for row in data["rows"]:
        first, *_, last = row["case"].removesuffix(", as batches by length").split(", ")
        if last != "one padded batch":
            yield f"{MODELS[name] or first}, {last}", row


def times_beside_peers(files):
    """Pairs of a label and our time over that of the fastest peer, by minima."""
    for name, data in files.items():
        if name.endswith("_peers"):
            yield from ((figures.OPERATIONS[name.removesuffix("_peers")], row["ratio"]) for row in data["rows"] if row["measurable"])
        elif name in MODELS:
            yield from ((label, row["ratio_to_best"]["min_ms"]) for label, row in model_rows(name, data) if "ratio_to_best" in row)
        elif name in ("library", "recurrent", "sums"):
            yield from ((row["op"] if "op" in row else row["case"][0], bars.to_best(row)[0]) for row in data["rows"])
        elif name == "llama_speed":
            yield from ((f"1.1B Llama, {row['case']}", 1 / row["times_faster"]["max_tokens_per_s"]) for row in data["rows"])
        elif name == "llama_quantize":
            yield "F16 to Q4_K_M", 1 / data["times_faster"]["min_s"]
        elif name == "tokenize":
            yield from (("tokenizing", 1 / row["ratio"]) for row in data["results"])


def shares_of_limits(files):
    """Pairs of a label and a share of the limit that binds."""
    for name, data in files.items():
        if name in MODELS:
            yield from ((label, row["sides"]["rlx"]["share_of_peak"]) for label, row in model_rows(name, data) if row["sides"]["rlx"].get("share_of_peak"))
        elif name == "llama_speed":
            yield from ((f"1.1B Llama, {row['case']}", share_of_llama(row)) for row in data["rows"])
        elif name in figures.OPERATIONS and not name.startswith("gemm_model") and not name.endswith("_f16"):  # products of a model listed above; weights alone
            yield from ((figures.OPERATIONS[name], case["share"]) for case in data["cases"])


def share_of_llama(row):
    """Of reading the weights, or of the multiply-adds that the type is computed by."""
    shares = row["sides"]["rlx"]["shares"]
    return shares["reading" if "reading" in shares else "bf16 peak" if row["case"].startswith("BF16") else "int8 peak"]


def beside_peers(files):
    return figures.Chart("", ["work", "our time over the fastest peer's"],
                         [figures.Bar(label, ratio, f"{ratio:.2f}", [f"{ratio:.2f}"], ratio <= 1) for label, ratio in means(times_beside_peers(files)).items()], 1)


def beside_limits(files):
    return figures.Chart("", ["work", "share of the limit"],
                         [figures.Bar(label, share, bars.percent(share), [bars.percent(share)]) for label, share in means(shares_of_limits(files)).items()], 1)
