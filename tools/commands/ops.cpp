#include <algorithm>
#include <memory>

#include <fmt/ranges.h>

#include "base/names.h"
#include "command.h"
#include "documents/builders.h"
#include "documents/op_description.h"
#include "documents/op_groups.h"

namespace rlx::command {
namespace {

struct OpsOptions {
  std::string name;
  bool markdown = false, coverage = false;
};

void print_table() {
  fmt::print("{:<28} {:<10} {}\n", "op", "kind", "what it computes");
  for (const auto& [title, group] : op_groups()) {
    fmt::print("\n{}\n", title);
    for (const OpDef* op : group.ops) fmt::print("  {:<26} {:<10} {}\n", op->name, kind_word(op->kind), op->formula);
    if (!group.functions.empty()) fmt::print("  {:<26} {:<10} {}\n", "built from ops", "", fmt::join(group.functions, ", "));
  }
}

void print_builders(const std::vector<BuilderText>& overloads) {
  for (const BuilderText& builder : overloads) {
    fmt::print("{}\n", builder.declarations);
    for (std::string_view rest = builder.comment; !rest.empty();) {
      const auto end = std::min(rest.find('\n'), rest.size());
      fmt::print("  {}\n", rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

void print_op(const OpDef& op) {
  fmt::print("{}: {}\n  {}\n  differentiable: {}\n", op.name, kind_word(op.kind), op.formula, differentiability(op));
  const auto overloads = builder_texts(op.name);
  const auto others = builders_making(op.name);
  if (!overloads.empty()) print_builders(overloads);
  else if (!others.empty()) fmt::print("built by {}\n", fmt::join(others, ", "));
  if (!op.fields.empty()) fmt::print("attributes\n");
  for (const Field& field : op.fields)
    fmt::print("  {:<28} {} (default {})\n", field.name, attribute_type(field), attribute_default(field));
  const auto examples = type_examples(op, 8);
  if (!examples.empty()) fmt::print("types\n");
  for (const std::string& example : examples) fmt::print("  {}\n", example);
  if (!examples.empty()) fmt::print("tested element types\n  {}\n", fmt::join(tested_dtypes(op), " "));
}

/// An op, or a function of rlx/ops.h that builds several.
void print_named(const std::string& name) {
  if (const auto op = op_registry().find(name); op != op_registry().end()) return print_op(*op->second);
  const auto overloads = builder_texts(name);
  if (!overloads.empty()) return print_builders(overloads);
  std::vector<std::string_view> known;
  for (const auto& [op, def] : op_registry()) known.push_back(op);
  for (const Builder& builder : builders()) known.push_back(builder.name);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  fail("op '{}' is unknown{}", name, near_hint(name, known));
}

void ops(const OpsOptions& options) {
  if (options.markdown) fmt::print("{}", ops_document());
  else if (options.coverage) fmt::print("{}", coverage_document());
  else if (options.name.empty()) print_table();
  else print_named(options.name);
}

}  // namespace

void add_ops(CLI::App& app) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* command = app.add_subcommand("ops", "List the ops that graphs are made of, by group, or describe one");
  CLI::Option* name = command->add_option("name", options->name, "The op or function of rlx/ops.h to describe");
  name->type_name("NAME");
  command->add_flag("--markdown", options->markdown, "Print the whole reference, docs/ops.md")->excludes(name);
  command->add_flag("--coverage", options->coverage, "Print what each device computes of each op, docs/coverage.md")->excludes(name);
  command->footer("Example:\n  rlx ops softmax");
  command->callback([options] { ops(*options); });
}

}  // namespace rlx::command
