"""The parameters of the builders that scripts/op_declarations.py finds: their kinds, their words, and the options that structures hold."""
import re

KINDS = {"Operand": "operand", "Value": "operand", "Operands": "operands", "Values": "operands", "bool": "boolean", "std::int64_t": "integer",
         "int": "integer", "Axis": "integer", "double": "number", "std::string": "text", "std::string_view": "text", "DType": "dtype",
         "std::vector<std::int64_t>": "integers", "Axes": "integers", "std::vector<double>": "numbers", "Dim": "size", "Dims": "sizes"}
BRACKETS = {"(": 1, "<": 1, "{": 1, ")": -1, ">": -1, "}": -1}
ENUM = re.compile(r"^enum class (\w+)[^{]*\{([^}]*)\};", re.M)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.M | re.S)


def split(text):
    """At the commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(text):
        if letter == ">" and text[i - 1] == "-":
            continue
        depth += BRACKETS.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [part.strip() for part in parts + [text[begin:]] if part.strip()]


class Types:
    """The enumerations and structures of options of rlx/op_types.h."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.words = {name: split(words) for name, words in ENUM.findall(text)}
        self.options = {name: list(self.members(body)) for name, body in STRUCT.findall(text) if "(" not in re.sub("//.*", "", body)}

    def members(self, body):
        for statement in re.sub("//.*", "", body).split(";"):
            first, *others = split(" ".join(statement.split())) or [""]
            if not first:
                continue
            type_, name, initial = declared(first)
            yield type_, name, initial
            for other in others:
                name, _, initial = other.partition("=")
                yield type_, name.strip(), initial.strip() or "{}"

    def kind(self, type_):
        """Of a parameter of that type, and its words."""
        if optional := re.fullmatch(r"std::optional<(.*)>", type_):
            return self.kind(optional[1])
        if type_ in self.words:
            return "word", self.words[type_]
        if type_.startswith("std::function<"):
            return "function", []
        if type_.startswith("std::vector<std::function<"):
            return "functions", []
        return KINDS.get(type_), []


def declared(text):
    """Type, name and initial value of `const T& name = initial`; no initial value: None."""
    declaration, equals, initial = text.partition(" = ")
    type_, name = re.fullmatch(r"(.*?)&?\s+&?(\w+)", re.sub(r"^const ", "", declaration.strip()), re.S).groups()
    return " ".join(type_.split()), name, initial.strip() if equals else None


class Parameters:
    """Those of one declaration; `known` is false where some cannot be handed over by name."""

    def __init__(self, declaration, types):
        self.items = []  # name, kind, initial value or None, words
        self.arguments = []  # C++ that reads them
        inside = declaration[declaration.index("(") + 1 : declaration.rindex(")")]
        for type_, name, initial in map(declared, split(inside)):
            if type_ in types.options:
                self.add_options(type_, types)
            else:
                at = self.add(type_, name, initial, types)
                self.arguments.append(f"a.get<{stored(type_)}>({at}{'' if initial is None or initial == '{}' and 'Operand' in type_ else f', {typed(type_, initial)}'})")
        self.known = all(kind for _, kind, _, _ in self.items)

    def add(self, type_, name, initial, types):
        kind, words = types.kind(type_)
        self.items.append((name, kind, None if initial is None else re.sub(r"^(DType|[A-Z]\w+)::", "", initial), words))
        return len(self.items) - 1

    def add_options(self, type_, types):
        sets = [f"a.set({self.add(member, name, initial, types)}, o.{name});" for member, name, initial in types.options[type_]]
        self.arguments.append(f"[&] {{ {type_} o; {' '.join(sets)} return o; }}()")


def stored(type_):
    return "std::string" if type_ == "std::string_view" else type_


def typed(type_, initial):
    return f"{type_}{initial}" if initial.startswith("{") else f"{type_}({initial})"
