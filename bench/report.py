"""Makes one HTML page with charts of what `make bench` measured, which needs no network, and the tables of docs/performance.md, of which the
first says for each bar of bars.py what was reached.

usage: report.py bench/results/MACHINE [--out build/bench.html] [--markdown docs/performance.md]

In the Markdown file the text between the two lines that name the machine is replaced; where there are none, they are added at the end.
"""
import argparse
import html
import pathlib

import figures

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem } p { margin: .3rem 0; color: #555 }
svg { display: block; width: 100%; height: auto; font-size: 12px } svg text { fill: #222 } .quiet { fill: #777 }
.rlx { fill: #2563a8 } .peer { fill: #b9c4d0 } .line { stroke: #d33; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #ddd } p { color: #aaa } svg text { fill: #ddd } .peer { fill: #55606b } }
"""
LABEL, WIDTH, ROW = 300, 900, 20  # pixels: the place of labels, all, one bar
FOLDED = 12  # rows


def bars(chart):
    """Horizontal bars, and a line at the limit."""
    drawn = [bar for bar in chart.bars if bar.value is not None]
    largest = max([bar.value for bar in drawn] + ([chart.limit] if chart.limit else []), default=0) or 1
    scale = (WIDTH - LABEL - 190) / largest
    height = ROW * len(chart.bars)
    lines = [f'<svg viewBox="0 0 {WIDTH} {height + 4}" role="img">']
    for i, bar in enumerate(chart.bars):
        y, width = i * ROW, max(1, (bar.value or 0) * scale)
        lines.append(f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end">{html.escape(bar.label)}</text>'
                     f'<rect class="{"rlx" if bar.ours else "peer"}" x="{LABEL}" y="{y + 4}" width="{width:.1f}" height="{ROW - 6}" rx="2"/>'
                     f'<text class="quiet" x="{LABEL + width + 6:.1f}" y="{y + 15}">{html.escape(bar.text)}</text>')
    if chart.limit:
        x = LABEL + chart.limit * scale
        lines.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}"/>')
    return "\n".join([*lines, "</svg>"])


def section_html(section):
    parts = [f"<h2>{html.escape(section.title)}</h2>", f"<p>{html.escape(section.note)}</p>", f"<p><code>{html.escape(section.command)}</code></p>"]
    for chart in section.charts:
        title = f"<b>{html.escape(chart.title)}</b> " if chart.title else ""
        parts += [f"<p>{title}{html.escape(chart.note)}</p>" if title or chart.note else "", bars(chart)]
    return "\n".join(parts)


def page(machine, sections):
    body = "\n".join(map(section_html, sections))
    return f"<!doctype html>\n<meta charset=\"utf-8\">\n<title>RLX benchmarks</title>\n<style>{STYLE}</style>\n<h1>RLX benchmarks</h1>\n<p>{html.escape(machine)}</p>\n{body}\n"


def table(chart):
    rows = [chart.columns, ["---"] * len(chart.columns), *([bar.label, *bar.cells] for bar in chart.bars)]
    lines = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([*([f"**{chart.title}**", ""] if chart.title else []), *lines, *(["", chart.note] if chart.note else [])])


def section_markdown(section):
    """A long table is folded away."""
    tables = "\n\n".join(map(table, section.charts))
    if section.folds and sum(len(chart.bars) for chart in section.charts) > FOLDED and len(section.charts) == 1:
        tables = f"<details><summary>{len(section.charts[0].bars)} cases</summary>\n\n{tables}\n\n</details>"
    return f"### {section.title}\n\n`{section.command}`\n\n{section.note}\n\n{tables}"


def with_tables(text, machine, sections):
    """The text of a Markdown file with the tables of a machine in place of those that it had."""
    begin, end = f"<!-- begin {machine} (written by bench/report.py) -->", f"<!-- end {machine} -->"
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    old, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{begin}: no line {end} follows")
    tables = "\n\n".join(map(section_markdown, sections))
    return f"{before}{begin}\n\n## {machine}\n\n{tables}\n\n{end}{after}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="the HTML page")
    parser.add_argument("--markdown", type=pathlib.Path, help="the file whose tables are replaced")
    args = parser.parse_args()
    sections = figures.sections(args.folder)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(page(args.folder.name, sections))
        print(f"report: {args.out}")
    if args.markdown:
        args.markdown.write_text(with_tables(args.markdown.read_text(), args.folder.name, sections))
        print(f"tables: {args.markdown}")


if __name__ == "__main__":
    main()
