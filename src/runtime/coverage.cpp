#include "runtime/coverage.h"

#include <optional>

#include "backends/backend.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "runtime/executable.h"
#include "runtime/host_node.h"

namespace rlx {
namespace {

// -- what a device leaves to the host

void add_refusals(const Program& program, const Caps& caps, std::set<std::string>& reasons) {
  for (const Launch& launch : program.launches)
    if (launch.kind == Launch::Kind::host) reasons.insert(host_reason(program.graph, program.graph.node(launch.node.node), caps));
  for (const auto& [region, inner] : program.regions) add_refusals(*inner, caps, reasons);
}

void add_refusals(const TakenGraph& taken, const Graph& graph, std::set<std::string>& reasons) {
  for (const std::int32_t id : needed_nodes(graph.data(), output_ids(graph))) {
    const Node& node = graph.node(id);
    if (is_input(node) || constant_value(node)) continue;
    if (const auto why = taken.left_to_host(graph, node)) reasons.insert(*why);
    for (const Attr& attr : node.attrs)
      if (const auto* region = std::get_if<Region>(&attr); region && *region) add_refusals(taken, **region, reasons);
  }
}

// -- samples as graphs

/// The op on these operands; throws Error where it does not take them.
Graph graph_of(const OpDef& op, const Attrs& attrs, const std::vector<Type>& operands) {
  Graph graph;
  Values inputs;
  for (const Type& type : operands) inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), type.shape, type.dtype));
  const Values results = inputs.empty() ? apply(graph.data(), op, attrs) : apply(op, attrs, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output(fmt::format("y{}", i), results[i]);
  return graph;
}

std::optional<Graph> graph_if_taken(const OpDef& op, const Attrs& attrs, const std::vector<Type>& operands) {
  try {
    return graph_of(op, attrs, operands);
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct SampleGraph {
  DType type;
  Graph graph;
};

std::vector<Type> retyped(std::vector<Type> operands, DType to) {
  const DType from = operands.front().dtype;
  for (Type& type : operands)
    if (type.dtype == from) type.dtype = to;
  return operands;
}

std::vector<SampleGraph> sample_graphs(const OpDef& op) {
  std::vector<SampleGraph> graphs;
  for (const Sample& sample : op.samples()) {
    Attrs attrs = sample.attrs;
    if (attrs.empty())
      for (const Field& field : op.fields) attrs.push_back(field.initial);
    std::vector<Type> operands;
    for (const Sample::Operand& operand : sample.operands) operands.push_back(operand.type);
    const bool is_first = graphs.empty();
    Graph graph = graph_of(op, attrs, operands);
    graphs.push_back({operands.empty() ? graph.outputs().front().second.dtype() : operands.front().dtype, std::move(graph)});
    if (!is_first || operands.empty()) continue;
    for (const DTypeInfo& other : dtype_table) {
      const auto type = static_cast<DType>(&other - dtype_table.data());
      if (type == operands.front().dtype) continue;
      if (auto other_graph = graph_if_taken(op, attrs, retyped(operands, type))) graphs.push_back({type, std::move(*other_graph)});
    }
  }
  return graphs;
}

}  // namespace

DeviceKind kind_by_kernels(TargetDevice target) {
  std::string name = target.name;
  return {std::move(name), [target = std::move(target)](const Graph& graph) {
            std::set<std::string> reasons;
            add_refusals(lower_graph(graph, {}, target).program, target.caps, reasons);
            return reasons;
          }};
}

DeviceKind kind_by_graphs(const Backend& backend) {
  return {backend.name(), [&backend](const Graph& graph) {
            std::set<std::string> reasons;
            const auto taken = backend.take(graph, {}, {});
            add_refusals(*taken, taken->graph, reasons);
            return reasons;
          }};
}

std::vector<OpCoverage> coverage(const std::vector<DeviceKind>& kinds) {
  std::vector<OpCoverage> all;
  for (const auto& [name, op] : op_registry()) {
    OpCoverage row{op, {}};
    for (const SampleGraph& sample : sample_graphs(*op)) {
      auto& cells = row.by_type[sample.type];
      cells.resize(kinds.size());
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        const std::set<std::string> reasons = kinds[k].refusals(sample.graph);
        ++(reasons.empty() ? cells[k].computed : cells[k].refused);
        cells[k].reasons.insert(reasons.begin(), reasons.end());
      }
    }
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace rlx
