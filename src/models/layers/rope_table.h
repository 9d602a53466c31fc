#pragma once
#include "rlx/graph.h"
#include "rlx/op_types.h"

namespace rlx {

/// rope(x, positions, options) of x (N, heads, S, D) and positions (N, S) below `most`, by a table that is a constant of the graph: for
/// devices that have no f64 for the angles. The options' frequencies are the same whatever the positions.
Value rope_by_table(Value x, Value positions, std::int64_t most, const RopeOptions& options);

}  // namespace rlx
