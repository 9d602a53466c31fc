#include <map>
#include <memory>

#include "command.h"
#include "files/graph_input.h"
#include "options/compile_choices.h"
#include "rlx/session.h"

namespace rlx::command {
namespace {

struct DumpOptions {
  std::string graph, stage;
  CompileChoices compile;
};

const std::map<std::string, Stage> stages{{"hir", Stage::hir}, {"mir", Stage::mir}, {"lir", Stage::lir}, {"kernels", Stage::kernels}};

Executable executable_of(const DumpOptions& options) {
  if (is_program_file(options.graph)) return open_program(options.compile, options.graph);
  const Graph graph = read_graph(options.graph).graph;
  const Session session = open_session(options.compile);
  Executable executable = session.compile(graph);
  warn_about_cache(session);
  return executable;
}

void dump(const DumpOptions& options) {
  const CompileChoices& choices = options.compile;
  if (options.stage == "hir" && (choices.no_claims || choices.no_fusion || choices.precision.value_or(Precision::f32) != Precision::f32))
    throw CLI::ValidationError("--stage hir excludes --no-claims, --no-fusion and --precision: it is the graph as given");
  std::string text = executable_of(options).dump(stages.at(options.stage));
  if (!text.ends_with('\n')) text += '\n';
  fmt::print("{}", text);
}

}  // namespace

void add_dump(CLI::App& app) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = app.add_subcommand("dump", "Print what a graph becomes on its way to machine code");
  command
      ->add_option("graph", options->graph,
                   "File with a graph in text form, a graph file, or a program of 'rlx compile'; - reads standard input")
      ->required()
      ->type_name("GRAPH");
  command
      ->add_option("--stage", options->stage,
                   "hir: as given; mir: as primitives and claims; lir: launches with the memory plan; kernels: their code")
      ->required()
      ->type_name("STAGE")
      ->check(CLI::IsMember(std::vector<std::string>{"hir", "mir", "lir", "kernels"}));
  add_kernel_choices(*command, options->compile);
  add_calibrated_precision(*command, options->compile);
  command->footer("Example:\n  rlx dump softmax.rlx --stage kernels");
  command->callback([options] { dump(*options); });
}

}  // namespace rlx::command
