#pragma once
#include <optional>
#include <span>

#include "rlx/graph.h"

namespace rlx {

/// The values that casts widen both operands of a convolution from, without loss, where they do.
std::optional<Values> narrow_values(std::span<const Value> operands);

/// Whether there are convolutions, or regions that may have some.
bool may_have_convs(const Graph& graph);

/// Convolutions of floats, and of narrow integers widened by casts, become dots over windows or sums of shifted products, where
/// ops/contraction/convolution.h knows how, so that what multiplies matrices computes them, or vector code; also in regions. What casts
/// widen is padded and stored narrow. Assumes and guarantees a graph of primitives.
Graph convs_as_dots(const Graph& graph);

}  // namespace rlx
