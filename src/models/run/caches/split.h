#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "rlx/graph.h"

namespace rlx {

/// Of a parameter or a state the part that it belongs to, counted from 0; nothing for those that any part may read.
using PartOf = std::function<std::optional<std::size_t>(const Input& input)>;

/// Cuts a graph into so many that run one after another. A node belongs to the last part of all that it is computed from; what is computed
/// from no part is computed anew in each that reads it. A value that crosses is an output "crossing.N" of its part, and an input of that
/// name of those that read it. Inputs and outputs keep their names; each part has the inputs that it reads.
/// Throws Error for a state that a later part reads.
std::vector<Graph> split_graph(const Graph& graph, std::size_t parts, const PartOf& part_of);

}  // namespace rlx
