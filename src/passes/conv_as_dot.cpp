#include "passes/conv_as_dot.h"

#include "ir/graph_data.h"
#include "ir/rebuild.h"
#include "ops/contraction/convolution.h"
#include "ops/scalar/scalar.h"

namespace rlx {
namespace {

/// A conv as the dot or the sums that it is made of, where its type is one that products are made for.
std::optional<Value> as_products(const Node& conv, const Values& operands) {
  const DType wide = conv.results[0].dtype;
  const ConvForm form = conv_form(conv.attrs, operands[0].type(), operands[1].type());
  const auto narrow = narrow_values(operands);
  if (form == ConvForm::loop || !(narrow || is_float(wide))) return std::nullopt;
  const Values& read = narrow ? *narrow : operands;
  return (form == ConvForm::dot ? conv_as_dot : conv_as_sums)(conv.attrs, read[0], read[1], wide);
}

}  // namespace

std::optional<Values> narrow_values(std::span<const Value> operands) {
  Values narrow;
  for (const Value& operand : operands) {
    GraphData& graph = operand.graph();
    const Node& node = graph.node(operand.id().node);
    if (node.op->scalar != static_cast<int>(ScalarOp::cast)) return std::nullopt;
    narrow.push_back(Value(&graph, node.operands[0]));
    const DTypeInfo &from = info(narrow.back().dtype()), &to = info(operand.dtype());
    if (from.kind != to.kind || from.bits >= to.bits || narrow.back().dtype() != narrow.front().dtype()) return std::nullopt;
  }
  return narrow;
}

bool may_have_convs(const Graph& graph) {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    if (graph.node(id).op->name == "conv" || has_regions(graph.node(id))) return true;
  return false;
}

Graph convs_as_dots(const Graph& graph) {
  if (!may_have_convs(graph)) return graph;
  Rebuilder out(graph);
  for (std::int32_t id : out.needed()) {
    const Node& node = graph.node(id);
    const Values operands = out.operands(id);
    std::optional<Value> product;
    if (node.op->name == "conv") product = as_products(node, operands);
    if (product) out.replace(id, {*product});
    else if (has_regions(node)) out.replace(id, emit(out.data(), *node.op, map_regions(node.attrs, convs_as_dots), operands));
    else out.copy(id);
  }
  return out.finish();
}

}  // namespace rlx
