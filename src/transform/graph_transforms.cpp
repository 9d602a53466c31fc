// The transforms of whole graphs: a copy of the graph, the transform between its inputs and outputs, and what is dead removed.
#include "ir/rebuild.h"
#include "ir/region.h"
#include "rlx/ops.h"
#include "rlx/transform.h"
#include "transform/batching.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

/// A graph with the same inputs, and the outputs as values in it.
struct Copy {
  Graph graph;
  Values inputs, outputs;

  explicit Copy(const Graph& source) : graph(source.name()) {
    for (const auto& [input, value] : source.inputs()) inputs.push_back(graph.add_input(input));
    outputs = inline_graph(graph.data(), source, inputs);
  }
  Value input(std::string_view name) const {
    for (const auto& [input, value] : graph.inputs())
      if (input.name == name) return value;
    fail("graph '{}': has no input '{}'", graph.name(), name);
  }
  Values named(const std::vector<std::string>& names) const {
    Values values;
    for (const std::string& name : names) values.push_back(input(name));
    return values;
  }
  /// Further inputs `<prefix><name>` of the named inputs' types.
  Values directions(const std::string& prefix, const std::vector<std::string>& names) {
    Values values;
    for (const std::string& name : names) values.push_back(graph.input(prefix + name, input(name).shape(), input(name).dtype()));
    return values;
  }
};

void check_one_output(std::string_view op, const Graph& graph) {
  if (graph.outputs().size() != 1) fail("rlx.{}: graph '{}' has {} outputs (allowed: one)", op, graph.name(), graph.outputs().size());
}

}  // namespace

Graph grad_graph(const Graph& graph, const std::vector<std::string>& wrt, bool with_value) {
  check_one_output("grad", graph);
  Copy copy(graph);
  const auto [value, gradients] = value_and_grad(copy.outputs[0], copy.named(wrt));
  if (with_value) copy.graph.output(graph.outputs()[0].first, value);
  for (std::size_t i = 0; i < wrt.size(); ++i) copy.graph.output("grad_" + wrt[i], gradients[i]);
  return dead_code_eliminated(copy.graph);
}

Graph jvp_graph(const Graph& graph, const std::vector<std::string>& wrt) {
  Copy copy(graph);
  const Values x = copy.named(wrt), tangents = jvp(copy.outputs, x, copy.directions("tangent_", wrt));
  for (std::size_t i = 0; i < copy.outputs.size(); ++i) copy.graph.output(graph.outputs()[i].first, copy.outputs[i]);
  for (std::size_t i = 0; i < copy.outputs.size(); ++i)
    if (carries_tangent(tangents[i].type())) copy.graph.output("tangent_" + graph.outputs()[i].first, tangents[i]);
  return dead_code_eliminated(copy.graph);
}

Graph hvp_graph(const Graph& graph, const std::vector<std::string>& wrt) {
  check_one_output("hvp", graph);
  Copy copy(graph);
  const Values x = copy.named(wrt), v = copy.directions("vector_", wrt);
  const Values changes = jvp(grad(copy.outputs[0], x), x, v);
  for (std::size_t i = 0; i < wrt.size(); ++i) copy.graph.output("hvp_" + wrt[i], changes[i]);
  return dead_code_eliminated(copy.graph);
}

Graph jacobian_graph(const Graph& graph, const std::vector<std::string>& wrt, JacobianMode mode) {
  Copy copy(graph);
  Values varying;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < copy.outputs.size(); ++i)
    if (carries_tangent(copy.outputs[i].type())) varying.push_back(copy.outputs[i]), names.push_back(graph.outputs()[i].first);
  for (const std::string& name : wrt) {
    const Values rows = jacobian([&](const Values&) { return varying; }, copy.input(name), mode);
    for (std::size_t i = 0; i < rows.size(); ++i) copy.graph.output("jacobian_" + names[i] + "_" + name, rows[i]);
  }
  return dead_code_eliminated(copy.graph);
}

Graph vmap_graph(const Graph& graph, const std::map<std::string, std::optional<std::int64_t>>& in_axes, std::int64_t out_axis,
                 const Dim& size) {
  Graph result(graph.name());
  std::vector<Batched> operands;
  for (const auto& [name, axis] : in_axes) {
    const bool known =
        std::any_of(graph.inputs().begin(), graph.inputs().end(), [&](const auto& entry) { return entry.first.name == name; });
    if (!known) fail("rlx.vmap: graph '{}' has no input '{}'", graph.name(), name);
  }
  for (auto [input, value] : graph.inputs()) {
    const auto it = in_axes.find(input.name);
    const bool batched = it != in_axes.end() && it->second;
    std::int64_t axis = 0;
    if (batched) {
      axis = normalize_axis("vmap", *it->second, batched_type(input.type, size));
      input.type.shape.insert(input.type.shape.begin() + axis, size);
    }
    const Value v = result.add_input(input);
    operands.push_back({batched ? move_axis(v, axis, 0) : v, batched});
  }
  const std::vector<Batched> outputs = batch_graph(result.data(), graph, operands, size);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    result.output(graph.outputs()[i].first, move_axis(with_batch(outputs[i], size), 0, out_axis));
  return dead_code_eliminated(result);
}

}  // namespace rlx
