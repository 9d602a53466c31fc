#pragma once
#include "ir/op.h"
#include "rlx/op_types.h"

namespace rlx {

/// `scatter` in steps that kernels compute: updates are brought in the order of the lines of x that they go to, and those of one line are
/// combined by pairs, then by pairs of these, in their order. `window`: its size along each axis of x.
Value scatter_in_order(Value x, Value indices, Value updates, const GatherNumbers& numbers, const Dims& window, ScatterKind kind,
                       IndexMode mode);

}  // namespace rlx
