#include "backends/consumer.h"

#include <algorithm>
#include <set>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"

namespace rlx {

const Attr& NodeView::attribute(std::string_view name) const {
  const auto& fields = node.op->fields;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return node.attrs[i];
  fail_internal("{} has no attribute {}", node.op->name, name);
}

std::int64_t NodeView::axis() const {
  const std::int64_t axis = number("axis");
  return axis < 0 ? axis + graph.type(node.operands[0]).rank() : axis;
}

std::vector<std::int64_t> NodeView::numbers(std::string_view name) const {
  const Attr& attr = attribute(name);
  if (const auto* const dims = std::get_if<Dims>(&attr)) return sizes_of(*dims, bindings);
  return std::get<std::vector<std::int64_t>>(attr);
}

std::vector<std::int64_t> NodeView::sizes(std::size_t result) const { return sizes_of(node.results[result].shape, bindings); }

std::vector<std::int64_t> sizes_of(const Dims& shape, const Bindings& bindings) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.evaluate(bindings));
  return sizes;
}

namespace {

bool has_static_results(const Node& node) {
  return std::ranges::all_of(node.results, [](const Type& type) { return type.is_static(); });
}

std::set<std::int32_t> parameters(const Graph& graph) {
  std::set<std::int32_t> nodes;
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::param) nodes.insert(value.id().node);
  return nodes;
}

/// By node: whether it is the same in every run.
std::vector<bool> kept_nodes(const Graph& graph, std::span<const std::int32_t> nodes) {
  std::vector<bool> kept(graph.size(), false);
  for (std::int32_t id : parameters(graph)) kept[static_cast<std::size_t>(id)] = true;
  for (std::int32_t id : nodes) {
    const Node& node = graph.node(id);
    kept[static_cast<std::size_t>(id)] =
        has_static_results(node) && std::ranges::all_of(node.operands, [&](ValueId v) { return kept[static_cast<std::size_t>(v.node)]; });
  }
  return kept;
}

}  // namespace

NodeOrder order_nodes(const Graph& graph, bool region) {
  NodeOrder order;
  const std::vector<ValueId> outputs = output_ids(graph);
  const std::vector<std::int32_t> nodes = needed_nodes(graph.data(), outputs);
  order.kept = region ? std::vector<bool>(graph.size(), false) : kept_nodes(graph, nodes);
  const std::vector<bool>& kept = order.kept;
  std::map<std::int32_t, std::int32_t> last_reader;  // by node; outputs are never let go
  std::set<ValueId> read_by_runs(outputs.begin(), outputs.end());
  for (std::int32_t id : nodes)
    for (ValueId v : graph.node(id).operands) {
      last_reader[v.node] = id;
      if (!kept[static_cast<std::size_t>(id)]) read_by_runs.insert(v);
    }
  for (ValueId v : outputs) last_reader.erase(v.node);
  std::map<std::int32_t, std::vector<std::int32_t>> ends;
  for (const auto& [node, reader] : last_reader) ends[reader].push_back(node);
  for (std::int32_t id : nodes) order.steps.push_back({id, kept[static_cast<std::size_t>(id)], ends[id]});
  for (ValueId v : read_by_runs)
    if (kept[static_cast<std::size_t>(v.node)] && !is_input(graph.node(v.node))) order.kept_values.push_back(v);
  return order;
}

std::vector<Segment> cut_segments(const Graph& graph, const NodeOrder& order, const std::vector<bool>& joins) {
  std::vector<Segment> segments;
  std::map<std::int32_t, std::size_t> segment_of;  // by node
  for (std::size_t i = 0; i < order.steps.size(); ++i) {
    if (order.steps[i].kept) continue;
    if (segments.empty() || !joins[i] || !segments.back().joined) segments.push_back({{}, joins[i], {}, {}});
    segments.back().steps.push_back(i);
    segment_of[order.steps[i].node] = segments.size() - 1;
  }
  std::vector<std::set<ValueId>> reads(segments.size()), writes(segments.size());
  const auto read = [&](ValueId v, std::size_t by) {
    const auto from = segment_of.find(v.node);
    if (from != segment_of.end() && from->second == by) return;
    if (by < segments.size() && !order.kept[static_cast<std::size_t>(v.node)]) reads[by].insert(v);
    if (from != segment_of.end()) writes[from->second].insert(v);
  };
  for (std::size_t s = 0; s < segments.size(); ++s)
    for (const std::size_t i : segments[s].steps)
      for (const ValueId v : graph.node(order.steps[i].node).operands) read(v, s);
  for (const ValueId v : output_ids(graph)) read(v, segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    segments[s].reads.assign(reads[s].begin(), reads[s].end());
    segments[s].writes.assign(writes[s].begin(), writes[s].end());
  }
  return segments;
}

Graph part_of(const Graph& graph, std::span<const ValueId> reads, std::span<const ValueId> writes) {
  Graph result(graph.name());
  std::map<ValueId, Value> values;
  for (std::size_t i = 0; i < reads.size(); ++i)
    values[reads[i]] = result.input(fmt::format("in{}", i), graph.type(reads[i]).shape, graph.type(reads[i]).dtype);
  for (const auto& [input, value] : graph.inputs())
    if (input.kind == InputKind::param && !values.contains(value.id())) values[value.id()] = make_input(result.data(), input);
  std::vector<ValueId> stops;
  for (const auto& [v, value] : values) stops.push_back(v);
  for (const std::int32_t id : needed_nodes(graph.data(), writes, stops)) {
    const Node& node = graph.node(id);
    Values operands;
    for (const ValueId v : node.operands) operands.push_back(values.at(v));
    const Values results = emit(result.data(), *node.op, node.attrs, operands);
    for (std::size_t r = 0; r < results.size(); ++r) values.try_emplace({id, static_cast<std::int32_t>(r)}, results[r]);
  }
  for (std::size_t i = 0; i < writes.size(); ++i) result.output(fmt::format("out{}", i), values.at(writes[i]));
  return result;
}

}  // namespace rlx
