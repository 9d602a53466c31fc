#include "rlx/export.h"

#include <memory>

#include "command.h"
#include "graph_input.h"
#include "rlx/sentence_encoder.h"

namespace rlx::command {
namespace {

struct ExportOptions {
  std::string target, graph, out, description;
  std::vector<std::string> params, sizes;
};

/// A folder or a GGUF file: an encoder of texts.
bool is_model(const std::filesystem::path& path) { return std::filesystem::is_directory(path) || path.extension() == ".gguf"; }

void export_graph(const ExportOptions& options) {
  SavedGraph saved = is_model(options.graph) ? SentenceEncoder::saved(options.graph) : read_graph(options.graph);
  read_arrays(options.params, saved.weights);
  const std::map<std::string, std::int64_t> given = parse_sizes(options.sizes);
  export_coreml(options.out, saved, {.sizes = {given.begin(), given.end()}, .description = options.description});
}

}  // namespace

void add_export(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write a graph as a program of another system");
  command->add_option("--target", options->target, "coreml: a package for macOS 14, iOS 17 and newer")
      ->required()
      ->type_name("TARGET")
      ->check(CLI::IsMember(std::vector<std::string>{"coreml"}));
  command
      ->add_option("graph", options->graph,
                   "File with a graph in text form, or a graph file; a folder or GGUF file of a sentence encoder; - reads standard input")
      ->required()
      ->type_name("GRAPH|MODEL");
  command->add_option("out", options->out, "Folder to write, as a rule NAME.mlpackage; it must not exist")->required()->type_name("OUT");
  command->add_option("--param", options->params, "Values of parameters: NAME=FILE.npy, NAME=FILE.safetensors or FILE.safetensors")
      ->type_name("VALUES");
  command->add_option("--size", options->sizes, "Size of a symbol, as a package has fixed shapes: NAME=SIZE")->type_name("NAME=SIZE");
  command->add_option("--description", options->description, "What Xcode shows of the model");
  command->footer(
      "Example:\n  rlx save mlp.rlx --param weights.safetensors -o mlp.graph\n  rlx export --target coreml mlp.graph mlp.mlpackage\n"
      "  rlx export --target coreml all-MiniLM-L6-v2 MiniLM.mlpackage --size B=1 --size S=128");
  command->callback([options] { export_graph(*options); });
}

}  // namespace rlx::command
