#pragma once
#include "ir/graph_data.h"

namespace rlx {

/// Whether the elements of a node are those of its first operand, moved; further operands, integers, say where they lie.
bool moves_elements(const GraphData& graph, const Node& node);

}  // namespace rlx
