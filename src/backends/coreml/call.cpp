#include "backends/coreml/call.h"

#include <algorithm>
#include <iterator>

namespace rlx::coreml {

const RowTable<Rule>& table() {
  static const RowTable<Rule> all = [] {
    RowTable<Rule> table;
    for (const Rows rows : {scalar_rows(), structure_rows(), addressing_rows(), reduction_rows(), contraction_rows(), control_rows(),
                            composite_rows(), rope_rows(), recurrent_rows(), random_rows(), missing_rows()})
      table.add(rows);
    return table;
  }();
  return all;
}

bool multiplies_int8(const Graph& graph, const Node& node) {
  return std::ranges::all_of(node.operands, [&](ValueId v) {
    const Node& operand = graph.node(v.node);
    return operand.op->name == "cast" && graph.type(operand.operands[0]).dtype == i8;
  });
}

namespace {

bool adds(const Graph& graph, const Node& node) {
  const Bindings none;
  const std::string_view kind = NodeView{graph, node, none}.word("op");
  return kind == "sum" || kind == "prod";
}

/// An op that needs f32, and why.
struct Wide {
  std::string_view op;
  bool (*takes)(const Graph&, const Node&);  // which nodes; null: all
  std::string_view reason;
};
constexpr std::string_view integers = "sums of products of 8-bit integers, which are exact there",
                           sums = "long sums, of which f16 drops small terms", states = "states of many steps, each of which would round",
                           logits = "exponentials of wide logits, and their sums", angles = "rotary angles of large positions",
                           between = "values between products, whose small changes add up from layer to layer";
constexpr Wide wide_ops[] = {{"dot", multiplies_int8, integers},
                             {"conv", multiplies_int8, integers},
                             {"reduce", adds, sums},
                             {"cumulative", adds, sums},
                             {"fold", nullptr, sums},
                             {"avg_pool", nullptr, sums},
                             {"linear_recurrence", nullptr, states},
                             {"lstm", nullptr, states},
                             {"rnn", nullptr, states},
                             {"softmax", nullptr, logits},
                             {"rope", nullptr, angles}};

}  // namespace

std::string_view reason_for_f32(const Graph& graph, const Node& node) {
  if (!is_float(node.results[0].dtype)) return {};
  for (const Wide& wide : wide_ops)
    if (wide.op == node.op->name && (!wide.takes || wide.takes(graph, node))) return wide.reason;
  const bool moves = node.op->name == "select" || node.op->name == "cast" || node.op->name == "dot" || node.op->name == "conv";
  const bool computes = node.op->kind == OpKind::scalar || node.op->kind == OpKind::composite || node.op->name == "reduce";
  return computes && !moves && node.results[0].dtype != f16 ? between : std::string_view();
}

Element product_element(const Call& c) {
  return c.out.parts().multiplies_f16 && reason_for_f32(c.graph, c.node).empty() ? Element::f16 : Element::f32;
}

bool takes_u32(const Node& node) {
  static constexpr std::string_view ops[] = {"add",         "sub",         "mul",   "neg", "max",  "min",         "eq",
                                             "ne",          "lt",          "le",    "gt",  "ge",   "logical_and", "logical_or",
                                             "logical_xor", "logical_not", "shl",   "shr", "cast", "select",      "iota",
                                             "random_bits", "cond",        "while", "scan"};
  return node.op->sources || std::ranges::find(ops, node.op->name) != std::end(ops);
}

}  // namespace rlx::coreml
