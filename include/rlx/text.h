#pragma once
#include <string>
#include <string_view>

#include "rlx/graph.h"

namespace rlx {

/// The graph as ASCII text that `parse_graph` reads back to an equal graph, bit for bit:
///   graph hello(B<=32) {
///     %0: f32[B,4] = input {label="x"}
///     %1: f32[4,2] = input {label="w", role=param}
///     %2: f32[B,2] = dot(%0, %1) {lhs_contract=[1], rhs_contract=[0]}
///     output y = %2
///   }
/// Nodes are numbered by their ids. Symbols stand in the head with their bounds. Attributes at their initial value are left out. A node
/// with several results lists their types, and `%5.1` is its second one. Behind nodes that a derivative in reverse has made stands
/// `backward`. Throws Error when one symbol has two bounds.
std::string to_text(const Graph& graph);

/// Builds a graph from its text. Beyond what `to_text` writes, it takes comments (`#` to the end of the line), any names after `%`, and
/// nodes without types; a stated type must be the one that the op's rule gives. `what` stands for the source in messages.
/// Throws Error "what:line:column: ..."; columns count UTF-8 characters.
Graph parse_graph(std::string_view text, std::string_view what);

}  // namespace rlx
