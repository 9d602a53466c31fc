#include "reports/workload.h"

#include <algorithm>
#include <optional>

#include "files/graph_input.h"
#include "models/layers/encoder.h"
#include "models/run/caches/cached_decoder.h"
#include "models/weights/decoder_files.h"
#include "rlx/model.h"
#include "runtime/reports/example_values.h"

namespace rlx::command {
namespace {

constexpr std::int64_t largest_batch = 4096;

/// The encoder of a model folder. Its weights need not be read: no time depends on their values.
SavedGraph encoder_graph(const DecoderConfig& config) {
  Graph graph("encoder");
  graph.output("last_hidden_state", encode_text(Flow(graph), config, largest_batch, config.max_positions).states.back());
  return {graph, {}};
}

/// A run that reads a prompt, or that writes one token behind others. Which they are changes no time.
LoadedWorkload language_model(const Workload& work, const CompileChoices& choices) {
  constexpr std::int64_t usual_prompt = 512;
  if (!work.inputs.empty() || !work.sizes.empty()) throw CLI::ValidationError("--in and --size", "are not for language models");
  Session session = open_session(choices, work.model);
  const DecoderFiles files = DecoderFiles::open(work.model);
  const std::int64_t past = work.tokens, count = past > 0 ? 1 : work.prompt > 0 ? work.prompt : usual_prompt;
  const CachedDecoder decoder(session, files,
                              {.context = past + count, .chunk = count, .cache = resolved(CacheType::usual, session.precision())});
  return {std::move(session), decoder.executable(), decoder.inputs(past, count), decoder.memory_needs().front()};
}

/// A program from a file. Values that it has stay.
LoadedWorkload program(const Workload& work, const CompileChoices& choices) {
  Executable executable = open_program(choices, work.graph);
  const Graph& graph = ProgramFile::graph(executable);
  NamedArrays given;
  read_arrays(work.inputs, given);
  NamedArrays values = given;
  fill_missing(graph, parse_sizes(work.sizes), work.default_size, values);
  const std::vector<std::string> missing = executable.missing_params();
  for (const auto& [input, value] : graph.inputs())
    if (input.kind != InputKind::input && !given.contains(input.name) && std::ranges::find(missing, input.name) == missing.end())
      values.erase(input.name);
  auto inputs = bind_values(executable, graph, values);
  const MemoryNeed memory = memory_need(graph, executable.arena_bytes());
  return {open_session(choices), std::move(executable), std::move(inputs), memory};
}

}  // namespace

void add_workload(CLI::App& command, Workload& work) {
  CLI::Option* graph =
      command
          .add_option("graph", work.graph,
                      "File with a graph in text form, a graph file, or a program of 'rlx compile'; - reads standard input")
          ->type_name("GRAPH");
  CLI::Option* model = command.add_option("--model", work.model, "A model instead of a graph: a folder or a GGUF file");
  model->type_name("PATH")->excludes(graph);
  const auto count = [&](const char* name, std::int64_t& value, const char* text) {
    return command.add_option(name, value, text)->type_name("N")->needs(model)->check(CLI::Range(1, 1 << 20).description(""));
  };
  CLI::Option* prompt = count("--prompt", work.prompt, "Of a language model: a run that reads a prompt of N tokens (default: 512)");
  count("--tokens", work.tokens, "Of a language model: a run that writes one token behind N others")->excludes(prompt);
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

LoadedWorkload load(const Workload& work, const CompileChoices& choices) {
  if (work.graph.empty() && work.model.empty()) throw CLI::RequiredError("graph or --model");
  if (work.model.empty() && is_program_file(work.graph)) return program(work, choices);
  std::optional<DecoderConfig> config;
  if (!work.model.empty()) config = read_description(work.model);
  if (config && config->causal) return language_model(work, choices);
  if (work.prompt + work.tokens > 0) fail("{}: is no language model, which --prompt and --tokens are for (--size S=N)", work.model);
  const auto [graph, weights] = config ? encoder_graph(*config) : read_graph(work.graph);
  NamedArrays values;
  read_arrays(work.inputs, values);
  values.insert(weights.begin(), weights.end());
  std::map<std::string, std::int64_t> sizes = parse_sizes(work.sizes);
  if (!work.model.empty()) sizes.emplace("B", 1);
  fill_missing(graph, sizes, work.default_size, values);
  Session session = open_session(choices);
  Executable executable = session.compile(graph);
  auto inputs = bind_values(executable, graph, values);
  const MemoryNeed memory = memory_need(graph, executable.arena_bytes());
  return {std::move(session), std::move(executable), std::move(inputs), memory};
}

cpu::Roofline measure_roofline(const Session& session, const std::vector<LaunchReport>& launches) {
  if (session.device().name() == "cpu") return cpu::measure_roofline(session.threads(), launches);
  const DeviceFigures figures = session.device().figures();
  // WebGPU has no kernels of its own that measure it: there graphs show what memory gives.
  cpu::Roofline roofline{{{"f32", figures.flops}}, figures.bytes > 0 ? figures.bytes : figures.moved};
  for (const auto& [arithmetic, rate] : figures.products)  // a device may multiply narrow numbers faster than its code for f32 adds
    roofline.flops[arithmetic] = std::max(figures.flops, rate);
  std::erase_if(roofline.flops, [](const auto& each) { return each.second <= 0; });  // the device does not compute in it
  return roofline;
}

}  // namespace rlx::command
