#include "backends/cpu/attention/claim.h"

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/step.h"
#include "backends/cpu/machine/level_of.h"
#include "lowering/attention/view_parts.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t most_features = 1024;  // the queries and sums of a block stay in a second-level cache
static_assert(attention_key_block == rows_of_pages);

bool takes(const Graph& graph, const Node& node) {
  if (node.op->name != "attention") return false;
  const AttentionOperands operands(node);
  const DType dtype = graph.type(operands.q).dtype;
  if ((dtype != f32 && dtype != bf16) || graph.type(operands.k).dtype != dtype || graph.type(operands.v).dtype != dtype) return false;
  const auto is_position = [&](ValueId v) { return graph.type(v).dtype == i32 || graph.type(v).dtype == i64; };
  return (!operands.bias || graph.type(*operands.bias).dtype == f32) && (!operands.positions || is_position(*operands.positions)) &&
         graph.type(operands.q).shape.back().upper() <= most_features && graph.type(operands.v).shape.back().upper() <= most_features;
}

Launch launch_of(const Draft& draft, const AttentionViews& attention) {
  Launch launch = launch_with("attention", attention.node, attention.reads(), {attention.result}, attention);
  launch.arithmetic = draft.graph.type(attention.result).dtype == bf16 && multiplies_bf16(level_of(draft.target)) ? "bf16" : "f32";
  return launch;
}

struct AttentionClaim final : Claim {
  bool takes(const Graph& graph, const Node& node, const Caps& /*caps*/) const override { return cpu::takes(graph, node); }
  bool reads_views() const override { return true; }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    return std::make_unique<AttentionClaimed>(draft, cpu::takes, launch_of);
  }
};

const RegisterWork<AttentionViews> attention_work("attention");

}  // namespace

const Claim& attention_claim() {
  static const AttentionClaim claim;
  return claim;
}

}  // namespace rlx::cpu
