#pragma once
#include "rlx/graph.h"

namespace rlx {

class ProgramReader;
class ProgramWriter;

/// Nodes in their order. Their types are not written: the ops' rules give them again.
void write_graph(ProgramWriter& way, const Graph& graph);
/// The graph, whose nodes have the numbers that they had. Throws Error for nodes that the ops' rules refuse.
Graph read_graph(ProgramReader& way);

}  // namespace rlx
