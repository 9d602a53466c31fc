#pragma once
#include <functional>

#include "rlx/graph.h"

namespace rlx {

/// True for a composite that the target computes whole.
using IsClaimed = std::function<bool(const Graph&, const Node&)>;
inline bool nothing_claimed(const Graph&, const Node&) { return false; }

/// True for a primitive that the target computes as it is, although it has an expansion.
using IsComputed = std::function<bool(const Graph&, const Node&)>;
inline bool all_computed(const Graph&, const Node&) { return true; }

/// Replaces every composite that is not claimed by its body, and every primitive that is not computed by its expansion, if it has one, in
/// regions too, until only primitives and claimed composites are left, and drops what no output needs. Guarantees: the same inputs and
/// outputs, in the same order.
Graph expand(const Graph& graph, const IsClaimed& is_claimed, const IsComputed& is_computed = all_computed);

}  // namespace rlx
