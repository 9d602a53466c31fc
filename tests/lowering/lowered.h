#pragma once
#include "lowering/claim.h"
#include "lowering/lowering.h"
#include "passes/expand.h"

namespace rlx::test {

inline Program lowered(const Graph& graph, const TargetDevice& target) {
  return lower(expand(graph, [&](const Graph& in, const Node& node) { return claim_of(target, in, node) != nullptr; }), target);
}

}  // namespace rlx::test
