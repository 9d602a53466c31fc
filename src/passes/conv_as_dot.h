#pragma once
#include "rlx/graph.h"

namespace rlx {

/// Convolutions of floats become dots over windows, where ops/convolution.h knows how, so that what multiplies matrices computes them; also
/// in regions. Assumes and guarantees a graph of primitives.
Graph convs_as_dots(const Graph& graph);

}  // namespace rlx
