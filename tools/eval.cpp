#include <memory>

#include "base/names.h"
#include "command.h"
#include "formats/npy.h"
#include "formats/tensor_view.h"
#include "graph_input.h"
#include "ir/reference.h"
#include "rlx/session.h"

namespace rlx::command {
namespace {

struct Options {
  std::string graph, out;
  std::vector<std::string> inputs, params;
  bool reference = false, no_claims = false, no_fusion = false;
  int threads = 0;
};

using NamedOutputs = std::vector<std::pair<std::string, Array>>;

NamedOutputs run_reference(const Graph& graph, NamedArrays values) {
  // A state that is not given is zero, as in an executable.
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind != InputKind::state || values.count(input.name) != 0 || !input.type.is_static()) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : input.type.shape) shape.push_back(dim.value());
    values.emplace(input.name, Array(input.type.dtype, shape));
  }
  std::vector<Array> arrays = evaluate(graph, values);
  NamedOutputs outputs;
  for (std::size_t i = 0; i < arrays.size(); ++i) outputs.emplace_back(graph.outputs()[i].first, std::move(arrays[i]));
  return outputs;
}

NamedOutputs run_compiled(const Graph& graph, const NamedArrays& values, const Options& options) {
  SessionOptions session_options;
  session_options.threads = options.threads;
  session_options.claims = !options.no_claims;
  session_options.fuse = !options.no_fusion;
  Executable executable = Session(Device::cpu(), session_options).compile(graph);
  const Outputs outputs = executable.run(bind_values(executable, graph, values));
  return {outputs.begin(), outputs.end()};
}

/// An output becomes the file DIR/<name>.npy, so a name must not lead elsewhere. Found before the time is spent.
void check_file_names(const Graph& graph) {
  for (const auto& [name, value] : graph.outputs()) {
    if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
      fail("graph '{}': output {} cannot be a file name (it is empty, begins with a dot, or has a slash)", graph.name(), quote_name(name));
  }
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("{}: {}", folder.string(), error.message());
}

void eval(const Options& options) {
  const auto [graph, weights] = read_graph(options.graph);
  check_file_names(graph);
  NamedArrays values;
  read_arrays(options.inputs, values);
  read_arrays(options.params, values);
  values.insert(weights.begin(), weights.end());  // those of a graph file, where the command line gives no other
  const NamedOutputs outputs = options.reference ? run_reference(graph, values) : run_compiled(graph, values, options);
  const std::filesystem::path folder(options.out);
  create_folder(folder);
  for (const auto& [name, array] : outputs) write_npy(folder / (name + ".npy"), array);
  fmt::print("{:<24} {:<20} {}\n", "output", "type", "file");
  for (const auto& [name, array] : outputs)
    fmt::print("{:<24} {:<20} {}\n", name, type_text(array.dtype(), array.shape()), (folder / (name + ".npy")).string());
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("eval", "Run a graph on arrays from files");
  command->add_option("graph", options->graph, "File with a graph in text form, or a graph file; - reads standard input")
      ->required()
      ->type_name("GRAPH");
  command->add_option("--in", options->inputs, "Value of an input or state, NAME=FILE.npy; or FILE.safetensors, its tensors by their names")
      ->type_name("NAME=FILE");
  command->add_option("--param", options->params, "Value of a parameter, in the same forms")->type_name("NAME=FILE");
  command->add_option("--out", options->out, "Folder for the results, one NAME.npy for each output; made when missing")
      ->required()
      ->type_name("DIR");
  command->add_flag("--reference", options->reference, "Use the plain loops that kernels are tested against, instead of compiling");
  command->add_flag("--no-claims", options->no_claims, "Generate all kernels; use none written by hand");
  command->add_flag("--no-fusion", options->no_fusion, "One kernel for each node");
  command->add_option("--threads", options->threads, "Threads to use (default: all that the process may use)")->check(CLI::Range(1, 1024));
  command->footer("Example:\n  rlx eval mlp.rlx --in x=x.npy --param w=w.npy --out results");
  command->callback([options] { eval(*options); });
}

}  // namespace rlx::command
