#include "backends/cpu/routines/routine.h"

#include "ir/op.h"

namespace rlx::cpu {
namespace {

std::vector<Routine>& routines() {
  static std::vector<Routine> all;
  return all;
}

}  // namespace

RegisterRoutine::RegisterRoutine(const Routine& routine) { routines().push_back(routine); }

const Routine* routine_for(const Graph& graph, const Node& node) {
  for (const Routine& routine : routines())
    if (routine.op == node.op->name && routine.takes(graph, node)) return &routine;
  return nullptr;
}

}  // namespace rlx::cpu
