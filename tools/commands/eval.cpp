#include <algorithm>
#include <memory>

#include "base/names.h"
#include "command.h"
#include "files/graph_input.h"
#include "formats/tensors/npy.h"
#include "formats/tensors/tensor_view.h"
#include "ir/reference.h"
#include "options/compile_choices.h"
#include "rlx/session.h"
#include "runtime/reports/example_values.h"

namespace rlx::command {
namespace {

struct EvalOptions {
  std::string graph, out;
  std::vector<std::string> inputs, params;
  bool reference = false;
  CompileChoices compile;
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

NamedOutputs run_executable(Executable executable, const Graph& graph, const NamedArrays& values) {
  const Outputs outputs = executable.run(bind_values(executable, graph, values));
  return {outputs.begin(), outputs.end()};
}

NamedOutputs run_compiled(const Graph& graph, const NamedArrays& values, const CompileChoices& choices) {
  const Session session = open_session(choices);
  NamedOutputs outputs = run_executable(session.compile(graph), graph, values);
  warn_about_cache(session);
  return outputs;
}

/// An output becomes the file DIR/<name>.npy: its name must not lead elsewhere. Found before the time is spent.
void check_outputs(const Graph& graph) {
  constexpr std::size_t longest_name = 224;  // of the 255 bytes of a file name, some are for .npy and the suffix while it is written
  if (graph.outputs().empty()) fail("graph '{}': it has no outputs", graph.name());
  for (const auto& [name, value] : graph.outputs()) {
    if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
      fail("graph '{}': output {} cannot be a file name (it is empty, begins with a dot, or has a slash)", graph.name(), quote_name(name));
    if (name.size() > longest_name)
      fail("graph '{}': output {} cannot be a file name ({} bytes, allowed: {})", graph.name(), quote_name(name), name.size(),
           longest_name);
  }
}

/// Values of --param are parameters, those of --in all other inputs.
void check_names(const Graph& graph, const NamedArrays& given, bool params) {
  const std::string_view what = params ? "parameter" : "input or state", option = params ? "--param" : "--in";
  std::map<std::string_view, InputKind> kinds;
  std::vector<std::string_view> fitting;
  for (const auto& [input, value] : graph.inputs()) {
    kinds.emplace(input.name, input.kind);
    if ((input.kind == InputKind::param) == params) fitting.push_back(input.name);
  }
  for (const auto& [name, array] : given) {
    const auto known = kinds.find(name);
    if (known == kinds.end()) fail("graph '{}': {} {} is unknown{}", graph.name(), what, quote_name(name), near_hint(name, fitting));
    if ((known->second == InputKind::param) != params)
      fail("graph '{}': {} is not a value for {} but for {}", graph.name(), quote_name(name), option, params ? "--in" : "--param");
  }
}

NamedArrays read_values(const Graph& graph, const EvalOptions& options) {
  NamedArrays values, params;
  read_arrays(options.inputs, values);
  read_arrays(options.params, params);
  check_names(graph, values, false);
  check_names(graph, params, true);
  values.merge(params);
  return values;
}

/// All files or none.
void write_outputs(const std::filesystem::path& folder, const NamedOutputs& outputs) {
  std::vector<FileWriter> files;
  for (const auto& [name, array] : outputs) files.push_back(begin_npy(folder / (name + ".npy"), array));
  FileWriter::commit_all(files);
}

/// How NumPy reads types that it does not have itself.
void explain_types(const std::filesystem::path& folder, const NamedOutputs& outputs) {
  const auto found = std::ranges::find_if(outputs, [](const auto& output) { return needs_ml_dtypes(output.second.dtype()); });
  if (found == outputs.end()) return;
  const auto& [name, array] = *found;
  fmt::print(
      "numpy.load reads {} once the package ml_dtypes is imported; without it, its raw bytes are numpy.fromfile({}, \"u{}\", offset={})\n",
      name, quote_name((folder / (name + ".npy")).string()), std::max(info(array.dtype()).bits / 8, 1), npy_header_bytes(array));
}

NamedOutputs eval_graph(const EvalOptions& options) {
  const auto [graph, weights] = read_graph(options.graph);
  check_outputs(graph);
  NamedArrays values = read_values(graph, options);
  values.insert(weights.begin(), weights.end());  // those of a graph file, where the command line gives no other
  return options.reference ? run_reference(graph, values) : run_compiled(graph, values, options.compile);
}

NamedOutputs eval_program(const EvalOptions& options) {
  if (options.reference) fail("{}: it is compiled, and --reference is for graphs", options.graph);
  const Executable executable = open_program(options.compile, options.graph);
  const Graph& graph = ProgramFile::graph(executable);
  check_outputs(graph);
  return run_executable(executable, graph, read_values(graph, options));
}

void eval(const EvalOptions& options) {
  const std::filesystem::path folder(options.out);
  const MadeFolder made(folder);  // before the time is spent
  const NamedOutputs outputs = is_program_file(options.graph) ? eval_program(options) : eval_graph(options);
  write_outputs(folder, outputs);
  fmt::print("{:<24} {:<20} {}\n", "output", "type", "file");
  for (const auto& [name, array] : outputs)
    fmt::print("{:<24} {:<20} {}\n", name, type_text(array.dtype(), array.shape()), (folder / (name + ".npy")).string());
  explain_types(folder, outputs);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Run a graph on arrays from files");
  command
      ->add_option("graph", options->graph,
                   "File with a graph in text form, a graph file, or a program of 'rlx compile'; - reads standard input")
      ->required()
      ->type_name("GRAPH");
  command
      ->add_option("--in", options->inputs,
                   "Value of an input or state: NAME=FILE.npy; NAME=FILE.safetensors, the tensor of that name or the only one "
                   "(FILE.safetensors:TENSOR: another); or FILE.safetensors, all its tensors by their names")
      ->type_name("NAME=FILE");
  command->add_option("--param", options->params, "Value of a parameter, in the same forms")->type_name("NAME=FILE");
  command->add_option("--out", options->out, "Folder for the results, one NAME.npy for each output; made when missing")
      ->required()
      ->type_name("DIR");
  CLI::Option* reference =
      command->add_flag("--reference", options->reference, "Use the plain loops that kernels are tested against, instead of compiling");
  for (CLI::Option* choice : add_kernel_choices(*command, options->compile)) reference->excludes(choice);
  for (CLI::Option* choice : add_calibrated_precision(*command, options->compile)) reference->excludes(choice);
  reference->excludes(add_tune(*command, options->compile));
  reference->excludes(add_threads(*command, options->compile));
  command->footer("Example:\n  rlx eval mlp.rlx --in x=x.npy --param w=w.npy --out results");
  command->callback([options] { eval(*options); });
}

}  // namespace rlx::command
