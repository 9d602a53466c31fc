#!/usr/bin/env python3
"""Checks the rooms of src/ and draws them.

usage: house.py check        each include points down the order below, no two folders include each other, no folder holds too many files, no two types
                             of a namespace have one name, nor two headers, nor a type of rlx and another one;
                             a claim is named by one file outside of its folder, a device by its registration; the table of a language like C is short
       house.py draw FILE    writes the picture of the rooms, docs/house.svg

A room is a folder of src/, or a folder beside it that stands on the library. Public headers (include/rlx) belong to no room: everybody may
include them, and they include each other alone.
"""
import collections
import pathlib
import re
import sys

# From the ground up; what stands in one line may include each other's line in one direction.
ORDER = ["base", "quant ir", "ops", "transform passes registry", "kernel", "emit", "lowering", "backends", "runtime", "formats", "text", "models train",
         "tools bindings"]
# The folders of models, likewise.
MODELS = "config layers families weights conversion run api".split()
FLOOR = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms.split()}
BESIDE_SRC = ["tools", "bindings"]
MOST_FILES = 30
# Where devices are registered; reports of the command also say what the CPU reaches at best.
DEVICES = "src/runtime/device.cpp"
PEAKS = ["tools/reports/profile.h", "tools/reports/workload.h"]
MOST_DIALECT_LINES = 120
# Namespaces in which a type has the name that it has in another language or library.
FOREIGN_WORDS = ["rlx::jinja", "rlx::json", "rlx::grammar", "rlx::coreml", "rlx::mlx"]
INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.M)
# The begin and the end of a namespace, and a type that is defined in one.
SCOPE = re.compile(r"^(?:namespace (?P<begin>[\w:]*) ?\{|(?P<end>\})  // namespace.*|(?:struct|class|enum class|union) (?:alignas\(\w+\) )?"
                   r"(?P<type>\w+)(?: final)?(?: : .*)? \{.*)$", re.M)
ROOT = pathlib.Path(__file__).resolve().parent.parent


def sources():
    """The sources and headers of all rooms, as paths from the root."""
    for top in ["src", *BESIDE_SRC]:
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cpp", ".def"):
                yield path.relative_to(ROOT)


def home(path):
    """The folder that is its room."""
    return pathlib.Path(*path.parts[: 1 if path.parts[0] in BESIDE_SRC else 2])


def room(path):
    return home(path).name


def included(path):
    """The project's files that `path` includes, public headers aside."""
    for name in INCLUDE.findall((ROOT / path).read_text(encoding="utf-8")):
        for folder in ("src", "tools", path.parent):
            if (ROOT / folder / name).is_file():
                yield pathlib.Path(folder, name)
                break


def upward(edges):
    for source, target in edges:
        if FLOOR[room(target)] > FLOOR[room(source)]:
            yield f"{source} includes {target}: {room(target)} stands above {room(source)}"
        if room(source) == room(target) == "models" and MODELS.index(target.parts[2]) > MODELS.index(source.parts[2]):
            yield f"{source} includes {target}: {target.parts[2]} stands above {source.parts[2]}"


def mutual(edges):
    """Pairs of folders, and of rooms as a whole, that include each other, with one include of each direction."""
    example = {}
    for source, target in edges:
        for pair in ((source.parent, target.parent), (home(source), home(target))):
            example.setdefault(pair, f"{source} -> {target}")
    for (one, other), there in sorted(example.items()):
        if one < other and (back := example.get((other, one))):
            yield f"{one} and {other} include each other: {there}, {back}"


def crowded():
    for folder in sorted({ROOT / "src", *(p for p in (ROOT / "src").rglob("*") if p.is_dir())}):
        files = sum(path.is_file() for path in folder.iterdir())
        if files > MOST_FILES:
            yield f"{folder.relative_to(ROOT)} holds {files} files (allowed: {MOST_FILES})"


def named_outside(edges, folder):
    """The files outside of a folder that include one of it."""
    return sorted({str(source) for source, target in edges if folder in target.parents and folder not in source.parents})


def claims_named_outside(files, edges):
    """Each claim is a folder with a claim.h, and the list beside it alone knows of it."""
    for header in (path for path in files if path.name == "claim.h" and path.parent.name != "lowering"):
        registration = header.parent.parent / "claims.cpp"
        for source in named_outside(edges, header.parent):
            if source != str(registration):
                yield f"{source} includes a file of the claim {header.parent} (allowed: {registration})"


def devices_named_outside(edges):
    for folder in sorted(path.relative_to(ROOT) for path in (ROOT / "src/backends").iterdir() if path.is_dir()):
        allowed = [DEVICES, *(PEAKS if folder.name == "cpu" else [])]
        for source in named_outside(edges, folder):
            if source not in allowed:
                yield f"{source} includes a file of the device {folder} (allowed: {', '.join(allowed)})"


def long_dialects():
    for path in sorted((ROOT / "src/emit").glob("*.cpp")):
        text = path.read_text(encoding="utf-8")
        if "constexpr CDialect " in text and text.count("\n") > MOST_DIALECT_LINES:
            yield f"{path.relative_to(ROOT)} has {text.count(chr(10))} lines (allowed: {MOST_DIALECT_LINES})"


def private_in_public():
    for path in sorted((ROOT / "include").rglob("*.h")):
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if not name.startswith("rlx/"):
                yield f"{path.relative_to(ROOT)} includes {name} (allowed: public headers)"


def types_of(path):
    """The namespace and the name of each type that a file shows to others."""
    scope = []
    for found in SCOPE.finditer((ROOT / path).read_text(encoding="utf-8")):
        if found["begin"] is not None:
            scope.append(found["begin"])
        elif found["end"]:
            scope.pop()
        elif "" not in scope:
            yield "::".join(scope), found["type"]


