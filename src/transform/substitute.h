#pragma once
#include <string_view>

#include "rlx/graph.h"

namespace rlx {

/// The size with a symbol replaced.
Dim with_symbol(const Dim& dim, std::string_view symbol, const Dim& value);
/// The graph with a symbol replaced in all types, attributes and regions.
Graph with_symbol(const Graph& graph, std::string_view symbol, const Dim& value);

}  // namespace rlx
