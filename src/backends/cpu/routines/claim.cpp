#include "backends/cpu/routines/claim.h"

#include <algorithm>

#include "backends/cpu/routines/step.h"
#include "ir/op.h"

namespace rlx::cpu {

/// The node says which routine.
void list_parts(ProgramWriter& way, const RoutineWork& work) { way("node", work.node); }
void list_parts(ProgramReader& way, RoutineWork& work) {
  work.node = static_cast<std::int32_t>(way.integer("node", 0, static_cast<std::int64_t>(way.graph->size()) - 1));
  const Node& node = way.graph->node(work.node);
  work.routine = routine_for(*way.graph, node);
  if (!work.routine) way.refuse("node", node.op->name, "ops with a routine");
}

namespace {

const RegisterWork<RoutineWork> routine_work("routine");

class RoutineNodes final : public GraphClaim {
 public:
  explicit RoutineNodes(const Draft& draft) : draft_(draft), graph_(draft.graph) {}

  std::optional<Launch> launch(ValueId value) override {
    const Node& node = graph_.node(value.node);
    const Routine* const routine = draft_.cut.on_host(value.node) || is_copied(value) ? routine_for(graph_, node) : nullptr;
    if (!routine) return std::nullopt;
    std::vector<ValueId> reads, writes;
    for (std::size_t i = 0; i < node.operands.size(); ++i) reads.push_back(read_operand(graph_, node, routine, i));
    for (std::size_t r = 0; r < node.results.size(); ++r) writes.push_back({value.node, static_cast<std::int32_t>(r)});
    Launch launch = launch_with(std::string(node.op->name), value, std::move(reads), std::move(writes), RoutineWork{routine, value.node});
    launch.replaced = routine->in_place_of;
    return launch;
  }

 private:
  /// A concat of many stored values, or where kernels would be too long: its runs are copied.
  bool is_copied(ValueId v) const {
    constexpr std::size_t most_choices = 8;
    const Node& node = graph_.node(v.node);
    if (node.op->name != "concat" || !draft_.fuse) return false;
    if (node.operands.size() <= most_choices && !draft_.cut.was_too_long(v)) return false;
    return std::ranges::all_of(node.operands, [&](ValueId operand) { return draft_.cut.is_stored(operand); });
  }

  const Draft& draft_;
  const Graph& graph_;
};

struct RoutineClaim final : Claim {
  bool takes(const Graph& graph, const Node& node, const Caps& /*caps*/) const override { return routine_for(graph, node); }
  ValueId read_operand(const Graph& graph, const Node& node, std::size_t operand) const override {
    return cpu::read_operand(graph, node, routine_for(graph, node), operand);
  }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<RoutineNodes>(draft); }
};

}  // namespace

const Claim& routine_claim() {
  static const RoutineClaim claim;
  return claim;
}

}  // namespace rlx::cpu
