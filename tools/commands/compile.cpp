#include <algorithm>
#include <memory>
#include <set>

#include "base/names.h"
#include "command.h"
#include "files/graph_input.h"
#include "options/compile_choices.h"
#include "rlx/program_file.h"

namespace rlx::command {
namespace {

struct CompileOptions {
  std::string graph, out;
  std::vector<std::string> params, levels;
  bool weights_inside = false;
  CompileChoices compile;
};

/// Where the values of parameters and states are: those of the command line, then those of a graph file.
std::vector<ProgramFile::Source> sources_of(const CompileOptions& options, const SavedGraph& saved) {
  std::vector<ProgramFile::Source> sources = value_sources(options.params);
  std::set<std::string> given;
  for (const ProgramFile::Source& source : sources)
    if (!given.insert(source.name).second) fail("a value for {} is given twice", quote_name(source.name));
  for (const auto& [name, array] : saved.weights)
    if (given.insert(name).second) sources.push_back({name, options.graph, name});
  return sources;
}

void check_names(const Graph& graph, const std::vector<ProgramFile::Source>& sources) {
  std::vector<std::string_view> known;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind != InputKind::input) known.push_back(input.name);
  for (const ProgramFile::Source& source : sources)
    if (std::ranges::find(known, source.name) == known.end())
      fail("graph '{}': parameter or state {} is unknown{}", graph.name(), quote_name(source.name), near_hint(source.name, known));
}

Executable compiled(const CompileOptions& options, const SavedGraph& saved, const NamedArrays& values, const std::string& level) {
  const Session session = open_session_at(options.compile, level);
  Executable executable = session.compile(saved.graph);
  for (const auto& [input, value] : saved.graph.inputs())
    if (const auto found = values.find(input.name); found != values.end()) {
      if (input.kind == InputKind::state) executable.set_state(input.name, found->second);
      else executable.set_param(input.name, found->second);
    }
  warn_about_cache(session);
  return executable;
}

void compile(const CompileOptions& options) {
  const SavedGraph saved = read_graph(options.graph);
  const std::vector<ProgramFile::Source> sources = sources_of(options, saved);
  check_names(saved.graph, sources);
  NamedArrays values;
  read_arrays(options.params, values);
  values.insert(saved.weights.begin(), saved.weights.end());
  std::vector<Executable> executables;
  for (const std::string& level : options.levels.empty() ? std::vector<std::string>{""} : options.levels)
    executables.push_back(compiled(options, saved, values, level));
  if (options.weights_inside) ProgramFile::save(options.out, executables, {}, ProgramFile::Weights::inside);
  else ProgramFile::save(options.out, executables, sources);
  for (const auto& [input, value] : saved.graph.inputs()) {
    if (input.kind == InputKind::input) continue;
    const auto source = std::ranges::find(sources, input.name, &ProgramFile::Source::name);
    fmt::print("{:<24} {:<20} {}\n", input.name, input.type.to_string(),
               source == sources.end()  ? "no value"
               : options.weights_inside ? "inside"
                                        : source->file.string());
  }
  fmt::print("{}: hash {}\n", options.out, ProgramFile::hash(options.out));
}

}  // namespace

void add_compile(CLI::App& app) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand("compile", "Write a graph as a program, which 'rlx eval' opens without compiling");
  command->add_option("graph", options->graph, "File with a graph in text form, or a graph file; - reads text from standard input")
      ->required()
      ->type_name("GRAPH");
  command
      ->add_option("-o,--out", options->out, "The file to write, FILE.rlxp; its code is for this version of RLX and this kind of machine")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--param", options->params,
                   "Value of a parameter or state, NAME=FILE.npy or NAME=FILE.safetensors[:TENSOR]; or FILE.safetensors, its tensors by "
                   "their names. The program says where these files are, and what their hashes were")
      ->type_name("NAME=FILE");
  command->add_flag("--weights-inside", options->weights_inside, "Write the values into the file");
  command
      ->add_option(
          "--levels", options->levels,
          "Instruction sets of the CPU, such as avx2,avx512: a program for each; 'rlx eval' takes the highest that it has (default: "
          "the highest of this CPU)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LEVEL");
  add_kernel_choices(*command, options->compile);
  add_calibrated_precision(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer(
      "The file holds machine code: open files of those whom you trust alone.\n\nExample:\n  rlx compile mlp.rlx --param w=w.npy -o "
      "mlp.rlxp\n  rlx eval mlp.rlxp --in x=x.npy --out results");
  command->callback([options] { compile(*options); });
}

}  // namespace rlx::command
