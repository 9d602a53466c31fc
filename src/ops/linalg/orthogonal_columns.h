#pragma once
#include "rlx/graph.h"

namespace rlx {

/// X V of the matrices x (count, all rows, n), V unitary, such that the columns of the first `rows` rows are orthogonal to each other.
/// The identity in the rows below becomes V. n is static.
Value with_orthogonal_columns(Value x, const Dim& rows);

}  // namespace rlx
