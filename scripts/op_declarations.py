"""Writes the public header of all builders from the op sources, so that an op is written in one file.

usage: op_declarations.py OUT_HEADER SOURCE...

A builder is a function definition at the start of a line that returns Value or Values, with its `///` comment above. Default arguments
are written in the definition as comments, `Axis axis /*= -1*/`, and become real here. The scalar table (scalar.def) is read as well.
"""
import os
import re
import sys

HEADER = """// Generated from the op sources by scripts/op_declarations.py: the builders of every op.
#pragma once
#include <functional>
#include <optional>

#include "rlx/graph.h"
#include "rlx/op_types.h"

namespace rlx {
"""
BUILDER = re.compile(r"((?:^///[^\n]*\n)+)^((?:Value|Values|std::pair<[^\n(]*>) \w+\([^;]*?\)) \{", re.M)
ROW = re.compile(r'^SCALAR\((\w+), (\d),.*"([^"]*)"\)', re.M)


def declarations(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".def"):
        for name, operands, formula in ROW.findall(text):
            yield f"/// {formula}; operands are promoted and broadcast.\n" if operands == "2" else f"/// {formula}.\n"
            yield f"Value {name}({', '.join(('Operand x', 'Operand z')[: int(operands)])});\n\n"
        return
    for comment, signature in BUILDER.findall(text):
        signature = re.sub(r"/\*(= ?[^*]*)\*/", r"\1", signature)
        yield f"{comment}{signature};\n\n"


def main(out, sources):
    body = HEADER
    for path in sorted(sources):
        body += f"\n// {os.path.basename(path)}\n" + "".join(declarations(path))
    body = body.rstrip("\n") + "\n\n}  // namespace rlx\n"
    if os.path.exists(out):
        with open(out, encoding="utf-8") as file:
            if file.read() == body:
                return
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write(body)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
