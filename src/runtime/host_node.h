#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lowering/program.h"
#include "lowering/target.h"
#include "rlx/session.h"

namespace rlx {

/// A graph of one node: inputs "0", "1", ... are its operands, outputs its results. Nothing where its results have symbols that do not
/// follow from the operands.
std::optional<Graph> graph_of_node(const Graph& graph, std::int32_t node);

/// Why a device with these caps leaves a node to the host.
std::string host_reason(const Graph& graph, const Node& node, const Caps& caps);

/// Of a device with memory of its own: what the host computes and reads again; true where nobody else reads it, so that it does not cross.
/// `prepared`: the launches that are no part of a run, by their number.
std::map<ValueId, bool> values_of_host(const Program& program, const std::vector<bool>& prepared);

/// Of a device with memory of its own: throws Error for the first node that none of its kernels computes.
void refuse_host(const Program& program, const Device& device, const Caps& caps);

}  // namespace rlx
