#include "ir/reference.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "ir/graph_data.h"
#include "ir/sources.h"

namespace rlx {
namespace {

Type type_of(const Array& array) { return {array.dtype(), Dims(array.shape().begin(), array.shape().end())}; }

std::vector<std::int64_t> static_shape(const Type& type) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.value());
  return shape;
}

// ---- symbols -------------------------------------------------------------------------------------------------------------------

/// Solves `dim = size` for the only unknown symbol when it occurs linearly; true when a symbol got its value.
bool solve(const Dim& dim, std::int64_t size, Bindings& bindings) {
  std::int64_t known = 0, factor = 0;
  const Dim::Symbol* unknown = nullptr;
  for (const Dim::Term& term : dim.terms()) {
    std::int64_t value = term.coefficient;
    const Dim::Symbol* symbol = nullptr;
    for (const auto& s : term.symbols) {
      if (auto it = bindings.find(s->name); it != bindings.end()) value *= it->second;
      else if (symbol || (unknown && unknown->name != s->name)) return false;
      else symbol = s.get();
    }
    if (symbol) unknown = symbol, factor += value;
    else known += value;
  }
  if (!unknown || factor == 0 || (size - known) % factor != 0) return false;
  const std::int64_t value = (size - known) / factor;
  if (value < 1 || value > unknown->bound) fail("symbol {} would be {} (allowed: 1..{})", unknown->name, value, unknown->bound);
  bindings[unknown->name] = value;
  return true;
}

void check_input(const Graph& graph, const Input& input, const Array& array) {
  const Type seen = type_of(array);
  if (array.dtype() != input.type.dtype || array.rank() != input.type.rank())
    fail("graph '{}': input '{}' is {}, given {}", graph.name(), input.name, input.type.to_string(), seen.to_string());
}

void check_shapes(const Graph& graph, std::span<const Array> inputs, const Bindings& bindings) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = graph.inputs()[i].first;
    if (!(bind_sizes(input.type, bindings) == type_of(inputs[i])))
      fail("graph '{}': input '{}' is {}, given {}{}", graph.name(), input.name, input.type.to_string(), type_of(inputs[i]).to_string(),
           input.type.is_static() ? "" : ", where " + bind_sizes(input.type, bindings).to_string() + " follows from other sizes");
  }
}

/// A region with every size a number. Inputs, captures and outputs keep their order.
Region bind_region(const Graph& region, Bindings bindings) {
  // A symbol of its own (the batch size of a batch rule) has no value yet: such a region is looked at, not run.
  for (const auto& [name, bound] : region.symbols()) bindings.try_emplace(name, 1);
  Graph copy(region.name());
  copy.data().parent = region.data().parent;
  copy.data().captures = region.captures();
  std::map<ValueId, Value> values;
  std::size_t next_input = 0;
  for (std::size_t i = 0; i < region.size(); ++i) {
    const Node& node = region.node(static_cast<std::int32_t>(i));
    Values operands, results;
    for (ValueId id : node.operands) operands.push_back(values.at(id));
    if (is_input(node)) {
      Input input = region.inputs()[next_input++].first;
      input.type = bind_sizes(input.type, bindings);
      results = {make_input(copy.data(), std::move(input))};
    } else {
      Attrs attrs = bind_sizes(node.attrs, bindings);
      results = operands.empty() ? apply(copy.data(), *node.op, std::move(attrs)) : apply(*node.op, std::move(attrs), operands);
    }
    for (std::size_t r = 0; r < results.size(); ++r) values[{static_cast<std::int32_t>(i), static_cast<std::int32_t>(r)}] = results[r];
  }
  for (const auto& [name, value] : region.outputs()) copy.output(name, values.at(value.id()));
  return std::make_shared<const Graph>(std::move(copy));
}

// ---- the loop over nodes -------------------------------------------------------------------------------------------------------

