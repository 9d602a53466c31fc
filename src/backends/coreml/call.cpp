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

/// Of a reduction or a running one.
bool is_sum_or_product(const Node& node) {
  const auto& kind = std::get<std::string>(node.attrs[0]);
  return kind == "sum" || kind == "prod";
}
bool adds(const Graph& /*graph*/, const Node& node) { return is_sum_or_product(node); }

bool multiplies_integers(const Graph& graph, const Node& node) { return !is_float(node.results[0].dtype) || multiplies_int8(graph, node); }

bool counts_in_floats(const Graph& graph, const Node& node) {
  const DType from = graph.type(node.operands[0]).dtype, to = node.results[0].dtype;
  return (is_float(from) && is_integer(to)) || (from == u32 && is_float(to));
}

/// f16 stays what it is, and so does what only moves.
bool computes_f32(const Graph& /*graph*/, const Node& node) {
  const bool computes = node.op->kind == OpKind::scalar || node.op->kind == OpKind::composite || node.op->name == "reduce";
  return computes && is_float(node.results[0].dtype) && node.results[0].dtype != f16 && node.op->name != "select" &&
         node.op->name != "cast";
}

/// Ops whose floats are not computed in their own type.
struct Computed {
  std::string_view op;                       // empty: any
  bool (*takes)(const Graph&, const Node&);  // which nodes; null: all
  std::string_view reason;                   // why in f32; empty: in what products are asked to be
};
constexpr std::string_view integers = "sums of products of 8-bit integers, which are exact there",
                           counts = "numbers of integers, which go beyond f16", sums = "long sums, of which f16 drops small terms",
                           states = "states of many steps, each of which would round",
                           near = "differences of numbers that are nearly equal", logits = "exponentials of wide logits, and their sums",
                           angles = "rotary angles of large positions",
                           between = "values between products, whose small changes add up from layer to layer";
constexpr Computed all_computed[] = {{"dot", multiplies_integers, integers},
                                     {"conv", multiplies_integers, integers},
                                     {"dot", nullptr, {}},
                                     {"conv", nullptr, {}},
                                     {"cast", counts_in_floats, counts},
                                     {"reduce", adds, sums},
                                     {"cumulative", adds, sums},
                                     {"fold", nullptr, sums},
                                     {"avg_pool", nullptr, sums},
                                     {"linear_recurrence", nullptr, states},
                                     {"lstm", nullptr, states},
                                     {"rnn", nullptr, states},
                                     {"erfc", nullptr, near},
                                     {"softmax", nullptr, logits},
                                     {"exp", nullptr, logits},
                                     {"rope", nullptr, angles},
                                     {"sin", nullptr, angles},
                                     {"cos", nullptr, angles},
                                     {{}, computes_f32, between}};

bool has_floats(const Graph& graph, const Node& node) {
  return is_float(node.results[0].dtype) || std::ranges::any_of(node.operands, [&](ValueId v) { return is_float(graph.type(v).dtype); });
}

}  // namespace

Floats floats_of(const Graph& graph, const Node& node, const ProgramParts& parts) {
  if (!has_floats(graph, node)) return {};
  for (const auto& [op, takes, reason] : all_computed)
    if ((op.empty() || op == node.op->name) && (!takes || takes(graph, node)))
      return {reason.empty() && parts.multiplies_f16 ? Element::f16 : Element::f32, reason};
  return {};
}

bool takes_u32(const Node& node) {
  static constexpr std::string_view ops[] = {"add",         "sub",         "mul",   "neg", "max",  "min",         "eq",
                                             "ne",          "lt",          "le",    "gt",  "ge",   "logical_and", "logical_or",
                                             "logical_xor", "logical_not", "shl",   "shr", "cast", "select",      "iota",
                                             "random_bits", "cond",        "while", "scan"};
  if (node.op->name == "reduce" || node.op->name == "cumulative") return is_sum_or_product(node);
  return node.op->sources || std::ranges::find(ops, node.op->name) != std::end(ops);
}

}  // namespace rlx::coreml
