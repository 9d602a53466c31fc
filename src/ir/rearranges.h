#pragma once
#include "ir/graph_data.h"

namespace rlx {

/// Whether what a node gives are elements of its first operand, or fill values; further operands, integers, say where they lie.
bool rearranges(const GraphData& graph, const Node& node);

}  // namespace rlx