std::vector<Array> evaluate_body(const OpDef& op, const Attrs& attrs, std::span<const Array> operands) {
  Graph scratch(std::string(op.name));
  Values inputs;
  for (std::size_t i = 0; i < operands.size(); ++i)
    inputs.push_back(scratch.add_input({std::to_string(i), InputKind::input, type_of(operands[i])}));
  const Values results = op.body(attrs, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) scratch.output(std::to_string(i), results[i]);
  return evaluate_region(std::make_shared<const Graph>(std::move(scratch)), operands);
}

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

std::vector<Array> evaluate_at(const Graph& graph, std::span<const Array> inputs, const Bindings& bindings) {
  std::vector<std::vector<Array>> values(graph.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[static_cast<std::size_t>(graph.inputs()[i].second.id().node)] = {inputs[i]};
  const std::vector<std::int64_t> last = last_uses(graph);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(static_cast<std::int32_t>(i));
    if (last[i] < 0 || is_input(node)) continue;
    std::vector<Array> operands;
    for (ValueId id : node.operands) operands.push_back(values[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.result)]);
    const Array* constant = constant_value(node);
    values[i] = constant ? std::vector{*constant}
                         : evaluate_node(*node.op, bindings.empty() ? node.attrs : bind_sizes(node.attrs, bindings), operands);
    for (ValueId id : node.operands)
      if (last[static_cast<std::size_t>(id.node)] == static_cast<std::int64_t>(i)) values[static_cast<std::size_t>(id.node)].clear();
  }
  std::vector<Array> results;
  for (const auto& [name, value] : graph.outputs())
    results.push_back(values[static_cast<std::size_t>(value.id().node)][static_cast<std::size_t>(value.id().result)]);
  return results;
}

}  // namespace

Bindings bind_symbols(const Graph& graph, std::span<const Array> inputs) {
  Bindings bindings;
  for (std::size_t i = 0; i < inputs.size(); ++i) check_input(graph, graph.inputs()[i].first, inputs[i]);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::size_t d = 0; d < inputs[i].shape().size(); ++d)
        progress |= solve(graph.inputs()[i].first.type.shape[d], inputs[i].shape()[d], bindings);
  }
  for (const auto& [name, bound] : graph.symbols())
    if (!bindings.contains(name)) fail("graph '{}': no input size gives the value of symbol {}", graph.name(), name);
  check_shapes(graph, inputs, bindings);
  return bindings;
}

Type bind_sizes(const Type& type, const Bindings& bindings) {
  Type result{type.dtype, {}};
  for (const Dim& dim : type.shape) result.shape.push_back(dim.is_static() ? dim : Dim(dim.evaluate(bindings)));
  return result;
}

Attrs bind_sizes(const Attrs& attrs, const Bindings& bindings) {
  Attrs result = attrs;
  for (Attr& attr : result) {
    if (auto* dims = std::get_if<Dims>(&attr)) *dims = bind_sizes(Type{f32, *dims}, bindings).shape;
    else if (auto* region = std::get_if<Region>(&attr); region && *region && !bindings.empty()) *region = bind_region(**region, bindings);
  }
  return result;
}

std::vector<Array> evaluate_node(const OpDef& op, const Attrs& attrs, std::span<const Array> operands) {
  if (!op.evaluate && op.body) return evaluate_body(op, attrs, operands);
  if (!op.evaluate) return {evaluate_index_map(op, attrs, operands)};
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(type_of(operand));
  std::vector<Array> results;
  for (const Type& type : op.infer(attrs, types)) results.emplace_back(type.dtype, static_shape(type));
  op.evaluate(attrs, operands, results);
  return results;
}

std::vector<Array> evaluate_region(const Region& region, std::span<const Array> operands) {
  const std::size_t wanted = region->inputs().size();
  if (operands.size() != wanted) fail("region '{}': needs {} operands, given {}", region->name(), wanted, operands.size());
  return evaluate_at(*region, operands, bind_symbols(*region, operands));
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
