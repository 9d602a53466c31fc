#include <map>
#include <memory>

#include "command.h"
#include "graph_input.h"
#include "rlx/session.h"

namespace rlx::command {
namespace {

struct Options {
  std::string graph, stage;
  bool no_claims = false, no_fusion = false;
};

const std::map<std::string, Stage> stages{{"hir", Stage::hir}, {"mir", Stage::mir}, {"lir", Stage::lir}, {"kernels", Stage::kernels}};

void dump(const Options& options) {
  const Graph graph = read_graph(options.graph).graph;
  SessionOptions session_options;
  session_options.claims = !options.no_claims;
  session_options.fuse = !options.no_fusion;
  std::string text = Session(Device::cpu(), session_options).compile(graph).dump(stages.at(options.stage));
  if (!text.ends_with('\n')) text += '\n';
  fmt::print("{}", text);
}

}  // namespace

void add_dump(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("dump", "Print what a graph becomes on its way to machine code");
  command->add_option("graph", options->graph, "File with a graph in text form, or a graph file; - reads standard input")
      ->required()
      ->type_name("GRAPH");
  command
      ->add_option("--stage", options->stage,
                   "hir: as given; mir: as primitives and claims; lir: launches with the memory plan; kernels: their code")
      ->required()
      ->type_name("STAGE")
      ->check(CLI::IsMember(std::vector<std::string>{"hir", "mir", "lir", "kernels"}));
  command->add_flag("--no-claims", options->no_claims, "Generate all kernels; use none written by hand");
  command->add_flag("--no-fusion", options->no_fusion, "One kernel for each node");
  command->footer("Example:\n  rlx dump softmax.rlx --stage kernels");
  command->callback([options] { dump(*options); });
}

}  // namespace rlx::command
