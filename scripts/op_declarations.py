"""Writes the public header of all builders from the op sources, so that an op is written in one file, and the same as the table of
rlx/registry.h.

usage: op_declarations.py OUT_HEADER OUT_TABLE TYPES SOURCE...     TYPES: rlx/op_types.h, which has the words and options of parameters

A builder is a function definition at the start of a line that returns Value or Values, with its `///` comment above. Default arguments
are written in the definition as comments, `Axis axis /*= -1*/`, and become real here. The scalar table (scalar.def) is read as well.
The ops that a builder makes by itself are those whose `name_op` object it calls, or a function that it shares with others of its file.
The group of an op and of its builders is the folder of src/ops in which they are written, or the file that lies in none.
"""
import os
import re
import sys

from op_parameters import Parameters, Types

HEADER = """// Generated from the op sources by scripts/op_declarations.py: the builders of every op.
#pragma once
#include <functional>
#include <optional>

#include "rlx/graph.h"
#include "rlx/op_types.h"

namespace rlx {
"""
TABLE = """// Generated from the op sources by scripts/op_declarations.py: the builders of rlx/ops.h by name, and the groups of ops.
#include "registry/arguments.h"
#include "rlx/ops.h"

namespace rlx {{
namespace {{

using Kind = ParameterKind;
inline Values list(Value value) {{ return {{value}}; }}
inline Values list(Values values) {{ return values; }}

{calls}
constexpr Builder table[] = {{
{rows}}};

// name of an op or a builder, group
constexpr GroupMember members[] = {{
{members}}};

}}  // namespace

std::span<const Builder> builders() {{ return table; }}
std::span<const GroupMember> group_members() {{ return members; }}

}}  // namespace rlx
"""
BUILDER = re.compile(r"((?:^///[^\n]*\n)+)^((?:Value|Values|std::pair<[^\n(]*>) (\w+)\([^;]*?\)) \{(.*?)(?:\}\n(?=\n|///|\}|Value)|^\}\n)", re.M | re.S)
ROW = re.compile(r'^SCALAR\((\w+), (\d), \w+, (\w+),.*"([^"]*)"\)', re.M)
OP_NAME = re.compile(r'^struct (\w+)[^\n]*\{(?:(?!^struct ).)*?string_view name = "(\w+)"', re.M | re.S)
FUNCTION = re.compile(r"^(?:Value|Values) (\w+)\([^;]*?\) \{(.*?)^\}\n", re.M | re.S)
NAME = re.compile(r"^ *static constexpr std::string_view name = ([^;]*);", re.M)  # also upper ? "igammac" : "igamma"
OP_OBJECT = re.compile(r"^const Op<(\w+)> (\w+);", re.M)


def declarations(path):
    """(name, declaration, comment, ops) of each builder of one source; the comment still has its slashes."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".def"):
        for name, operands, result, formula in ROW.findall(text):
            comment = f"/// {formula}; operands are promoted and broadcast.\n" if operands == "2" else f"/// {formula}.\n"
            yield name, f"Value {name}({', '.join(('Operand x', 'Operand z')[: int(operands)])});", comment, [name]
            if result == "boolean":
                comment = f"/// {formula}; a number takes the element type of the other operand, else Error.\n"
                yield name, f"Value {name}(Operand x, double z);\nValue {name}(double x, Operand z);", comment, [name]
        return
    names = dict(OP_NAME.findall(text))
    objects = {variable: names[struct] for struct, variable in OP_OBJECT.findall(text) if struct in names}
    builders = BUILDER.findall(text)
    public = {name for _, _, name, _ in builders}
    for name, body in FUNCTION.findall(text):  # what builders of the file share
        made = [objects[word] for word in re.findall(r"\w+", body) if word in objects]
        if made and name not in public:
            objects[name] = made[0]
    for comment, signature, name, body in builders:
        ops = list(dict.fromkeys(objects[word] for word in re.findall(r"\w+", body) if word in objects))
        yield name, re.sub(r"/\*(= ?[^*]*)\*/", r"\1", signature) + ";", comment, ops


def group_of(path):
    below = os.path.normpath(path).split(os.path.join("src", "ops", ""), 1)[-1]
    return below.split(os.sep)[0] if os.path.dirname(below) and not os.path.isabs(below) else os.path.splitext(os.path.basename(path))[0]


def op_names(path):
    """The ops that a file defines."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".def"):
        return [row[0] for row in ROW.findall(text)]
    return [name for value in NAME.findall(text) for name in re.findall(r'"(\w+)"', value)]


def write(path, text):
    """Leaves an unchanged file alone, so that nothing is compiled again."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def literal(text):
    return f'R"~({text})~"'


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Table:
    """The rows of the registry, and what they refer to."""

    def __init__(self, types):
        self.types, self.calls, self.rows, self.count = types, "", "", 0
        self.words = set()

    def add(self, name, declaration, comment, ops, group):
        """A row for each overload of the declaration."""
        for overload in re.split(r"(?<=;)\n", declaration):
            self.add_overload(name, overload, comment, ops, group)

    def add_overload(self, name, overload, comment, ops, group):
        parameters = Parameters(overload, self.types)
        gives_values = re.match("Values? ", overload) and parameters.known
        span, call = "{}", "nullptr"
        if gives_values:
            self.count += 1
            span, call = self.add_parameters(f"parameters_{self.count}", parameters), f"call_{self.count}"
            self.calls += f"Values {call}(const CallArguments& a) {{ return list({name}({', '.join(parameters.arguments)})); }}\n\n"
        plain = re.sub(r"^/// ?", "", comment, flags=re.M).rstrip("\n")
        several = "true" if overload.startswith("Values") else "false"
        self.rows += f'    {{"{name}", {literal(overload)}, {literal(plain)}, "{" ".join(ops)}", "{group}", {span}, {several}, {call}}},\n'

    def add_parameters(self, variable, parameters):
        rows = ""
        for name, kind, initial, words in parameters.items:
            required = "true" if initial is None else "false"
            rows += f'    {{"{name}", Kind::{kind}, {required}, {quoted(initial or "")}, {self.words_of(words)}}},\n'
        self.calls += f"constexpr BuilderParameter {variable}[] = {{\n{rows}}};\n"
        return variable

    def words_of(self, words):
        if not words:
            return "{}"
        variable = "words_" + "_".join(words)
        if variable not in self.words:
            self.words.add(variable)
            self.calls += f"constexpr std::string_view {variable}[] = {{{', '.join(map(quoted, words))}}};\n"
        return variable


def main(out_header, out_table, types, sources):
    header, table, groups = HEADER, Table(Types(types)), {}
    for path in sorted(sources, key=os.path.basename):
        found = list(declarations(path))
        if not path.endswith(".h"):
            header += f"\n// {os.path.basename(path)}\n"
        for name in op_names(path) + [declaration[0] for declaration in found]:
            groups.setdefault(name, group_of(path))
        for name, declaration, comment, ops in found:
            header += f"{comment}{declaration}\n\n"
            table.add(name, declaration, comment, ops, groups[name])
    write(out_header, header.rstrip("\n") + "\n\n}  // namespace rlx\n")
    members = "".join(f'    {{"{name}", "{group}"}},\n' for name, group in sorted(groups.items()))
    write(out_table, TABLE.format(calls=table.calls, rows=table.rows, members=members))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
