"""Makes one HTML page with charts of what `make bench` measured: time, share of the machine's limits, compile time. It needs no network.

usage: report.py bench/results/MACHINE --out build/bench.html
"""
import argparse
import html
import json
import pathlib

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem } p { margin: .3rem 0; color: #555 }
svg { display: block; width: 100%; height: auto; font-size: 12px } svg text { fill: #222 } .quiet { fill: #777 }
.rlx { fill: #2563a8 } .peer { fill: #b9c4d0 } .line { stroke: #d33; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #ddd } p { color: #aaa } svg text { fill: #ddd } .peer { fill: #55606b } }
"""
LABEL, WIDTH, ROW = 300, 900, 20  # pixels: the place of labels, all, one bar


def bars(items, limit=None):
    """A chart of horizontal bars: items are (label, value, text beside the bar, class). limit: a value at which a line is drawn."""
    largest = max([value for _, value, _, _ in items] + ([limit] if limit else []), default=0) or 1
    scale = (WIDTH - LABEL - 190) / largest
    height = ROW * len(items)
    lines = [f'<svg viewBox="0 0 {WIDTH} {height + 4}" role="img">']
    for i, (label, value, text, kind) in enumerate(items):
        y, width = i * ROW, max(1, value * scale)
        lines.append(f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end">{html.escape(label)}</text>'
                     f'<rect class="{kind}" x="{LABEL}" y="{y + 4}" width="{width:.1f}" height="{ROW - 6}" rx="2"/>'
                     f'<text class="quiet" x="{LABEL + width + 6:.1f}" y="{y + 15}">{html.escape(text)}</text>')
    if limit:
        x = LABEL + limit * scale
        lines.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}"/>')
    return "\n".join([*lines, "</svg>"])


def section(title, note, *charts):
    return f"<h2>{html.escape(title)}</h2>\n<p>{html.escape(note)}</p>\n" + "\n".join(charts)


def peaks(data):
    row = data["peaks"][-1]
    rates = [(name, rate / 1e9, f"{rate / 1e9:.0f} G operations/s", "rlx") for name, rate in row["operations_per_s"].items()]
    moved = [(f"{place}, {how}", rate / 1e9, f"{rate / 1e9:.0f} GB/s", "rlx") for how, places in row["bytes_per_s"].items() for place, rate in places.items()]
    loops = [(f"parallel loop {name}", seconds * 1e6, f"{seconds * 1e6:.2f} us", "rlx") for name, seconds in row["parallel_loop_s"].items()]
    return section("Limits of this machine", f"With {row['threads']} threads. A copy counts what is read and what is written.", bars(rates), bars(moved), bars(loops))


def shares(title):
    def chart(data):
        items = [(case["name"], 100 * case["share"], f"{100 * case['share']:.0f}% of {case['bound']}, {case['seconds'] * 1e6:.1f} us", "rlx") for case in data["cases"]]
        return section(title, f"Share of the limit that binds, measured in the same run (the line is 100%), {data['threads']} threads.", bars(items, 100))
    return chart


def beside_torch(title):
    def chart(data):
        items = []
        for row in data["rows"]:
            name = " ".join(str(value) for key, value in row["case"].items() if key not in ("kind", "copies"))
            name = f"{row['case']['kind']} {name}"
            if "ratio" in row:
                items.append((name, row["ratio"], f"{row['ratio']:.2f} of torch's time ({row['peer']})", "rlx" if row["ratio"] <= 1 else "peer"))
        missing = "".join(f" {name}: {reason}." for name, reason in data.get("missing", {}).items())
        note = f"Our time over that of the fastest way in torch {data.get('torch', '')}, in turn in one run; below the line we are ahead.{missing}"
        return section(title, note, bars(items, 1))
    return chart


def model(title):
    def chart(data):
        charts = []
        for row in data["rows"]:
            share = lambda side: f", {100 * side['share_of_peak']:.0f}% of peak" if side.get("share_of_peak") else ""
            items = [(name, side["min_ms"], f"{side['min_ms']:.1f} / {side['median_ms']:.1f} ms{share(side)}", "rlx" if name == "rlx" else "peer")
                     for name, side in row["sides"].items()]
            missing = "; ".join(f"{name}: {reason}" for name, reason in row["missing"].items())
            charts.append(f"<p><b>{html.escape(row['case'])}</b>{' — not available: ' + html.escape(missing) if missing else ''}</p>" + bars(items))
        opened = [(f"open, {name}", 1e3 * about["open_s"], f"{1e3 * about['open_s']:.0f} ms, {about['compiled']} kernels compiled, {about['from_disk']} from disk", "rlx")
                  for name, about in data.get("compile", {}).items()]
        compiling = ["<p><b>Compile time</b></p>", bars(opened)] if opened else []
        return section(title, f"Minimum / median, {data['threads']} threads, all sides in turn in one run.", *charts, *compiling)
    return chart


# The files of a folder of results in the order of the page; those that are not there are left out.
SECTIONS = {"peaks": peaks, "bert_base": model("BERT-base"), "minilm": model("MiniLM"), "vision": model("Image models"),
            "gemm_model": shares("Products of MiniLM"), "gemm_large": shares("Products, 512 and more"), "gemm_small": shares("Products, 1 to 256"),
            "gemm_memory": shares("Products with weights from memory"), "gemm_large_peers": beside_torch("Products, 512 and more, beside torch"),
            "gemm_small_peers": beside_torch("Products, 1 to 256, beside torch"), "gemm_memory_peers": beside_torch("Products with weights from memory, beside torch"),
            "attention": shares("Attention"), "attention_peers": beside_torch("Attention beside torch"),
            "rows": shares("Row and elementwise programs"), "rows_peers": beside_torch("Row and elementwise programs beside torch")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    found = {name: json.loads((args.folder / f"{name}.json").read_text()) for name in SECTIONS if (args.folder / f"{name}.json").exists()}
    if not found:
        raise SystemExit(f"{args.folder}: no results (make bench writes them)")
    machine = found["peaks"]["cpu"] if "peaks" in found else args.folder.name
    body = "\n".join(SECTIONS[name](data) for name, data in found.items())
    page = f"<!doctype html>\n<meta charset=\"utf-8\">\n<title>RLX benchmarks</title>\n<style>{STYLE}</style>\n<h1>RLX benchmarks</h1>\n<p>{html.escape(machine)}</p>\n{body}\n"
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page)
    print(f"report: {args.out}")


if __name__ == "__main__":
    main()
