#include <algorithm>
#include <array>
#include <map>

#include <fmt/ranges.h>

#include "documents/builders.h"
#include "documents/legacy_kinds.h"
#include "documents/op_description.h"
#include "documents/op_groups.h"

namespace rlx::command {
namespace {

constexpr std::string_view introduction = R"(# Ops

Generated from the registry and the op sources by `rlx ops --markdown`; do not edit. Graphs are made of the ops, listed [by group](#index) and
described [by name](#every-op). The C++ functions that build them are in the generated header `rlx/ops.h`; each stands at its op, and those that
build several ops (`einsum`, `tile`, `roll`, `std_dev`...) in [a section of their own](#functions-built-from-ops). They promote and broadcast their
operands. In the text form of a graph the ops are written as here, and operands of one node must have equal types where a formula combines their
elements.

Where nothing else is said, the result of a function of one operand has its shape, and operands broadcast to one shape as in NumPy. Sizes may be
symbols. A negative axis counts from the end. What does not fit is an Error that names the function, what was given, what is allowed, and the line
of the call.

A **source** has no operands. A **scalar** op computes an element from the elements at the same place. A **structure** op only moves
elements: kernels read through it. A **primitive** has rules of its own. A **composite** is built from the others, which also gives its
derivative, its batching and its kernels.

NaN and infinities follow IEEE 754. In compiled programs denormal numbers of f32, f64 and bf16 count as the zero of their sign, as operands and
as results; the reference (`rlx eval --reference`) keeps them.

Values of f16, bf16 and 8-bit floats are computed in f32. The reference rounds the result of every op to its type. A compiled program rounds what it
stores and what a `cast` names: a value between two ops that fusion joins keeps all bits of f32, so that results differ from the reference's, and
from those of a graph that is cut otherwise (`rlx eval --no-fusion`), by about one rounding of the narrow type for each such value.

Types in blocks like `abs(f32[5]) -> f32[5]` are examples, those that the generated tests run.
)";

/// Fit for a cell of a table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// As code; text that has backticks of its own stands between double ones.
std::string code(std::string_view text) {
  return text.find('`') == std::string_view::npos ? fmt::format("`{}`", text) : fmt::format("`` {} ``", text);
}

/// Of a heading, as GitHub makes it.
std::string anchor(std::string heading) {
  std::replace(heading.begin(), heading.end(), ' ', '-');
  return heading;
}

std::string attribute_table(const OpDef& op) {
  if (op.fields.empty()) return "";
  std::string text = "\n| attribute | value | default |\n|---|---|---|\n";
  for (const Field& field : op.fields) {
    const std::string initial = attribute_default(field);
    text += fmt::format("| {} | {} | {} |\n", code(field.name), cell(attribute_type(field)), initial.empty() ? "" : code(cell(initial)));
  }
  return text;
}

/// Declarations and comments of the overloads of one name.
std::string builder_text(const std::vector<BuilderText>& overloads) {
  std::string text;
  for (const BuilderText& builder : overloads) text += fmt::format("\n```cpp\n{}\n```\n{}\n", builder.declarations, builder.comment);
  return text;
}

std::string links(const std::vector<std::string_view>& names) {
  std::vector<std::string> all;
  for (std::string_view name : names) all.push_back(fmt::format("[{0}](#{0})", name));
  return fmt::format("{}", fmt::join(all, ", "));
}

/// The table of a group, and the functions that are written with it.
std::string group_section(const std::string& title, const OpGroup& group) {
  std::string text = fmt::format("\n### {} ops\n\n", title);
  if (!group.ops.empty()) text += "| op | kind | what it computes | differentiable |\n|---|---|---|---|\n";
  for (const OpDef* op : group.ops)
    text += fmt::format("| [{0}](#{0}) | {1} | {2} | {3} |\n", op->name, kind_word(op->kind), code(cell(op->formula)),
                        cell(differentiability(*op)));
  if (!group.functions.empty()) text += fmt::format("\nBuilt from ops: {}.\n", links(group.functions));
  return text;
}

std::string index_by_group() {
  const auto groups = op_groups();
  std::vector<std::string> titles;
  for (const auto& [title, group] : groups) titles.push_back(fmt::format("[{}](#{})", title, anchor(title + " ops")));
  std::string text = fmt::format("\n## Index\n\n{} ops in {} groups: {}.\n", op_registry().size(), groups.size(), fmt::join(titles, ", "));
  for (const auto& [title, group] : groups) text += group_section(title, group);
  return text;
}

std::string op_section(const OpDef& op) {
  std::string text =
      fmt::format("\n### {}\n\n{}, {}. Differentiable: {}.\n", op.name, kind_word(op.kind), code(op.formula), differentiability(op));
  const auto overloads = builder_texts(op.name);
  const auto others = builders_making(op.name);
  if (overloads.empty() && !others.empty()) text += fmt::format("Built by {}.\n", links(others));
  text += builder_text(overloads);
  text += attribute_table(op);
  const auto examples = type_examples(op, 3);
  if (examples.empty()) return text;
  text += "\n```\n";
  for (const std::string& example : examples) text += fmt::format("{}{}\n", op.name, example);
  text += "```\n";
  return text + fmt::format("Tested element types: {}\n", fmt::join(tested_dtypes(op), " "));
}

/// Every builder that has not the name of an op.
std::string function_sections() {
  std::map<std::string_view, std::vector<const Builder*>> functions;
  for (const Builder& builder : builders())
    if (op_registry().count(builder.name) == 0) functions[builder.name].push_back(&builder);
  std::string text =
      fmt::format("\n## Functions built from ops\n\n{} functions of `rlx/ops.h` that have no op of their name.\n", functions.size());
  for (const auto& [name, overloads] : functions) {
    text += fmt::format("\n### {}\n{}", name, builder_text(builder_texts(name)));
    std::vector<std::string_view> made;
    for (const auto& [op, def] : op_registry())
      if (std::any_of(overloads.begin(), overloads.end(), [&](const Builder* builder) { return builder->makes(op); })) made.push_back(op);
    if (!made.empty()) text += fmt::format("Builds {}.\n", links(made));
  }
  return text;
}

std::string derivation_words(const LegacyKind& kind) {
  if (!missing_ops(kind).empty()) return "not yet";
  const auto ops = ops_of(kind);
  switch (kind.how) {
    case Derivation::op: return ops.size() == 1 ? std::string(kind_word(op_registry().at(ops.front())->kind)) : "ops";
    case Derivation::gradient: return "result of grad";
    case Derivation::fusion: return "result of fusion";
    case Derivation::extension: return "op of one's own";
  }
  return "";
}

std::string legacy_table() {
  std::string text =
      "\n## Op kinds of the first RLX\n\nWhere each op kind of the first RLX (the Rust project MIT-RLX/rlx) is found here. `not yet`: the "
      "op that is named is not\n"
      "in the registry.\n\n| kind | here | ops | note |\n|---|---|---|---|\n";
  for (const LegacyKind& kind : legacy_kinds()) {
    std::vector<std::string> ops;
    for (std::string_view op : ops_of(kind)) ops.push_back(op_registry().count(op) != 0 ? fmt::format("[{0}](#{0})", op) : code(op));
    text += fmt::format("| {} | {} | {} | {} |\n", kind.name, derivation_words(kind), fmt::join(ops, ", "), cell(kind.note));
  }
  return text;
}

}  // namespace

std::string ops_document() {
  std::string text = fmt::format("{}{}\n## Every op\n", introduction, index_by_group());
  for (const auto& [name, op] : op_registry()) text += op_section(*op);
  return text + function_sections() + legacy_table();
}

}  // namespace rlx::command
