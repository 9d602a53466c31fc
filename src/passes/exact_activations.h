#pragma once
#include "rlx/graph.h"

namespace rlx {

/// The graph without rounding of activations, in each op that has a choice of 8 bits. Guarantees: the same inputs and outputs.
Graph with_exact_activations(const Graph& graph);

}  // namespace rlx
