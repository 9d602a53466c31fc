#pragma once
#include "ir/op.h"
#include "rlx/export.h"

namespace rlx::coreml {

/// What has no row takes its body or its expansion, if there is one.
bool has_row(const Graph& graph, const Node& node);

/// The graph as rows take it: with these sizes, in real numbers, with inputs in place of random bits where the host fills them, and of what
/// becomes 8-bit integers with the integers.
Graph prepared(Graph graph, const Bindings& sizes, const NamedArrays& weights, const CoreMlOptions& options);

}  // namespace rlx::coreml
