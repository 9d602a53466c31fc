#!/usr/bin/env python3
"""Draws docs/architecture.svg: the rooms of src, and the way of `rlx run` through them. Prints the picture.

Usage: draw_architecture.py > docs/architecture.svg

Fails where a room is no folder, or a folder of src is no room: a drawing of another house helps nobody.
"""
import sys

import house

# What each room holds; in which order they stand, house.py says.
HOLDS = {
    "tools": "the command: parses and prints",
    "models": "networks, weights, answers",
    "text": "tokenizers, templates, grammars",
    "formats": "files: checked, then mapped",
    "runtime": "sessions, memory, runs",
    "backends": "a device: claims, machine code",
    "lowering": "programs: launches, memory",
    "emit": "loops as LLVM IR or C",
    "kernel": "expressions become loops",
    "passes": "rewrites of a graph",
    "transform": "derivatives, vmap",
    "registry": "builders by name",
    "ops": "every op in one place",
    "ir": "the graph, types, sizes",
    "quant": "weights in blocks",
    "base": "threads, memory, checked sizes",
}
ROOMS = [(room, HOLDS[room]) for room in reversed(house.FLOOR) if room in HOLDS]  # from top to bottom

# One command, step by step: the room and what comes of it.
PARTS = [
    ("open the model", [("tools", "args"), ("formats", "files"), ("models", "layers"), ("ops", "nodes"), ("ir", "graph")]),
    (
        "compile: once, kept on disk",
        [("runtime", "begin"), ("passes", "expand"), ("lowering", "plan"), ("kernel", "loops"), ("emit", "IR"), ("backends", "code")],
    ),
    (
        "answer: again for each token",
        [("text", "ids"), ("runtime", "run"), ("backends", "calls"), ("models", "token"), ("text", "words"), ("tools", "print")],
    ),
]
LOOP = (15, 13)  # the chosen token is what the next run reads

LEFT, HEAD, LANE, PITCH, MARGIN, RADIUS = 246, 44, 46, 46, 12, 12

STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de }
  .lane { fill: #f3f5f8 }
  .part { fill: #0969da; fill-opacity: .07 }
  text { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .room { font: bold 15px ui-monospace, Menlo, Consolas, monospace }
  .does { font-size: 13px; fill: #57606a }
  .what { text-anchor: middle; font-size: 13px }
  .head { text-anchor: middle; font-size: 14px; font-weight: bold }
  .way { fill: none; stroke: #0969da; stroke-width: 2.5 }
  .again { fill: none; stroke: #0969da; stroke-width: 2; stroke-dasharray: 5 4 }
  .step { fill: #0969da }
  .number { text-anchor: middle; font-size: 13px; font-weight: bold; fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #30363d }
    .lane { fill: #161b22 }
    .part { fill: #58a6ff; fill-opacity: .1 }
    text { fill: #e6edf3 }
    .does { fill: #a5afba }
    .way, .again { stroke: #58a6ff }
    .step { fill: #58a6ff }
    .number { fill: #0d1117 }
  }
"""


def check_rooms():
    named = HOLDS.keys() - {"tools"}
    there = {folder.name for folder in (house.ROOT / "src").iterdir() if folder.is_dir()}
    if named != there:
        sys.exit(f"draw_architecture: rooms without a folder: {sorted(named - there)}, folders without a room: {sorted(there - named)}")


def lane_top(index):
    return MARGIN + HEAD + index * LANE


def place(column, room):
    """The middle of the circle of a step, whose columns count from 0."""
    return LEFT + PITCH * column + PITCH // 2, lane_top([name for name, _ in ROOMS].index(room)) + 16


def step_path(begin, end):
    """From one circle to the next: right, down or up, right."""
    (x0, y0), (x1, y1) = begin, end
    middle, turn, radius = (x0 + x1) // 2, (1 if y1 > y0 else -1), 8
    return (
        f"M{x0},{y0} L{middle - radius},{y0} Q{middle},{y0} {middle},{y0 + turn * radius} "
        f"L{middle},{y1 - turn * radius} Q{middle},{y1} {middle + radius},{y1} L{x1},{y1}"
    )


def loop_path(begin, end):
    """From a circle's top to the top of an earlier one."""
    (x0, y0), (x1, y1) = begin, end
    top, radius = y0 - 20, 8
    return (
        f"M{x0},{y0 - RADIUS} Q{x0},{top} {x0 - radius},{top} L{x1 + radius},{top} Q{x1},{top} {x1},{top + radius} "
        f"L{x1},{y1 - RADIUS - 3} m-4,-6 l4,7 l4,-7"
    )


def draw():
    steps = [step for _, part in PARTS for step in part]
    places = [place(column, room) for column, (room, _) in enumerate(steps)]
    width, height = LEFT + PITCH * len(steps) + MARGIN, lane_top(len(ROOMS)) + MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    yield "<title>The rooms of src from top to bottom, and the way of rlx run through them</title>"
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    for index in range(0, len(ROOMS), 2):
        yield f'<rect class="lane" x="1" y="{lane_top(index)}" width="{width - 2}" height="{LANE}"/>'
    column = 0
    for title, part in PARTS:
        x, span = LEFT + PITCH * column, PITCH * len(part)
        yield f'<rect class="part" x="{x + 2}" y="{MARGIN}" width="{span - 4}" height="{height - 2 * MARGIN}" rx="6"/>'
        yield f'<text class="head" x="{x + span // 2}" y="{MARGIN + 26}">{title}</text>'
        column += len(part)
    for index, (room, does) in enumerate(ROOMS):
        yield f'<text class="room" x="{MARGIN + 4}" y="{lane_top(index) + 20}">{room}</text>'
        yield f'<text class="does" x="{MARGIN + 4}" y="{lane_top(index) + 37}">{does}</text>'
    for begin, end in zip(places, places[1:]):
        yield f'<path class="way" d="{step_path(begin, end)}"/>'
    yield f'<path class="again" d="{loop_path(places[LOOP[0] - 1], places[LOOP[1] - 1])}"/>'
    for number, ((x, y), (_, what)) in enumerate(zip(places, steps), start=1):
        yield f'<circle class="step" cx="{x}" cy="{y}" r="{RADIUS}"/>'
        yield f'<text class="number" x="{x}" y="{y + 5}">{number}</text>'
        yield f'<text class="what" x="{x}" y="{y + 25}">{what}</text>'
    yield "</svg>"


if __name__ == "__main__":
    check_rooms()
    print("\n".join(draw()))
