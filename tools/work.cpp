#include "work.h"

#include "graph_input.h"
#include "models/decoder_family.h"
#include "models/decoder_files.h"
#include "models/encoder.h"
#include "models/model_folder.h"

namespace rlx::command {
namespace {

constexpr std::int64_t largest_batch = 4096;

/// The encoder of a model folder. Its weights need not be read: no time depends on their values.
SavedGraph model_graph(const std::string& path) {
  const ModelFolder folder = ModelFolder::open(path);
  const DecoderConfig config = family_of(folder).read(folder.config());
  if (config.causal) fail("{}: the model continues texts; one that encodes them is needed, such as BERT", path);
  Graph graph("encoder");
  graph.output("last_hidden_state", encode_text(Flow(graph), config, largest_batch, config.max_positions).states.back());
  return {graph, {}};
}

}  // namespace

void add_work(CLI::App& command, Work& work) {
  CLI::Option* graph = command.add_option("graph", work.graph, "File with a graph in text form, or a graph file; - reads standard input")
                           ->type_name("GRAPH");
  command.add_option("--model", work.model, "The encoder of this folder, by its config.json, instead of a graph")
      ->type_name("DIR")
      ->excludes(graph);
  command
      .add_option("--in", work.inputs,
                  "Value of an input, parameter or state, NAME=FILE.npy or NAME=FILE.safetensors[:TENSOR]; what is not given is made up")
      ->type_name("NAME=FILE");
  command.add_option("--size", work.sizes, "Size of a symbol, NAME=SIZE")->type_name("NAME=SIZE");
  command.add_option("--default-size", work.default_size, "Size of the other symbols, but at most their bounds")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20).description(""));
}

LoadedWork load(const Work& work, const CompileChoices& choices) {
  if (work.graph.empty() && work.model.empty()) throw CLI::RequiredError("graph or --model");
  const auto [graph, weights] = work.model.empty() ? read_graph(work.graph) : model_graph(work.model);
  NamedArrays values;
  read_arrays(work.inputs, values);
  values.insert(weights.begin(), weights.end());
  std::map<std::string, std::int64_t> sizes = parse_sizes(work.sizes);
  if (!work.model.empty()) sizes.emplace("B", 1);
  fill_missing(graph, sizes, work.default_size, values);
  Session session = open_session(choices);
  Executable executable = session.compile(graph);
  auto inputs = bind_values(executable, graph, values);
  return {std::move(session), std::move(executable), std::move(inputs)};
}

}  // namespace rlx::command
