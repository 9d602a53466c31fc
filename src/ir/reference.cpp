#include "ir/reference.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "ir/array_type.h"
#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "ir/symbols.h"

namespace rlx {
namespace {

// The loop over nodes.

/// For each node the last node that reads it; the size of the graph for outputs and -1 for nodes that nothing needs.
std::vector<std::int64_t> last_uses(const Graph& graph) {
  std::vector<std::int64_t> last(graph.size(), -1);
  for (const auto& [name, value] : graph.outputs())
    last[static_cast<std::size_t>(value.id().node)] = static_cast<std::int64_t>(graph.size());
  for (std::size_t i = graph.size(); i-- > 0;) {
    if (last[i] < 0) continue;
    for (ValueId id : graph.node(static_cast<std::int32_t>(i)).operands) {
      auto& use = last[static_cast<std::size_t>(id.node)];
      use = std::max(use, static_cast<std::int64_t>(i));
    }
  }
  return last;
}

std::vector<Array> evaluate_at(const Graph& graph, std::span<const Array> inputs, const Bindings& bindings);

/// A composite through its body, on operands of the same types.
std::vector<Array> evaluate_body(const Graph& graph, const Node& node, const Bindings& bindings, std::span<const Array> operands) {
  Graph scratch(std::string(node.op->name));
  Values inputs;
  for (std::size_t i = 0; i < operands.size(); ++i)
    inputs.push_back(scratch.add_input({std::to_string(i), InputKind::input, graph.type(node.operands[i])}));
  const Values results = node.op->body(node.attrs, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) scratch.output(std::to_string(i), results[i]);
  return evaluate_at(scratch, operands, bindings);
}

std::vector<Array> evaluate_at(const Graph& graph, std::span<const Array> inputs, const Bindings& bindings) {
  std::vector<std::vector<Array>> values(graph.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[static_cast<std::size_t>(graph.inputs()[i].second.id().node)] = {inputs[i]};
  const std::vector<std::int64_t> last = last_uses(graph);
  const RunRegion run = [&](const Region& region, std::span<const Array> operands) { return evaluate_at(*region, operands, bindings); };
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const Node& node = graph.node(id);
    if (last[i] < 0 || is_input(node)) continue;
    std::vector<Array> operands;
    for (ValueId v : node.operands) operands.push_back(values[static_cast<std::size_t>(v.node)][static_cast<std::size_t>(v.result)]);
    const Array* constant = constant_value(node);
    values[i] = constant ? std::vector{*constant} : evaluate_node(graph, id, bindings, operands, run);
    for (ValueId v : node.operands)
      if (last[static_cast<std::size_t>(v.node)] == id) values[static_cast<std::size_t>(v.node)].clear();
  }
  std::vector<Array> results;
  for (const auto& [name, value] : graph.outputs())
    results.push_back(values[static_cast<std::size_t>(value.id().node)][static_cast<std::size_t>(value.id().result)]);
  return results;
}

}  // namespace

Bindings bind_symbols(const Graph& graph, std::span<const Array> inputs) {
  SymbolBinder binder;
  const std::string kind = fmt::format("graph '{}': input", graph.name());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = graph.inputs()[i].first;
    if (inputs[i].dtype() != input.type.dtype)
      fail("{} '{}' is {}, given {}", kind, input.name, input.type.to_string(), type_of(inputs[i]).to_string());
    binder.bind(kind, input.name, input.type, inputs[i].shape());
  }
  Bindings bindings = binder.finish();
  for (const auto& [name, bound] : graph.symbols())
    if (!bindings.contains(name)) fail("graph '{}': no input size gives the value of symbol {}", graph.name(), name);
  return bindings;
}

Type bind_sizes(const Type& type, const Bindings& bindings) {
  Type result{type.dtype, {}};
  for (const Dim& dim : type.shape) result.shape.push_back(dim.is_static() ? dim : Dim(dim.evaluate(bindings)));
  return result;
}

std::vector<Array> evaluate_node(const Graph& graph, std::int32_t id, const Bindings& bindings, std::span<const Array> operands,
                                 const RunRegion& run_region) {
  const Node& node = graph.node(id);
  if (!node.op->evaluate && node.op->body) return evaluate_body(graph, node, bindings, operands);
  Attrs attrs = node.attrs;
  for (Attr& attr : attrs)
    if (auto* dims = std::get_if<Dims>(&attr)) *dims = bind_sizes(Type{f32, *dims}, bindings).shape;
  if (!node.op->evaluate) return {evaluate_index_map(*node.op, attrs, operands)};
  std::vector<Array> results;
  for (const Type& type : node.results) results.emplace_back(type.dtype, static_shape(bind_sizes(type, bindings)));
  node.op->evaluate(attrs, operands, results, run_region);
  return results;
}

std::vector<Array> evaluate_node(const OpDef& op, const Attrs& attrs, std::span<const Array> operands) {
  Graph scratch(std::string(op.name));
  Values inputs;
  for (const Array& operand : operands)
    inputs.push_back(scratch.add_input({std::to_string(inputs.size()), InputKind::input, type_of(operand)}));
  const Values results = emit(scratch.data(), op, attrs, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) scratch.output(std::to_string(i), results[i]);
  return evaluate_at(scratch, operands, {});
}

std::vector<Array> evaluate(const Graph& graph, const std::map<std::string, Array>& inputs) {
  std::vector<Array> ordered;
  for (const auto& [input, value] : graph.inputs()) {
    auto it = inputs.find(input.name);
    if (it == inputs.end()) fail("graph '{}': input '{}' {} is missing", graph.name(), input.name, input.type.to_string());
    ordered.push_back(it->second);
  }
  for (const auto& [name, array] : inputs) {
    const bool known =
        std::any_of(graph.inputs().begin(), graph.inputs().end(), [&](const auto& entry) { return entry.first.name == name; });
    if (!known) fail("graph '{}': has no input '{}'", graph.name(), name);
  }
  return evaluate_at(graph, ordered, bind_symbols(graph, ordered));
}

}  // namespace rlx
