#include "backends/coreml/call.h"

namespace rlx::coreml {

const RowTable<Rule>& table() {
  static const RowTable<Rule> all = [] {
    RowTable<Rule> table;
    for (const Rows rows : {scalar_rows(), structure_rows(), addressing_rows(), reduction_rows(), contraction_rows(), control_rows(),
                            composite_rows(), rope_rows(), missing_rows()})
      table.add(rows);
    return table;
  }();
  return all;
}

}  // namespace rlx::coreml
