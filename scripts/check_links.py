#!/usr/bin/env python3
"""Checks that what the documents point at exists. Prints each link and name that leads nowhere as file:line; exits with 1 if there is one.

Usage: check_links.py [FOLDER]  (the root of the project; default: that of this script)

Links are checked in the pages of the root, of docs and bench/results, and in the READMEs of sources and tests, and names of files in `code` that
count from the root, as src/ir/op.h. In the READMEs other names also stand for a file of their folder, or count from src or include. NAME is
one that the reader chooses.
"""
import re
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
SOURCE = re.compile(r"`([\w./]+\.(?:h|cpp|def|py|sh))`")
FROM_ROOT = ("src/", "include/", "tools/", "tests/", "bench/", "fuzz/", "scripts/", "cmake/", "examples/")
README_FOLDERS = ("src", "bindings", "python", "tests")
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


def offenders_of_page(root, page, is_of_folder):
    for number, line in lines_of(page):
        where = f"{page.relative_to(root)}:{number}"
        for target in LINK.findall(line):
            path = target.split("#")[0]
            if path and "://" not in target and not exists_in([page.parent], path):
                yield f"{where}: the link to {target} leads nowhere"
        folders = [root, page.parent, root / "src", root / "include"] if is_of_folder else [root]
        for name in SOURCE.findall(line):
            is_path = is_of_folder or name.startswith(FROM_ROOT)
            if is_path and name not in GENERATED and "NAME" not in name and not exists_in(folders, name):
                yield f"{where}: there is no {name}"


def offenders(root):
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("bench/results/**/*.md")]):
        yield from offenders_of_page(root, page, is_of_folder=False)
    for page in sorted(page for folder in README_FOLDERS for page in root.glob(f"{folder}/**/README.md")):
        yield from offenders_of_page(root, page, is_of_folder=True)


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(offenders(root))
    print("\n".join(found) if found else "check_links: every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
