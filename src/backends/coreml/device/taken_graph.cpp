#include "backends/coreml/device/taken_graph.h"

#include <algorithm>

#include "backends/coreml/call.h"
#include "backends/coreml/prepared_graph.h"
#include "backends/coreml/refusals.h"
#include "ir/array_type.h"
#include "ir/rebuild.h"
#include "ir/reference.h"
#include "ir/sources.h"
#include "passes/expand.h"
#include "quant/block_parts.h"
#include "rlx/export.h"

namespace rlx::coreml {
namespace {

/// Packages that a graph keeps: sizes of runs may ask for more.
constexpr std::size_t most_packages = 32;

/// The type of what CoreML passes: see element_of.
DType passed_type(DType type) { return type == bf16 ? f32 : is_float(type) ? type : i32; }

Array in_type(const Array& array, DType type) {
  if (array.dtype() == type) return array;
  Array result(type, array.shape());
  for (std::int64_t i = 0; i < array.size(); ++i)
    is_float(type) ? result.set_double(i, array.get_double(i)) : result.set_int(i, static_cast<std::int32_t>(array.get_int(i)));
  return result;
}

template <class Byte>
ModelArray<Byte> feature(std::string name, const Array& array, std::span<Byte> bytes) {
  const Number number = array.dtype() == f32 ? Number::f32 : array.dtype() == f16 ? Number::f16 : Number::i32;
  return {std::move(name), number, array.rank() == 0 ? Sizes{1} : array.shape(), bytes};
}

bool has_nothing(const Bindings& bindings) {
  return std::ranges::any_of(bindings, [](const auto& binding) { return binding.second == 0; });
}

/// The values in blocks that a node decodes, if it does; where it decodes rows of a table, all of that.
std::optional<ValueId> decoded_by(const Graph& graph, const Node& node) {
  if (node.op->name != "decode_blocks" || !find_block_parts(std::get<std::string>(node.attrs[0]))) return std::nullopt;
  const Node& read = graph.node(node.operands[0].node);
  return read.op->name == "gather" ? read.operands[0] : node.operands[0];
}

}  // namespace

CoreMlGraph::CoreMlGraph(const Graph& given, Library& library, DecodedTypes& decoded, std::string units, HostNode on_host)
    : TakenGraph(in_rows(in_real_numbers(expand(given, has_row, has_row)))),
      library_(library),
      decoded_(decoded),
      units_(std::move(units)),
      on_host_(std::move(on_host)),
      order_(order_nodes(graph, false)) {
  std::vector<bool> joins;
  for (const NodeOrder::Step& step : order_.steps) {
    if (const auto blocks = decoded_by(graph, graph.node(step.node)))
      blocks_.emplace(*blocks, std::get<std::string>(graph.node(step.node).attrs[0]));
    const std::string why = step.kept ? "" : refusal(step.node);
    joins.push_back(why.empty());
    if (!why.empty()) refusals_.emplace(&graph.node(step.node), why);
  }
  segments_ = cut_segments(graph, order_, joins);
  for (const Segment& segment : segments_)
    is_open_.push_back(segment.joined && refusals(part_of(graph, segment.reads, segment.writes)).empty());
}

/// Of a package with this node alone, and what it reads of parameters and constants.
std::string CoreMlGraph::refusal(std::int32_t node) const {
  std::vector<ValueId> reads, writes;
  for (const ValueId v : graph.node(node).operands)
    if (!order_.kept[static_cast<std::size_t>(v.node)] && std::ranges::find(reads, v) == reads.end()) reads.push_back(v);
  for (std::size_t r = 0; r < graph.node(node).results.size(); ++r) writes.push_back({node, static_cast<std::int32_t>(r)});
  const Graph alone = part_of(graph, reads, writes);
  if (refusals(alone).empty()) return {};
  const std::map<std::string, std::int64_t> bounds = alone.symbols();
  const std::set<std::string> reasons = refusals(alone, {bounds.begin(), bounds.end()});
  return reasons.empty() ? "" : *reasons.begin();
}

std::optional<std::string> CoreMlGraph::left_to_host(const Graph& of, const Node& node) const {
  const auto refused = refusals_.find(&node);
  if (refused != refusals_.end()) return refused->second;
  if (&of == &graph || has_row(of, node) || is_input(node) || constant_value(node)) return std::nullopt;
  return "composed of other ops";
}

std::shared_ptr<CoreMlGraph::Kept> CoreMlGraph::kept_for(const TakenInputs& inputs) {
  const std::scoped_lock lock(keeping_);
  if (!kept_ || kept_->parameters != inputs.parameters) {
    const auto kept = std::make_shared<Kept>();
    kept->parameters = inputs.parameters;
    for (std::size_t i = 0; i < inputs.arrays.size(); ++i) {
      const auto& [input, value] = graph.inputs()[i];
      if (input.kind != InputKind::param) continue;
      kept->values[value.id()] = *inputs.arrays[i];
      if (const auto blocks = blocks_.find(value.id()); blocks != blocks_.end() && library_.version >= static_cast<int>(Target::ios18))
        decoded_.check(library_, units_, blocks->second, input.name, *inputs.arrays[i]);
    }
    kept_ = kept;
  }
  return kept_;
}

std::vector<std::pair<std::string, std::string>> CoreMlGraph::placements() {
  const std::scoped_lock lock(keeping_);
  std::map<std::string, std::map<std::string, int>> counts;  // by unit and operation
  if (kept_) {
    const std::scoped_lock making(kept_->making);
    for (const auto& [key, package] : kept_->packages)
      for (const Placement& placed : package->placements()) ++counts[placed.unit][placed.operation];
  }
  std::vector<std::pair<std::string, std::string>> placements;
  for (const auto& [unit, operations] : counts) {
    std::string list;
    for (const auto& [operation, count] : operations) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, operation);
    placements.emplace_back(unit, list);
  }
  return placements;
}

