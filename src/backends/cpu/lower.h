#pragma once
#include "backends/cpu/backend.h"
#include "lowering/program.h"

namespace rlx::cpu {

struct LowerOptions {
  bool claims = true;
  bool fuse = true;
  TargetDevice target = target_of();
};

/// Chooses which values are stored and builds one launch for each: claims, generated kernels, routines, host nodes.
/// Assumes: a graph of primitives, and with claims of composites that `is_claimed` takes. Guarantees: every output is stored; launches are
/// in an order in which they can run. Throws Error naming op and types for a node that neither a kernel nor a routine computes; without
/// claims the op's own evaluation does.
Program lower(const Graph& graph, const LowerOptions& options);

}  // namespace rlx::cpu
