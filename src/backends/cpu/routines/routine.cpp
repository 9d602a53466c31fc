#include "backends/cpu/routines/routine.h"

#include "ir/op.h"
#include "ir/sources.h"

namespace rlx::cpu {
namespace {

std::vector<Routine>& routines() {
  static std::vector<Routine> all;
  return all;
}

}  // namespace

RegisterRoutine::RegisterRoutine(const Routine& routine) { routines().push_back(routine); }

ValueId read_operand(const Graph& graph, const Node& node, const Routine* routine, std::size_t operand) {
  const ValueId whole = node.operands[operand];
  if (!routine || routine->filled != static_cast<int>(operand)) return whole;
  ValueId from = whole;
  while (graph.node(from.node).op->name == "broadcast" || graph.node(from.node).op->name == "reshape")
    from = graph.node(from.node).operands[0];
  return constant_value(graph.node(from.node)) && graph.type(from).rank() == 0 ? from : whole;
}

const Routine* routine_for(const Graph& graph, const Node& node) {
  for (const Routine& routine : routines())
    if (routine.op == node.op->name && routine.takes(graph, node)) return &routine;
  return nullptr;
}

}  // namespace rlx::cpu
