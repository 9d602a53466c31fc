#pragma once
#include "ir/op.h"
#include "rlx/export.h"

namespace rlx::coreml {

/// CoreML's arrays have no more.
inline constexpr std::size_t most_axes = 5;
/// Whether a node reads or makes values with more.
bool has_many_axes(const Graph& graph, const Node& node);
/// The graph with neighbouring axes as one where values have more than most_axes. Guarantees: the same inputs and outputs. What has no rule
/// in few_axes.cpp keeps its axes, to be refused by name.
Graph with_few_axes(const Graph& graph);
/// The graph with i32 in place of i64 where that holds all numbers, whatever a run reads. Guarantees: the same inputs and outputs.
Graph with_narrow_places(const Graph& graph);

/// What has no row takes its body or its expansion, if there is one. So do composites of many axes, which fold by parts.
bool has_row(const Graph& graph, const Node& node);

/// With complex numbers as pairs, as far as `legalize` has rules; those that go in and out stay.
Graph in_real_numbers(const Graph& graph);
/// What rows take: composites without one come apart, and what CoreML has another form for has that.
Graph in_rows(const Graph& graph);
/// The graph as rows take it: with these sizes, in real numbers, with inputs in place of random bits where the host fills them, and of what
/// becomes 8-bit integers with the integers.
Graph prepared(Graph graph, const Bindings& sizes, const NamedArrays& weights, const CoreMlOptions& options);

}  // namespace rlx::coreml
