#pragma once
#include <optional>

#include "rlx/graph.h"

namespace rlx {

/// A graph of one node: inputs "0", "1", ... are its operands, outputs its results. Nothing where its results have symbols that do not
/// follow from the operands.
std::optional<Graph> graph_of_node(const Graph& graph, std::int32_t node);

}  // namespace rlx
