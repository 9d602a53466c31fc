#pragma once
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// By node: whether its results are the same in every run once the parameters are bound. They are computed from parameters and constants
/// alone, and no symbol changes a size on the way. Nodes with regions never are: their regions are programs of their own.
std::vector<bool> run_invariant_nodes(const Graph& graph);

}  // namespace rlx
