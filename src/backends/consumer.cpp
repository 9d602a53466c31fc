#include "backends/consumer.h"

#include <algorithm>
#include <set>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"

namespace rlx {
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
  const std::vector<bool> kept = region ? std::vector<bool>(graph.size(), false) : kept_nodes(graph, nodes);
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

}  // namespace rlx