std::shared_ptr<OpenedPackage> CoreMlGraph::package(std::size_t segment, const TakenInputs& inputs, Kept& kept) const {
  const Bindings sizes = is_open_[segment] ? Bindings{} : inputs.bindings;
  const std::scoped_lock lock(kept.making);
  const std::pair key(segment, sizes);
  if (const auto known = kept.packages.find(key); known != kept.packages.end()) return known->second;
  if (kept.packages.size() >= most_packages) kept.packages.clear();
  SavedGraph saved{part_of(graph, segments_[segment].reads, segments_[segment].writes), {}};
  for (std::size_t i = 0; i < inputs.arrays.size(); ++i)
    if (const Input& input = graph.inputs()[i].first; input.kind == InputKind::param) saved.weights.emplace(input.name, *inputs.arrays[i]);
  return kept.packages.emplace(key, compile(library_, saved, sizes, units_)).first->second;
}

void CoreMlGraph::run_package(std::size_t segment, const TakenInputs& inputs, Kept& kept, Values& values) const {
  const auto& [steps, joined, reads, writes] = segments_[segment];
  std::vector<Array> read, written;
  std::vector<Given> given;
  std::vector<Wanted> wanted;
  for (const ValueId v : reads) {
    read.push_back(in_type(values.at(v), passed_type(graph.type(v).dtype)));
    given.push_back(feature(fmt::format("in{}", given.size()), read.back(), read.back().bytes()));
  }
  for (const ValueId v : writes) {
    written.emplace_back(passed_type(graph.type(v).dtype), static_shape(bind_sizes(graph.type(v), inputs.bindings)));
    wanted.push_back(feature(fmt::format("out{}", wanted.size()), written.back(), written.back().mutable_bytes()));
  }
  if (const std::string error = package(segment, inputs, kept)->run(given, wanted); !error.empty())
    fail("coreml:{}: graph '{}': {}", units_, graph.name(), error);
  for (std::size_t i = 0; i < writes.size(); ++i) values[writes[i]] = in_type(written[i], graph.type(writes[i]).dtype);
}

void CoreMlGraph::run_on_host(std::int32_t node, const TakenInputs& inputs, Kept& kept, Values& values) const {
  std::vector<Array> operands;
  for (const ValueId v : graph.node(node).operands) operands.push_back(value(v, inputs, kept, values));
  std::vector<Array> results;
  if (const Array* constant = constant_value(graph.node(node))) results.push_back(*constant);
  else results = on_host_(graph, node, inputs.bindings, operands);
  for (std::size_t r = 0; r < results.size(); ++r) values[{node, static_cast<std::int32_t>(r)}] = std::move(results[r]);
}

/// What follows from parameters alone is computed when the host first asks for it.
Array CoreMlGraph::value(ValueId v, const TakenInputs& inputs, Kept& kept, Values& values) const {
  if (const auto known = values.find(v); known != values.end()) return known->second;
  const std::scoped_lock lock(kept.computing);
  if (!kept.values.contains(v)) run_on_host(v.node, inputs, kept, kept.values);
  return kept.values.at(v);
}

std::vector<Array> CoreMlGraph::run(const TakenInputs& inputs) {
  const std::shared_ptr<Kept> kept = kept_for(inputs);
  Values values;
  for (std::size_t i = 0; i < inputs.arrays.size(); ++i)
    if (graph.inputs()[i].first.kind != InputKind::param) values[graph.inputs()[i].second.id()] = *inputs.arrays[i];
  const bool is_empty = has_nothing(inputs.bindings);  // which CoreML has no arrays for
  for (std::size_t s = 0; s < segments_.size(); ++s)
    if (segments_[s].joined && !is_empty) run_package(s, inputs, *kept, values);
    else
      for (const std::size_t step : segments_[s].steps) run_on_host(order_.steps[step].node, inputs, *kept, values);
  std::vector<Array> results;
  for (const ValueId v : output_ids(graph)) results.push_back(value(v, inputs, *kept, values));
  return results;
}

}  // namespace rlx::coreml
