#!/usr/bin/env python3
"""Prints the index of the decisions, docs/decisions/README.md, from their pages: the first line of each is its title, the next text the area it is of.

Usage: decisions_index.py [FOLDER]  (the root of the project; default: that of this script)
"""
import sys
from pathlib import Path

HEAD = """# Decisions

Why RLX is as it is. Each page says what the question was, what was decided, why, and what was rejected.
Figures are those that decided it, most of them measured on an AMD EPYC (Zen 4). Today's are in
[performance.md](../performance.md). This index is written by `scripts/generate_docs.sh`.

Words that the pages use: an **op** is one step of a graph. A **kernel** is generated code, and a **launch** runs it. A
**claim** is a hand-written kernel that takes an op over; an **epilogue** is what follows a product in the same launch. A
**panel** is a packed strip of weights. A **level** is an instruction set, such as avx2 or amx. The **reference** is each op's
own plain evaluation.
"""


def title_and_area(page):
    lines = [line for line in page.read_text().splitlines() if line.strip()]
    title, area = lines[0].removeprefix("# "), lines[1]
    if not area.startswith("Area: "):
        raise SystemExit(f"{page}: the line behind the title is {area!r} (allowed: 'Area: NAME')")
    return title, area.removeprefix("Area: ")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    areas = {}
    for page in sorted((root / "docs" / "decisions").glob("*.md")):
        if page.name != "README.md":
            title, area = title_and_area(page)
            areas.setdefault(area, []).append(f"- [{title}]({page.name})")
    print(HEAD + "".join(f"\n## {area}\n\n" + "\n".join(lines) + "\n" for area, lines in sorted(areas.items())), end="")


if __name__ == "__main__":
    main()
