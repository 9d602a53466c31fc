#include "models/run/caches/divided_executable.h"

#include "backends/backend.h"
#include "base/bytes_text.h"
#include "models/families/layer_name.h"
#include "models/run/caches/split.h"

namespace rlx {
namespace {

std::size_t part_of_layer(std::span<const LayersOn> parts, std::int64_t layer) {
  std::size_t part = 0;
  for (; part + 1 < parts.size() && layer >= parts[part].layers; ++part) layer -= parts[part].layers;
  return part;
}

/// How many of a part's layers would fit into so many bytes, beside what belongs to none.
std::size_t layers_within(std::int64_t bytes, const Graph& graph, const MemoryNeed& need) {
  std::map<std::int64_t, std::int64_t> layers;  // weights and caches
  const auto symbols = graph.symbols();
  for (const auto& [input, value] : graph.inputs())
    if (const auto named = layer_name(input.name, "layers"))
      layers[named->layer] += bytes_for(input.type.dtype, input.type.size().evaluate(Bindings(symbols.begin(), symbols.end())));
  bytes -= need.all();
  for (const auto& [layer, size] : layers) bytes += size;
  std::size_t count = 0;
  for (const auto& [layer, size] : layers) {
    bytes -= size;
    if (bytes >= 0) ++count;
  }
  return count;
}

/// Throws Error where a part does not fit.
void check_room(const LayersOn& part, const DecoderFiles& model, const Graph& graph, const MemoryNeed& need) {
  const Device& device = part.session.device();
  const DeviceMemory* const memory = device.backend().memory();
  const auto room = memory ? memory->room() : std::nullopt;
  if (!room || need.all() <= room->free) return;
  const std::size_t fitting = layers_within(room->free, graph, need);
  const std::string fewer = fitting > 0 ? fmt::format("--layers-on {}={}, ", device.name(), fitting) : "";
  fail(
      "{}: {} layers take {} of {} (weights {}, caches {}, scratch {}), where {} of {} are free (what may fit: {}a shorter --context, "
      "weights of fewer bits by 'rlx quantize')",
      model.checkpoint.name(), part.layers, bytes_text(need.all()), device.name(), bytes_text(need.parameters), bytes_text(need.states),
      bytes_text(need.scratch), bytes_text(room->free), bytes_text(room->all), fewer);
}

/// What belongs to no layer but stands behind them belongs to the last part, as what it is computed from does.
std::vector<Graph> split_by_layers(const Graph& graph, std::span<const LayersOn> parts) {
  if (parts.size() == 1) return {graph};
  return split_graph(graph, parts.size(), [&](const Input& input) -> std::optional<std::size_t> {
    if (const auto named = layer_name(input.name, "layers")) return part_of_layer(parts, named->layer);
    return std::nullopt;
  });
}

}  // namespace

std::vector<LayersOn> all_layers_on(std::span<const LayersOn> layers_on, const Session& session, const DecoderConfig& config) {
  auto left = static_cast<std::int64_t>(config.layers.size());
  std::vector<LayersOn> parts(layers_on.begin(), layers_on.end());
  for (const LayersOn& part : parts) {
    if (part.layers < 1 || part.layers > left)
      fail("layers on {}: {} (allowed: 1..{}, as the model has {})", part.session.device().name(), part.layers, left, config.layers.size());
    left -= part.layers;
  }
  if (left > 0) parts.push_back({session, left});
  return parts;
}

DividedExecutable::DividedExecutable(std::span<const LayersOn> parts, const DecoderFiles& model, const Graph& graph) {
  // Before compiling, which takes longer: they may not be what the config says.
  const NamedArrays weights = model.weights(graph, parts.back().session.threads());
  const std::vector<Graph> graphs = split_by_layers(graph, parts);
  for (std::size_t i = 0; i < parts.size(); ++i) add(parts[i], model, graphs[i], weights);
}

void DividedExecutable::add(const LayersOn& part, const DecoderFiles& model, const Graph& graph, const NamedArrays& weights) {
  NamedArrays mine;
  std::vector<std::string> inputs;
  for (const auto& [input, value] : graph.inputs()) {
    if (input.kind == InputKind::param) mine.emplace(input.name, weights.at(input.name));
    else if (input.kind == InputKind::state) of_state_.emplace(input.name, parts_.size());
    else inputs.push_back(input.name);
  }
  parts_.push_back(part.session.compile(graph));
  needs_.push_back(memory_need(graph, parts_.back().arena_bytes()));
  check_room(part, model, graph, needs_.back());
  parts_.back().set_params(mine);
  inputs_.push_back(std::move(inputs));
}

Outputs DividedExecutable::run(std::map<std::string, Feed> inputs) const {
  for (std::size_t part = 0; part + 1 < parts_.size(); ++part) {
    std::map<std::string, Feed> mine;
    for (const std::string& name : inputs_[part]) mine.emplace(name, inputs.at(name));
    for (const auto& [name, array] : parts_[part].run(mine))
      if (!of_state_.contains(name)) inputs.insert_or_assign(name, Feed(array));
  }
  if (parts_.size() == 1) return parts_[0].run(inputs);
  std::map<std::string, Feed> last;
  for (const std::string& name : inputs_.back()) last.emplace(name, inputs.at(name));
  return parts_.back().run(last);
}

std::size_t DividedExecutable::part_with(std::string_view state) const {
  const auto part = of_state_.find(state);
  return part == of_state_.end() ? 0 : part->second;
}

}  // namespace rlx
