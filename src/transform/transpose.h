#pragma once
#include "ir/op.h"

namespace rlx {

/// Runs a linear program backwards: the cotangents of its linear inputs from those of its outputs.
/// `operands` has a value for each input that is not linear (a residual) and null for the others; null cotangents are zero.
/// The new nodes go to the graph of their operands, or to `target`. Assumes that every node is linear in what depends on linear
/// inputs; throws InternalError naming an op that is not, and Error for one that has no transpose.
Values transpose_linear(GraphData& target, const Graph& program, const Values& operands, const Values& cotangents);

}  // namespace rlx
