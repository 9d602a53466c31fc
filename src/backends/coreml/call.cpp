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

bool takes_u32(const Node& node) {
  static constexpr std::string_view ops[] = {"add",         "sub",         "mul",   "neg", "max",  "min",         "eq",
                                             "ne",          "lt",          "le",    "gt",  "ge",   "logical_and", "logical_or",
                                             "logical_xor", "logical_not", "shl",   "shr", "cast", "select",      "iota",
                                             "random_bits", "cond",        "while", "scan"};
  return node.op->sources || std::ranges::find(ops, node.op->name) != std::end(ops);
}

}  // namespace rlx::coreml
