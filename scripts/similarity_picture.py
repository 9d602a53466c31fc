#!/usr/bin/env python3
"""Draws the table of `rlx embed --similarity --json`, read from standard input, as an SVG.

  build/release/rlx embed --model build/minilm --similarity --json examples/sentences.txt |
    scripts/similarity_picture.py > docs/images/similarity.svg
"""
import json
import sys
from html import escape

CELL, HEIGHT, TEXT, MARGIN = 38, 26, 372, 16
STYLE = """
  .card { fill: #fbfbfa; stroke: #d0d0cc }
  text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #24292f }
  .number { font-size: 11px; text-anchor: middle }
  .strong { fill: #ffffff; font-weight: bold }
  .cell { fill: #0b6e75 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #16191d; stroke: #3a3f45 }
    text { fill: #dfe3e8 }
    .strong { fill: #0d1114 }
    .cell { fill: #56c7cf }
  }
"""


def cell(row, column, cosine):
    x, y = MARGIN + TEXT + column * CELL, MARGIN + (row + 1) * HEIGHT
    strength = max(0.0, min(1.0, cosine))
    style = "number strong" if strength > 0.5 else "number"
    return (
        f'<rect class="cell" x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{HEIGHT - 2}" rx="3" fill-opacity="{strength:.2f}"/>'
        f'<text class="{style}" x="{x + CELL / 2:g}" y="{y + 17}">{cosine:.2f}</text>'
    )


def main():
    table = json.load(sys.stdin)
    texts, cosines = table["texts"], table["similarity"]
    width, height = 2 * MARGIN + TEXT + CELL * len(texts), 2 * MARGIN + HEIGHT * (len(texts) + 1)
    parts = [f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>']
    for row, text in enumerate(texts):
        y = MARGIN + (row + 1) * HEIGHT + 17
        parts.append(f'<text class="number" x="{MARGIN + TEXT + row * CELL + CELL / 2:g}" y="{MARGIN + 17}">{row + 1}</text>')
        parts.append(f'<text class="number" x="{MARGIN + 8}" y="{y}">{row + 1}</text><text x="{MARGIN + 24}" y="{y}">{escape(text)}</text>')
        parts += [cell(row, column, cosine) for column, cosine in enumerate(cosines[row])]
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">')
    print(f"<title>How similar {len(texts)} sentences are</title>\n<style>{STYLE}</style>")
    print("\n".join(parts) + "\n</svg>")


if __name__ == "__main__":
    main()
