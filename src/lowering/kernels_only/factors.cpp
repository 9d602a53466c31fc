#include <algorithm>

#include "ir/op.h"
#include "lowering/kernels_only/claims.h"

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

void store_factors(Draft& draft) {
  constexpr std::int64_t least_work = 4096;  // multiply-adds
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(draft.graph.size()); ++id) {
    const Node& node = draft.graph.node(id);
    if (!draft.cut.live(id) || draft.cut.on_host(id) || node.op->name != "dot") continue;
    const Dim rows = draft.graph.type(node.operands[0]).size(), columns = draft.graph.type(node.operands[1]).size();
    if (std::max(rows.upper(), columns.upper()) < least_work) continue;
    for (ValueId factor : node.operands) draft.cut.store(moved(draft, factor));
  }
}

/// Its products are kernels like others.
struct Factors final : GraphClaim {
  std::optional<Launch> launch(ValueId /*value*/) override { return std::nullopt; }
};

struct FactorClaim final : Claim {
  std::unique_ptr<GraphClaim> start(Draft& draft) const override {
    store_factors(draft);
    return std::make_unique<Factors>();
  }
};

}  // namespace

const Claim& factor_claim() {
  static const FactorClaim claim;
  return claim;
}

}  // namespace rlx
