#include "ir/rebuild.h"

#include <algorithm>
#include <set>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/sources.h"

namespace rlx {

std::vector<std::int32_t> needed_nodes(const GraphData& graph, std::span<const ValueId> outputs, std::span<const ValueId> stops) {
  const std::set<ValueId> ends(stops.begin(), stops.end());
  std::vector<bool> needed(graph.nodes.size(), false);
  auto mark = [&](ValueId id) {
    if (!ends.contains(id)) needed[static_cast<std::size_t>(id.node)] = true;
  };
  for (ValueId id : outputs) mark(id);
  std::vector<std::int32_t> nodes;
  for (std::size_t i = needed.size(); i-- > 0;) {
    const auto id = static_cast<std::int32_t>(i);
    if (!needed[i] || is_input(graph.node(id))) continue;
    nodes.push_back(id);
    for (ValueId operand : graph.node(id).operands) mark(operand);
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<ValueId> output_ids(const Graph& graph) {
  std::vector<ValueId> ids;
  for (const auto& [name, value] : graph.outputs()) ids.push_back(value.id());
  return ids;
}

Values emit(GraphData& target, const OpDef& op, const Attrs& attrs, std::span<const Value> operands) {
  return operands.empty() ? apply(target, op, attrs) : apply(op, attrs, operands);
}

Values inline_graph(GraphData& target, const Graph& callee, std::span<const Value> operands) {
  if (operands.size() != callee.inputs().size())
    fail_internal("inline: '{}' has {} inputs, given {}", callee.name(), callee.inputs().size(), operands.size());
  std::map<ValueId, Value> values;
  for (std::size_t i = 0; i < operands.size(); ++i) values[callee.inputs()[i].second.id()] = operands[i];
  const std::vector<ValueId> outputs = output_ids(callee);
  for (std::int32_t id : needed_nodes(callee.data(), outputs)) {
    const Node& node = callee.node(id);
    Values args;
    for (ValueId operand : node.operands) args.push_back(values.at(operand));
    const Values results = emit(target, *node.op, node.attrs, args);
    for (std::size_t r = 0; r < results.size(); ++r) values[{id, static_cast<std::int32_t>(r)}] = results[r];
  }
  Values results;
  for (ValueId id : outputs) results.push_back(values.at(id));
  return results;
}

Values inline_graph(const Graph& callee, std::span<const Value> operands) {
  if (operands.empty()) fail_internal("inline: '{}' has no operand that says where to", callee.name());
  return inline_graph(operands[0].graph(), callee, operands);
}

Rebuilder::Rebuilder(const Graph& graph) : source_(graph), result_(graph.name()), needed_(needed_nodes(graph.data(), output_ids(graph))) {
  for (const auto& [input, value] : graph.inputs()) values_[value.id()] = make_input(result_.data(), input);
  result_.data().note_origins({});
}

Value Rebuilder::value(ValueId id) const {
  auto it = values_.find(id);
  if (it == values_.end()) fail_internal("rebuild of '{}': node {} was not copied", source_.name(), id.node);
  return it->second;
}

Values Rebuilder::operands(std::int32_t node) const {
  Values values;
  for (ValueId id : source_.node(node).operands) values.push_back(value(id));
  return values;
}

void Rebuilder::copy(std::int32_t node) { copy(node, operands(node)); }

void Rebuilder::copy(std::int32_t node, std::span<const Value> operands) {
  const Node& old = source_.node(node);
  replace(node, emit(result_.data(), *old.op, old.attrs, operands));
}

void Rebuilder::replace(std::int32_t node, const Values& results) {
  const Node& old = source_.node(node);
  if (results.size() != old.results.size())
    fail_internal("rebuild of '{}': {} results for {}, needs {}", source_.name(), results.size(), old.op->name, old.results.size());
  for (std::size_t r = 0; r < results.size(); ++r) values_[{node, static_cast<std::int32_t>(r)}] = results[r];
  NodeOrigin origin = source_.data().origin(node);
  const bool is_body = old.op->kind == OpKind::composite && result_.size() > 0 && result_.data().nodes.back().op != old.op;
  if (!origin.composite && is_body) origin.composite = old.op;
  result_.data().note_origins(origin);
}

Graph Rebuilder::finish() {
  for (const auto& [name, output] : source_.outputs()) result_.output(name, value(output.id()));
  return result_;
}

Attrs map_regions(const Attrs& attrs, const std::function<Graph(const Graph&)>& rule) {
  Attrs result = attrs;
  for (Attr& attr : result)
    if (auto* region = std::get_if<Region>(&attr); region && *region) *region = std::make_shared<const Graph>(rule(**region));
  return result;
}

bool has_regions(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(), [](const Attr& attr) {
    const auto* region = std::get_if<Region>(&attr);
    return region && *region;
  });
}

Graph dead_code_eliminated(const Graph& graph) {
  Rebuilder out(graph);
  for (std::int32_t id : out.needed()) out.copy(id);
  return out.finish();
}

}  // namespace rlx
