#pragma once
#include <optional>

#include "lowering/program.h"
#include "rlx/session.h"

namespace rlx {

/// A graph of one node: inputs "0", "1", ... are its operands, outputs its results. Nothing where its results have symbols that do not
/// follow from the operands.
std::optional<Graph> graph_of_node(const Graph& graph, std::int32_t node);

/// Of a device with memory of its own: throws Error for the first node that none of its kernels computes.
void refuse_host(const Program& program, const Device& device);

}  // namespace rlx
