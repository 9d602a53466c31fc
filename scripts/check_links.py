#!/usr/bin/env python3
"""Checks that what the documents point at exists. Prints each link and file name that leads nowhere as file:line; exits with 1 if there is one.

Usage: check_links.py [FOLDER]  (the root of the project; default: that of this script)

Links are checked in README.md, CONTRIBUTING.md, docs and the READMEs of src. In the latter also names of files in `code`, which stand for a
file of the README's folder, or count from src, include or the root; NAME in them is one that the reader chooses.
"""
import re
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
SOURCE = re.compile(r"`([\w./]+\.(?:h|cpp|def|py|sh))`")
GENERATED = {"rlx/ops.h", "rlx/version.h"}


def lines_of(page):
    """(number, line) of a page without its code blocks."""
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def exists_in(folders, name):
    return any((folder / name).exists() for folder in folders)


def offenders_of_page(root, page, has_sources):
    for number, line in lines_of(page):
        where = f"{page.relative_to(root)}:{number}"
        for target in LINK.findall(line):
            path = target.split("#")[0]
            if path and "://" not in target and not exists_in([page.parent], path):
                yield f"{where}: the link to {target} leads nowhere"
        for name in SOURCE.findall(line) if has_sources else []:
            folders = [page.parent, root / "src", root / "include", root]
            if name not in GENERATED and "NAME" not in name and not exists_in(folders, name):
                yield f"{where}: there is no {name}"


def offenders(root):
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md"))]:
        yield from offenders_of_page(root, page, has_sources=False)
    for page in sorted(root.glob("src/**/README.md")):
        yield from offenders_of_page(root, page, has_sources=True)


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(offenders(root))
    print("\n".join(found) if found else "check_links: every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
