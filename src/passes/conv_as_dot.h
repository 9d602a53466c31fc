#pragma once
#include "rlx/graph.h"

namespace rlx {

/// Convolutions of floats, and of narrow integers widened by casts, become dots over windows or sums of shifted products, where
/// ops/convolution.h knows how, so that what multiplies matrices computes them, or vector code; also in regions. What casts widen is padded
/// and stored narrow. Assumes and guarantees a graph of primitives.
Graph convs_as_dots(const Graph& graph);

}  // namespace rlx
