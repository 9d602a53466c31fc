#pragma once
#include "lowering/program.h"
#include "lowering/target.h"

namespace rlx {

/// The program of a target without code written by hand: generated kernels, and the host for what no kernel computes.
/// Assumes: a graph of primitives. See Lowering.
Program lower_to_kernels(const Graph& graph, const TargetDevice& target, bool fuse);

}  // namespace rlx
