#pragma once
#include <set>
#include <string>

#include "rlx/graph.h"

namespace rlx::coreml {

/// Why a graph cannot be exported with these sizes, whatever its parameters are; none: it can.
std::set<std::string> refusals(const Graph& graph, const Bindings& sizes = {});

}  // namespace rlx::coreml
