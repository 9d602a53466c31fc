#pragma once
#include "ir/op.h"
#include "rlx/graph.h"

namespace rlx::coreml {

/// CoreML's arrays have no more.
inline constexpr std::size_t most_axes = 5;

/// Whether a node reads or makes values with more.
bool has_many_axes(const Graph& graph, const Node& node);

/// The graph with neighbouring axes as one where values have more than most_axes. Guarantees: the same inputs and outputs. What has no rule
/// here keeps its axes, to be refused by name.
Graph with_few_axes(const Graph& graph);

}  // namespace rlx::coreml
