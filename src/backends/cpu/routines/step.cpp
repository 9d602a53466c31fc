#include "backends/cpu/routines/step.h"

#include "backends/cpu/execution/execute.h"
#include "backends/cpu/machine/level_of.h"
#include "ir/array_type.h"
#include "ir/reference.h"

namespace rlx::cpu {

void prepare_step(const RoutineWork& /*work*/, Step& step, const Preparation& given) {
  for (ValueId v : step.launch->reads) step.operands.push_back(given.slot_of(v));
  for (ValueId v : step.launch->writes) step.results.push_back(given.slot_of(v));
}

void run_step(const RoutineWork& work, const Step& step, const RunState& run) {
  const Graph& graph = run.program->graph;
  const Node& node = graph.node(work.node);
  std::vector<RoutineArray> operands, results;
  const auto shape = [&](const Type& type) { return static_shape(bind_sizes(type, run.bindings)); };
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const Type& type = graph.type(step.launch->reads[i]);
    operands.push_back({type.dtype, shape(type), run.memory[static_cast<std::size_t>(step.operands[i])]});
  }
  for (std::size_t i = 0; i < node.results.size(); ++i)
    results.push_back({node.results[i].dtype, shape(node.results[i]), run.memory[static_cast<std::size_t>(step.results[i])]});
  work.routine->run(
      {node.attrs, operands, results, *run.pool, level_of(*run.target), [&run](std::size_t bytes) { return workspace(run, bytes); }});
}

}  // namespace rlx::cpu
