#include "lowering/program_file/graph_parts.h"

#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "lowering/program_file/parts.h"

namespace rlx {
namespace {

const OpDef& op_named(const ProgramReader& way, const std::string& name) {
  const auto known = op_registry().find(name);
  if (known == op_registry().end()) way.refuse("op", name, "a name that 'rlx ops' lists");
  return *known->second;
}

void read_attributes(ProgramReader& way, const OpDef& op, Attrs& attrs) {
  way("attributes", attrs);
  bool fit = attrs.size() == op.fields.size();
  for (std::size_t i = 0; fit && i < attrs.size(); ++i) fit = attrs[i].index() == op.fields[i].kind;
  if (!fit)
    way.refuse("attributes", fmt::format("{} of other types", attrs.size()), fmt::format("the {} of {}", op.fields.size(), op.name));
}

/// What the op's rules make of it; they refuse what does not fit.
void add_node(ProgramReader& way, Graph& graph, const OpDef& op, const Attrs& attrs, const std::vector<ValueId>& operands) {
  Values values;
  for (const ValueId& operand : operands) {
    const bool known = operand.node >= 0 && operand.node < static_cast<std::int32_t>(graph.size()) && operand.result >= 0 &&
                       operand.result < std::ssize(graph.node(operand.node).results);
    if (!known)
      way.refuse("operand", fmt::format("%{}.{}", operand.node, operand.result), fmt::format("results of %0 .. below %{}", graph.size()));
    values.emplace_back(&graph.data(), operand);
  }
  const std::size_t before = graph.size();
  std::string reason = "the same again";
  try {
    if (is_input({&op, {}, {}, {}})) graph.add_input(input_from(attrs));
    else emit(graph.data(), op, attrs, values);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (graph.size() != before + 1) way.refuse("node", fmt::format("%{} {}: {}", before, op.name, reason), "what its op allows, once");
}

}  // namespace

void write_graph(ProgramWriter& way, const Graph& graph) {
  way("graph name", graph.name());
  way("node count", static_cast<std::int64_t>(graph.size()));
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    const Node& node = graph.node(id);
    way("op", std::string(node.op->name)), way("attributes", node.attrs), way("operands", node.operands);
    const NodeOrigin origin = graph.data().origin(id);
    way("composite", origin.composite ? std::string(origin.composite->name) : std::string()), way("backward", origin.backward);
  }
  way("output count", static_cast<std::int64_t>(graph.outputs().size()));
  for (const auto& [name, value] : graph.outputs()) way("output name", name), way("output", value.id());
}

Graph read_graph(ProgramReader& way) {
  std::string name;
  way("graph name", name);
  Graph graph(name);
  for (std::int64_t left = way.count("node count"); left > 0; --left) {
    std::string composite;
    bool backward = false;
    Attrs attrs;
    std::vector<ValueId> operands;
    way("op", name);
    const OpDef& op = op_named(way, name);
    read_attributes(way, op, attrs);
    way("operands", operands);
    add_node(way, graph, op, attrs, operands);
    way("composite", composite), way("backward", backward);
    graph.data().note_origins({composite.empty() ? nullptr : &op_named(way, composite), backward});
  }
  for (std::int64_t left = way.count("output count"); left > 0; --left) {
    ValueId value;
    way("output name", name), way("output", value);
    if (value.node < 0 || value.node >= static_cast<std::int32_t>(graph.size()) || value.result < 0 ||
        value.result >= std::ssize(graph.node(value.node).results))
      way.refuse("output", fmt::format("%{}.{}", value.node, value.result), fmt::format("results of {} nodes", graph.size()));
    graph.output(name, Value(&graph.data(), value));
  }
  return graph;
}

}  // namespace rlx
