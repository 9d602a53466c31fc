#include "backends/cpu/claims.h"

#include <algorithm>
#include <iterator>

#include "backends/cpu/attention/claim.h"
#include "backends/cpu/quantized/claim.h"
#include "backends/cpu/routines/routine.h"
#include "ir/op.h"

namespace rlx::cpu {
namespace {

constexpr Claim claims[] = {
    {"attention", takes_attention},
    {"block_dot", takes_block_dot},
    {"grouped_block_dot", takes_block_dot},
};

}  // namespace

bool is_claimed(const Graph& graph, const Node& node) {
  const auto takes = [&](const Claim& claim) { return claim.op == node.op->name && claim.takes(graph, node); };
  return std::any_of(std::begin(claims), std::end(claims), takes) || routine_for(graph, node);
}

}  // namespace rlx::cpu
