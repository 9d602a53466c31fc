#pragma once
#include "lowering/program.h"
#include "lowering/target.h"

namespace rlx {

/// Chooses which values are stored and builds a launch for each: by the target's claims, generated kernels, or the host.
/// Assumes: a graph of primitives, and of composites that claims take. Guarantees: every output is stored; launches are in an order in
/// which they can run. Without `fuse` every value is stored. Throws Error naming op and type for a node that a complete target does not
/// compute.
Program lower(const Graph& graph, const TargetDevice& target, bool fuse = true);

}  // namespace rlx
