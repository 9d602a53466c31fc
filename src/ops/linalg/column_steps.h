#pragma once
#include "rlx/graph.h"

namespace rlx {

/// The results of `lu`, by one step for each column: for targets that work on many elements at once. Matrices are the last two axes.
Values lu_in_steps(Value a);
/// The result of `cholesky`.
Value cholesky_in_steps(Value a);
/// X with l X = b, l lower triangular; with `unit_diagonal` its diagonal counts as 1.
Value lower_solve_in_steps(Value l, Value b, bool unit_diagonal);

}  // namespace rlx
