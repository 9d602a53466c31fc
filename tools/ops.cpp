#include <memory>

#include <fmt/ranges.h>

#include "command.h"
#include "op_description.h"

namespace rlx::command {
namespace {

struct Options {
  std::string name;
  bool markdown = false;
};

void print_table() {
  fmt::print("{:<28} {:<10} {}\n", "op", "kind", "what it computes");
  for (const auto& [name, op] : op_registry()) fmt::print("{:<28} {:<10} {}\n", name, kind_word(op->kind), op->formula);
}

void print_op(const OpDef& op) {
  fmt::print("{}: {}\n  {}\n  differentiable: {}\n", op.name, kind_word(op.kind), op.formula, differentiability(op));
  if (!op.fields.empty()) fmt::print("attributes\n");
  for (const Field& field : op.fields)
    fmt::print("  {:<28} {} (default {})\n", field.name, attribute_type(field), attribute_default(field));
  const auto examples = type_examples(op, 8);
  if (!examples.empty()) fmt::print("types\n");
  for (const std::string& example : examples) fmt::print("  {}\n", example);
  if (!examples.empty()) fmt::print("tested element types\n  {}\n", fmt::join(tested_dtypes(op), " "));
}

void ops(const Options& options) {
  if (options.markdown) fmt::print("{}", ops_document());
  else if (options.name.empty()) print_table();
  else print_op(find_op(options.name));
}

}  // namespace

void add_ops(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ops", "List the ops that graphs are made of, or describe one");
  CLI::Option* name =
      command->add_option("name", options->name, "The op to describe: its formula, attributes, types, and whether it has a derivative");
  name->type_name("NAME");
  command->add_flag("--markdown", options->markdown, "Print the whole reference, docs/ops.md")->excludes(name);
  command->footer("Example:\n  rlx ops softmax");
  command->callback([options] { ops(*options); });
}

}  // namespace rlx::command
