// Composites that CoreML computes whole: its own forms are faster on its devices, and some bodies look at the bits of numbers.
#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

Tensors gelu(const Call& c) {
  const char* const mode = c.node.op->name == "gelu" ? "EXACT" : "TANH_APPROXIMATION";
  return {c.out.add("gelu", {{"x", c.x[0]}, {"mode", Immediate(mode)}}, c.x[0].element, c.x[0].shape)};
}

/// Less accurate than ours where it is small.
Tensors erfc(const Call& c) {
  const Tensor x = convert(c.out, c.x[0], Element::f32), y = binary(c.out, "sub", number(x, 1), unary(c.out, "erf", x));
  return {convert(c.out, y, c.x[0].element)};
}

Tensors same_name(const Call& c) { return {unary(c.out, c.node.op->name, c.x[0])}; }

Tensors softmax(const Call& c) {
  const Tensor x = convert(c.out, c.x[0], sum_element(c.x[0].element));
  const Tensor y = c.out.add("softmax", {{"x", x}, {"axis", Immediate(static_cast<int>(c.axis()))}}, x.element, x.shape);
  return {convert(c.out, y, c.x[0].element)};
}

bool is_float_of_one(const Graph& graph, const Node& node) {
  return is_float(graph.type(node.operands[0]).dtype) && node.operands.size() == 1;
}

bool is_plain_softmax(const Graph& graph, const Node& node) { return is_float_of_one(graph, node) && !std::get<bool>(node.attrs[1]); }

}  // namespace

Rows composite_rows() {
  static constexpr Row<Rule> rows[] = {
      {"gelu", gelu, is_float_of_one},        {"gelu_tanh", gelu, is_float_of_one},    {"erfc", erfc, is_float_of_one},
      {"relu", same_name, is_float_of_one},   {"sigmoid", same_name, is_float_of_one}, {"silu", same_name, is_float_of_one},
      {"softmax", softmax, is_plain_softmax},
  };
  return rows;
}

}  // namespace rlx::coreml
