#include <algorithm>

#include "ir/op.h"
#include "lowering/kernels_only/kernel_claims.h"
#include "passes/places.h"

namespace rlx {
namespace {

/// The value that a factor is an arrangement of: the arrangement itself where a reshape of it joins axes that lie apart in that value.
ValueId moved(const Draft& draft, ValueId v) {
  const Graph& graph = draft.graph;
  std::optional<ValueId> reshaped;
  while (!draft.cut.is_stored(v) && graph.node(v.node).op->sources && graph.node(v.node).operands.size() == 1) {
    const ValueId from = graph.node(v.node).operands[0];
    if (graph.node(v.node).op->name == "reshape") reshaped = from;
    else if (reshaped) return *reshaped;
    v = from;
  }
  return v;
}

/// What is stored of a factor. Lanes that work together read memory as fast as it is, so that what widens it is computed where it is read.
ValueId stored_of(const Draft& draft, ValueId factor) {
  const ValueId v = moved(draft, factor);
  const Node& node = draft.graph.node(v.node);
  if (draft.target.caps.schedule.group == 0 || draft.cut.is_stored(v) || node.op->name != "cast") return v;
  const DType from = draft.graph.type(node.operands[0]).dtype;
  return from == f16 || from == bf16 ? moved(draft, node.operands[0]) : v;
}

void store_factors(Draft& draft) {
  constexpr std::int64_t least_work = 4096;  // multiply-adds
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(draft.graph.size()); ++id) {
    const Node& node = draft.graph.node(id);
    if (!draft.cut.live(id) || draft.cut.on_host(id) || node.op->name != "dot" || draft.claimed.count(id)) continue;
    const Dim rows = draft.graph.type(node.operands[0]).size(), columns = draft.graph.type(node.operands[1]).size();
    if (std::max(rows.upper(), columns.upper()) < least_work) continue;
    for (ValueId factor : node.operands) draft.cut.store(stored_of(draft, factor));
  }
}

bool sums_products(const Draft& draft, ValueId v) {
  const Node& node = draft.graph.node(v.node);
  if (draft.cut.is_stored(v)) return false;
  if (node.op->name == "dot") return true;
  const bool moves = node.op->sources && node.operands.size() == 1;
  return (moves || node.op->kind == OpKind::scalar) &&
         std::ranges::any_of(node.operands, [&](ValueId operand) { return sums_products(draft, operand); });
}

/// Products that are stored beside each other, as the parts of complex numbers are, are computed by themselves first: only a kernel
/// that stores neighbours computes a block of them. See ProductBlock.
void store_parts(Draft& draft) {
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(draft.graph.size()); ++id) {
    const Node& node = draft.graph.node(id);
    if (!draft.cut.live(id) || node.op->name != "concat" || draft.graph.type(node.operands[0]).shape.back().upper() > 1) continue;
    for (ValueId part : node.operands)
      if (const ValueId source = moved(draft, part); sums_products(draft, source)) draft.cut.store(source);
  }
}

/// What is dear and the same for many lanes is computed once.
void store_spread(Draft& draft) {
  constexpr double dear = 32;
  constexpr std::int64_t many = 8;
  std::vector<double> cost = place_costs(draft.graph, draft.stored_test());
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(draft.graph.size()); ++id) {
    const Node& node = draft.graph.node(id);
    if (!draft.cut.live(id) || draft.cut.on_host(id) || node.op->name != "broadcast") continue;
    const ValueId v = node.operands[0];
    if (draft.cut.is_stored(v) || cost[static_cast<std::size_t>(v.node)] < dear) continue;
    if (draft.graph.type({id, 0}).size().upper() < many * draft.graph.type(v).size().upper()) continue;
    draft.cut.store(moved(draft, v));
    cost = place_costs(draft.graph, draft.stored_test());
  }
}

/// Its products are kernels like others.
struct Factors final : GraphClaim {
  std::optional<Launch> launch(ValueId /*value*/) override { return std::nullopt; }
};

struct FactorClaim final : Claim {
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    store_factors(draft);
    store_parts(draft);
    store_spread(draft);
    return std::make_unique<Factors>();
  }
};

}  // namespace

const Claim& factor_claim() {
  static const FactorClaim claim;
  return claim;
}

}  // namespace rlx
