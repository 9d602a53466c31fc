#pragma once
#include <string_view>

#include "rlx/graph.h"

namespace rlx {

/// Checks what every graph promises: operands come before their users; attributes have the kinds of their fields; result types are
/// those that the op's rule gives; inputs and outputs are listed once, with their nodes and unique names; regions hold to the same, and are
/// closed. One pass over the nodes.
/// Throws InternalError naming `pass` (whoever made the graph), the graph and the node.
void verify(const Graph& graph, std::string_view pass);

}  // namespace rlx
