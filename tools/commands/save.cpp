#include <memory>

#include "command.h"
#include "files/graph_input.h"

namespace rlx::command {
namespace {

struct SaveOptions {
  std::string graph, out;
  std::vector<std::string> params;
};

void save(const SaveOptions& options) {
  SavedGraph saved = read_graph(options.graph);
  NamedArrays given;
  read_arrays(options.params, given);
  given.merge(saved.weights);  // those of a graph file, where the command line gives no other
  saved.weights = std::move(given);
  save_graph(options.out, saved);
  for (const auto& [input, value] : saved.graph.inputs()) {
    if (input.kind == InputKind::input) continue;
    const auto weight = saved.weights.find(input.name);
    fmt::print("{:<24} {:<20} {}\n", input.name, input.type.to_string(), weight == saved.weights.end() ? "no value" : "saved");
  }
}

}  // namespace

void add_save(CLI::App& app) {
  auto options = std::make_shared<SaveOptions>();
  CLI::App* command = app.add_subcommand("save", "Write a graph with its weights to one file");
  command->add_option("graph", options->graph, "File with a graph in text form, or a graph file; - reads text from standard input")
      ->required()
      ->type_name("GRAPH");
  command
      ->add_option(
          "--param", options->params,
          "Value of a parameter or state, NAME=FILE.npy or NAME=FILE.safetensors[:TENSOR]; or FILE.safetensors, its tensors by their names")
      ->type_name("NAME=FILE");
  command
      ->add_option("-o,--out", options->out, "The file to write: safetensors with the graph as metadata; rlx::load_graph reads it in C++")
      ->required()
      ->type_name("FILE");
  command->footer(
      "Lists the parameters and states of the graph, and which of them have a value in the file.\n\nExample:\n  rlx save mlp.rlx --param "
      "w=w.npy --out mlp.safetensors\n  rlx eval mlp.safetensors --in x=x.npy --out results");
  command->callback([options] { save(*options); });
}

}  // namespace rlx::command
