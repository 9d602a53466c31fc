#include "backends/cpu/quantised/claim.h"

#include <variant>

#include "backends/cpu/quantised/block_kernel.h"
#include "ir/op.h"

namespace rlx::cpu {
namespace {

template <class T>
const T& block_dot_attribute(const Node& node, std::string_view name) {
  for (std::size_t i = 0; i < node.attrs.size(); ++i)
    if (node.op->fields[i].name == name) return std::get<T>(node.attrs[i]);
  fail_internal("claim: {} has no attribute {}", node.op->name, name);
}

}  // namespace

bool takes_block_dot(const Graph& graph, const Node& node) {
  const Type &x = graph.type(node.operands[0]), &blocks = graph.type(node.operands[1]);
  return x.dtype == f32 && x.shape.back().is_static() && blocks.shape[0].is_static() && block_dot_attribute<bool>(node, "int8") &&
         block_kernel(block_dot_attribute<std::string>(node, "type"), cpu_level());
}

BlockDot as_block_dot(const Graph& graph, ValueId node) {
  const Node& op = graph.node(node.node);
  const Dims &x = graph.type(op.operands[0]).shape, &blocks = graph.type(op.operands[1]).shape;
  Dim rows = 1;
  for (std::size_t axis = 0; axis + 1 < x.size(); ++axis) rows = rows * x[axis];
  return {node, op.operands[0], op.operands[1], block_dot_attribute<std::string>(op, "type"), rows, blocks[0], x.back()};
}

}  // namespace rlx::cpu
