#include <memory>

#include "base/files/file_writer.h"
#include "command.h"
#include "files/graph_input.h"
#include "rlx/text.h"
#include "rlx/transform.h"

namespace rlx::command {
namespace {

struct GradOptions {
  std::string graph, out;
  std::vector<std::string> wrt;
  bool value = false;
};

void grad(const GradOptions& options) {
  const std::string text = to_text(grad_graph(read_graph(options.graph).graph, options.wrt, options.value));
  if (options.out.empty()) fmt::print("{}", text);
  else write_file(options.out, text);
}

}  // namespace

void add_grad(CLI::App& app) {
  auto options = std::make_shared<GradOptions>();
  CLI::App* command = app.add_subcommand("grad", "Print the graph that computes the gradient of a graph");
  command
      ->add_option("graph", options->graph, "File with a graph in text form, whose only output is a float scalar; - reads standard input")
      ->required()
      ->type_name("GRAPH");
  command->add_option("--wrt", options->wrt, "Names of the inputs and parameters to differentiate by, with commas between")
      ->required()
      ->delimiter(',')
      ->type_name("NAMES");
  command->add_flag("--value", options->value, "Keep the scalar itself as the first output");
  command->add_option("-o,--out", options->out, "Write the text to this file instead of standard output")->type_name("FILE");
  command->footer(
      "Output grad_<name> has the type of input <name>.\n\nExample:\n  rlx grad loss.rlx --wrt w,b | rlx eval - --in x=x.npy "
      "--param w=w.npy --param b=b.npy --out grads");
  command->callback([options] { grad(*options); });
}

}  // namespace rlx::command
