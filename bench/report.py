"""Writes what `make bench` measured as documents: in each folder of results a table for each file, README.md with the bars of bars.py and two
charts, and in docs/performance.md what stands between the two lines that name the machine. Also makes one HTML page with charts.

usage: report.py [bench/results/MACHINE]... [--html build/bench.html] [--check]

Without a folder: all of them. With --check nothing is written, and what differs is an error.
"""
import argparse
import html
import pathlib

import charts
import figures
import summary

ROOT = pathlib.Path(__file__).resolve().parent.parent
PERFORMANCE = ROOT / "docs" / "performance.md"

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem } p { margin: .3rem 0; color: #555 }
svg { display: block; width: 100%; height: auto }
@media (prefers-color-scheme: dark) { body { background: #16181b; color: #ddd } p { color: #aaa } }
"""


def section_html(section):
    parts = [f"<h2>{html.escape(section.title)}</h2>", f"<p>{html.escape(section.note)}</p>", f"<p><code>{html.escape(section.command)}</code></p>"]
    for chart in section.charts:
        title = f"<b>{html.escape(chart.title)}</b> " if chart.title else ""
        parts += [f"<p>{title}{html.escape(chart.note)}</p>" if title or chart.note else "", charts.svg(chart)]
    return "\n".join(parts)


def page(machine, sections):
    body = "\n".join(map(section_html, sections))
    style = STYLE + charts.STYLE
    return f"<!doctype html>\n<meta charset=\"utf-8\">\n<title>RLX benchmarks</title>\n<style>{style}</style>\n<h1>RLX benchmarks</h1>\n<p>{html.escape(machine)}</p>\n{body}\n"


def table(columns, rows):
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in (columns, ["---"] * len(columns), *rows))


def chart_table(chart):
    parts = [f"**{chart.title}**"] if chart.title else []
    return "\n\n".join([*parts, table(chart.columns, [[bar.label, *bar.cells] for bar in chart.bars]), *([chart.note] if chart.note else [])])


def section_markdown(section, more):
    tables = "\n\n".join(map(chart_table, section.charts))
    return f"# {section.title}\n\n`{section.command}`\n\n{section.note} {more}\n\n{tables}\n"


def areas_table(files, results):
    """Results: how the folder of all results is reached from the document."""
    counts = [[f"[{title}]({results}{area}.md)", f"{met} of {measured}" if measured else "not measured"]
              for title, area, met, measured, _ in summary.areas(files)]
    return table(["area", "bars met"], counts)


def missed_table(files, results):
    missed = [[f"[{cells[0]}]({results}{area}.md)", cells[1], cells[2]] for _, area, _, _, cells_of_area in summary.areas(files) for cells in cells_of_area]
    return table(["missed, and why", "asked for", "reached"], missed) if missed else "No bar is missed."


def charts_text(folder):
    return (f"Our time over the fastest peer's. Left of the line we are ahead; of several cases the bar is the geometric mean.\n\n![Our time over the fastest peer's]({folder}peers.svg)\n\n"
            f"Shares of what this machine can do. The line is all of it; of several cases the bar is the geometric mean.\n\n![Shares of the machine's limits]({folder}limits.svg)")


def readme(machine, files, sections):
    bars = figures.bar_section(files)
    links = "\n".join(f"- [{section.title}]({name}.md)" for name, section in sections.items())
    return (f"# Results of {machine}\n\nWritten by `{bars.command}` from the files beside it; do not edit.\n\n## By area\n\n{areas_table(files, '../')}\n\n{missed_table(files, '../')}\n\n"
            f"## {bars.title}\n\n{bars.note}\n\n{chart_table(bars.charts[0])}\n\n## Charts\n\n{charts_text('')}\n\n## Tables\n\n{links}\n")


def with_summary(text, folder, files):
    """The text of docs/performance.md with a machine's results in place of those that it had, or at the end."""
    machine = folder.name
    begin, end = f"<!-- begin {machine} (written by bench/report.py) -->", f"<!-- end {machine} -->"
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{PERFORMANCE}: no line {end} follows {begin}")
    met, measured = (sum(area[i] for area in summary.areas(files)) for i in (2, 3))
    results = f"../bench/results/{machine}/"
    parts = [begin, f"### {machine}", f"{met} of {measured} bars are met; [each bar, the missed ones with their reasons, and each table]({results}README.md)."]
    if "<!-- begin " not in before:  # the page stays one: only the first machine's areas stand in it
        parts += [areas_table(files, "../bench/results/"), charts_text(results)]
    return before + "\n\n".join([*parts, end]) + after


def documents(folders):
    """What is to be written: texts by paths."""
    texts = {PERFORMANCE: PERFORMANCE.read_text()}
    for folder in folders:
        files, sections = figures.contents_of(folder), figures.sections(folder)
        texts[PERFORMANCE] = with_summary(texts[PERFORMANCE], folder, files)
        texts[folder / "README.md"] = readme(folder.name, files, sections)
        for name, section in sections.items():
            area = summary.area_of(name)
            texts[folder / f"{name}.md"] = section_markdown(section, f"What binds: [{area}](../{area}.md).")
        for name, chart in (("peers", summary.beside_peers(files)), ("limits", summary.beside_limits(files))):
            texts[folder / f"{name}.svg"] = charts.svg_file(chart)
    return texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path, nargs="*")
    parser.add_argument("--html", type=pathlib.Path, help="the HTML page, of the last folder")
    parser.add_argument("--check", action="store_true", help="fail where a document is not what would be written")
    args = parser.parse_args()
    folders = [folder.resolve() for folder in args.folder] or sorted(path for path in (ROOT / "bench" / "results").iterdir() if path.is_dir())
    texts = documents(folders)
    stale = [path for folder in folders for path in folder.glob("*.md") if path not in texts]
    if args.check:
        wrong = [path for path, text in texts.items() if not path.exists() or path.read_text() != text] + stale
        raise SystemExit("".join(f"{path.relative_to(ROOT)}: not what bench/report.py writes\n" for path in wrong) or 0)
    for path, text in texts.items():
        path.write_text(text)
    for path in stale:
        path.unlink()
    print(f"report: {len(texts)} documents")
    if args.html:
        args.html.parent.mkdir(parents=True, exist_ok=True)
        args.html.write_text(page(folders[-1].name, [figures.bar_section(figures.contents_of(folders[-1])), *figures.sections(folders[-1]).values()]))
        print(f"page: {args.html}")


if __name__ == "__main__":
    main()
