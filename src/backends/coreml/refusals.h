#pragma once
#include <set>
#include <string>

#include "rlx/graph.h"

namespace rlx::coreml {

/// Why a graph without open sizes cannot be exported; none: it can.
std::set<std::string> refusals(const Graph& graph);

}  // namespace rlx::coreml
