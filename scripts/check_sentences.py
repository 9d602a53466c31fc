#!/usr/bin/env python3
"""Checks that the documents for people are short. Prints each offender as file:line with its count; exits with 1 if there is one.

Usage: check_sentences.py [FOLDER]  (the root of the project; default: that of this script)

In README.md, CONTRIBUTING.md, docs/architecture.md, docs/guide.md and src/**/README.md a sentence has at most 40 words (25 in
architecture.md), and at most 20 in the mean of a page. Code blocks, tables, headings, pictures and the targets of links are no sentences.
Each folder of src that holds sources has a README of at most 40 lines, which says what to read, what the folder may include and how to add
to it. The pages of docs that people write have at most 150 kB together.
"""
import re
import sys
from pathlib import Path

MEAN_WORDS = 20
MOST_WORDS = 40
MOST_WORDS_OF = {"docs/architecture.md": 25}
README_LINES = 40
README_SECTIONS = ("## Read in this order", "## May include", "## To add")
SOURCES = ("cpp", "h", "def", "mm")
DOCS_BYTES = 150_000
GENERATED = {"docs/ops.md", "docs/cli.md", "docs/coverage.md", "docs/decisions/README.md"}  # by generate_docs.sh

ITEM = re.compile(r"\s*([-*+]|\d+\.)\s+")
# A full stop ends a sentence where a capital, a number, code, a link or emphasis follows.
SENTENCE_END = re.compile(r"""(?<!e\.g)(?<!i\.e)[.!?]["')\]*_]*(?=\s+["'(\[*_`]*[A-Z0-9`\[])""")


def paragraphs(text):
    """The paragraphs and list items of a page: (line, text) each, without code blocks, tables, headings and tags."""
    line_of_first, gathered, fence = 0, [], None
    for number, line in enumerate(text.splitlines() + [""], start=1):
        marker = re.match(r"\s*(```+|~~~+)", line)
        if marker and fence is None:
            fence = marker[1]
        elif fence is not None:
            if line.strip().startswith(fence):
                fence = None
            continue
        item = ITEM.match(line)
        ends = marker or item or not line.strip() or line.lstrip().startswith(("|", "#", "<"))
        if ends and gathered:
            yield line_of_first, "\n".join(gathered)
            gathered = []
        if item or not ends:
            line_of_first = line_of_first if gathered else number
            gathered.append(line[item.end() :] if item else line)


def as_read(paragraph):
    """What a reader reads: no pictures, the text of links without their targets, no dots within code that could end a sentence."""
    paragraph = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", paragraph)
    paragraph = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"[\1]", paragraph)
    return re.sub(r"`[^`]*`", lambda code: code[0].replace(".", ","), paragraph)


def sentences(text):
    """(line, number of words) of each sentence."""
    for first_line, paragraph in paragraphs(text):
        readable = as_read(paragraph)
        begin = 0
        for end in [match.end() for match in SENTENCE_END.finditer(readable)] + [len(readable)]:
            sentence = readable[begin:end]
            words = [word for word in sentence.split() if any(map(str.isalnum, word))]
            if words:
                leading = len(sentence) - len(sentence.lstrip())
                yield first_line + readable[: begin + leading].count("\n"), len(words)
            begin = end


def offenders_of_page(name, text):
    counted = list(sentences(text))
    most = MOST_WORDS_OF.get(name, MOST_WORDS)
    for line, words in counted:
        if words > most:
            yield f"{name}:{line}: a sentence of {words} words (at most {most})"
    mean = sum(words for _, words in counted) / max(len(counted), 1)
    if mean > MEAN_WORDS:
        yield f"{name}:1: sentences of {mean:.1f} words in the mean (at most {MEAN_WORDS})"


def offenders(root):
    readmes = sorted(root.glob("src/**/README.md"))
    pages = [root / name for name in ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/guide.md")] + readmes
    for page in pages:
        yield from offenders_of_page(page.relative_to(root).as_posix(), page.read_text())
    for page in readmes:
        lines = len(page.read_text().splitlines())
        if lines > README_LINES:
            yield f"{page.relative_to(root)}:{README_LINES + 1}: {lines} lines (at most {README_LINES})"
        for section in README_SECTIONS:
            if page.parent.name != "src" and not re.search(f"^{section}", page.read_text(), re.M):
                yield f"{page.relative_to(root)}:1: there is no section '{section}'"
    for folder in sorted({source.parent for ending in SOURCES for source in root.glob(f"src/**/*.{ending}")}):
        if not (folder / "README.md").exists():
            yield f"{folder.relative_to(root)}/README.md:1: there is none"
    written = [page for page in sorted(root.glob("docs/**/*.md")) if page.relative_to(root).as_posix() not in GENERATED]
    size = sum(page.stat().st_size for page in written)
    if size > DOCS_BYTES:
        largest = max(written, key=lambda page: page.stat().st_size)
        yield f"{largest.relative_to(root)}:1: docs has {size} bytes that are not generated (at most {DOCS_BYTES}); this page is the largest"


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = list(offenders(root))
    print("\n".join(found) if found else "check_sentences: every page is short enough")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
