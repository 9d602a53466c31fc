#include <array>

#include <fmt/ranges.h>

#include "legacy_kinds.h"
#include "op_description.h"

namespace rlx::command {
namespace {

constexpr std::string_view introduction = R"(# Ops

Generated from the registry by `rlx ops --markdown`; do not edit. The C++ builders are in the generated header `rlx/ops.h`: they promote and
broadcast their operands, and some of them (`einsum`, `tile`, `roll`, `std_dev`...) build several of the ops below. In the text form of a graph
the ops are written as here, and operands of one node must have equal types where a formula combines their elements.

A **source** has no operands. A **scalar** op computes an element from the elements at the same place. A **structure** op only moves
elements: kernels read through it. A **primitive** has rules of its own. A **composite** is built from the others, which also gives its
derivative, its batching and its kernels.

NaN and infinities follow IEEE 754. In compiled programs denormal numbers of f32, f64 and bf16 count as the zero of their sign, as operands and
as results; the reference (`rlx eval --reference`) keeps them.

The shapes are examples, those that the generated tests run; sizes may be symbols.
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

std::string op_table() {
  std::string text = "| op | kind | what it computes | differentiable |\n|---|---|---|---|\n";
  for (const auto& [name, op] : op_registry())
    text += fmt::format("| [{0}](#{0}) | {1} | {2} | {3} |\n", name, kind_word(op->kind), code(cell(op->formula)),
                        cell(differentiability(*op)));
  return text;
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

std::string op_section(const OpDef& op) {
  std::string text =
      fmt::format("\n### {}\n\n{}, {}. Differentiable: {}.\n", op.name, kind_word(op.kind), code(op.formula), differentiability(op));
  text += attribute_table(op);
  const auto examples = type_examples(op, 3);
  if (examples.empty()) return text;
  text += "\n```\n";
  for (const std::string& example : examples) text += fmt::format("{}{}\n", op.name, example);
  text += "```\n";
  return text + fmt::format("Tested element types: {}\n", fmt::join(tested_dtypes(op), " "));
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
  std::string text = fmt::format("{}\n{} ops:\n\n{}\n## Every op\n", introduction, op_registry().size(), op_table());
  for (const auto& [name, op] : op_registry()) text += op_section(*op);
  return text + legacy_table();
}

}  // namespace rlx::command
