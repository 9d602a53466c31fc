#pragma once
#include <functional>

#include "rlx/graph.h"

namespace rlx {

/// True for a composite that the target computes whole.
using IsClaimed = std::function<bool(const Graph&, const Node&)>;
inline bool nothing_claimed(const Graph&, const Node&) { return false; }

/// Replaces every composite that is not claimed by its body, in regions too, until only primitives and claimed composites are left, and
/// drops what no output needs. Guarantees: the same inputs and outputs, in the same order.
Graph expand(const Graph& graph, const IsClaimed& is_claimed);

}  // namespace rlx