def twice_named(files):
    """Two types of one name in one namespace: each file compiles, and what is linked takes members of one for those of the other."""
    homes = collections.defaultdict(list)
    for path in files:
        for scope, name in types_of(path):
            homes[f"{scope}::{name}"].append(str(path))
    for name, where in sorted(homes.items()):
        if len(where) > 1:
            yield f"{name} is defined in {' and '.join(where)}"


def hidden_types(headers):
    """A type of a namespace inside of rlx that has the name of one of rlx: there, the name means something else than everywhere."""
    homes = collections.defaultdict(list)
    for path in headers:
        for scope, name in types_of(path):
            homes[name].append((scope, path))
    for name, where in sorted(homes.items()):
        everywhere = [path for scope, path in where if scope == "rlx"]
        for scope, path in where:
            if everywhere and scope.startswith("rlx::") and scope not in FOREIGN_WORDS:
                yield f"{path}: {scope}::{name} has the name of a type of rlx ({everywhere[0]})"


def headers_of_one_name(headers):
    """Headers of one name, but for those that one device has as another one does."""
    homes = collections.defaultdict(list)
    for path in headers:
        if path.parts[0] in ("src", "tools") and path.name != "claim.h":
            homes[path.name].append(path)
    for name, where in sorted(homes.items()):
        if len({"a device" if "backends" in path.parts else path for path in where}) > 1:
            yield f"{name} is the name of {' and '.join(map(str, where))}"


def rounded(count, digits):
    """To so many digits, so that the picture changes with the house and not with each commit."""
    unit = 10 ** max(len(str(count)) - digits, 0)
    return (count + unit // 2) // unit * unit


HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}">
<style>
rect {{ fill: #bcd4ec; }}
text {{ font: 13px sans-serif; fill: #10202f; text-anchor: middle; }}
.count {{ font-size: 11px; fill: #5a6b7d; }}
.arc {{ fill: none; stroke: #7f93a8; stroke-opacity: 0.75; }}
.head {{ fill: #5a6b7d; }}
</style>
<rect width="760" height="{height}" style="fill: #ffffff"/>
<text x="380" y="24">The rooms: bars are as long as their code, an arrow leads from who includes to who is included, with how often</text>
"""
STEP, MIDDLE, LONGEST = 48, 380, 230


def arc(one, other, side, steepness, count):
    """An arrow on one side of the boxes (-1: left, 1: right) between two (y, half of the width), with its count beside it."""
    (y, half), (to, to_half) = one, other
    x, end = MIDDLE + side * (half + 4), MIDDLE + side * (to_half + 4)
    out = MIDDLE + side * (90 + steepness * (to - y))
    apex = round(0.125 * x + 0.75 * out + 0.125 * end)
    yield f'<path class="arc" stroke-width="{0.7 * count.bit_length():.1f}" d="M{x} {y} C{out:g} {y} {out:g} {to} {end + side * 7} {to}"/>'
    yield f'<path class="head" d="M{end} {to} l{side * 9} -4 v8 z"/>'
    yield f'<text class="count" x="{apex + side * 12}" y="{(y + to) // 2 + 4}">{count}</text>'


def draw(files, edges):
    """The rooms from the ground up. Arrows to the ground floor are on the left, all others on the right."""
    lines = collections.Counter()
    for path in files:
        lines[room(path)] += (ROOT / path).read_text(encoding="utf-8").count("\n")
    arrows = collections.Counter((room(source), room(target)) for source, target in edges if room(source) != room(target))
    rooms = [name for name in reversed(FLOOR) if lines[name]]

    longest = rounded(max(lines.values()), 2)

    boxes, place = [], {}
    for row, name in enumerate(rooms):
        y, length = 62 + row * STEP, max(rounded(lines[name], 2) * LONGEST // longest, 3)
        text = f"{name}: {rounded(lines[name], 2):,} lines".replace(",", " ")
        boxes.append(f'<rect x="{MIDDLE - length // 2}" y="{y - 14}" width="{length}" height="28" rx="3"/>')
        boxes.append(f'<text x="{MIDDLE}" y="{y + 5}">{text}</text>')
        place[name] = (y, max(length // 2, 4 * len(text)))
    arcs, steepness = [], 350 / ((len(rooms) - 1) * STEP)
    for (one, other), count in sorted(arrows.items()):
        arcs += arc(place[one], place[other], -1 if FLOOR[other] == 0 else 1, steepness, rounded(count, 1))
    return HEAD.format(height=62 + len(rooms) * STEP - 20) + "\n".join([*arcs, *boxes, "</svg>", ""])


def main(command, *arguments):
    files = list(sources())
    homeless = sorted({room(path) for path in files} - FLOOR.keys())
    if homeless:
        sys.exit(f"house: no place in the order of scripts/house.py for {', '.join(homeless)}")
    edges = [(path, target) for path in files for target in included(path)]
    if command == "draw":
        pathlib.Path(*arguments).write_text(draw(files, edges), encoding="utf-8")
        return
    headers = [path.relative_to(ROOT) for path in sorted((ROOT / "include").rglob("*.h"))]
    faults = [*upward(edges), *mutual(edges), *crowded(), *claims_named_outside(files, edges), *devices_named_outside(edges),
              *long_dialects(), *private_in_public(), *twice_named([*files, *headers]),
              *hidden_types([*(path for path in files if path.suffix == ".h"), *headers]),
              *headers_of_one_name(path for path in files if path.suffix == ".h")]
    print("\n".join(faults) if faults else f"house: {len(files)} files and {len(edges)} includes in order")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
