// Composites that MLX computes whole.
#include "backends/mlx/library/call.h"

namespace rlx::mlx {
namespace {

Results softmax(const Call& c) { return as(mx::softmax(wide(c.x[0]), c.axis(), true), c.x[0].dtype()); }

/// A row of only -infinity is another thing in MLX where it shall give 0.
bool keeps_nan(const Graph&, const Node& node) { return !std::get<bool>(node.attrs[1]); }

}  // namespace

Rows composite_rows() {
  static constexpr Row<Rule> rows[] = {
      {"softmax", softmax, keeps_nan, "rows that see nothing are composed"},
  };
  return rows;
}

}  // namespace rlx::mlx
