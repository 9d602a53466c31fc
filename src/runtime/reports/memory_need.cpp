#include "runtime/reports/memory_need.h"

namespace rlx {

MemoryNeed memory_need(const Graph& graph, std::int64_t arena) {
  MemoryNeed need{.scratch = arena};
  const auto symbols = graph.symbols();
  const Bindings bounds(symbols.begin(), symbols.end());
  for (const auto& [input, value] : graph.inputs()) {
    const std::int64_t bytes = bytes_for(input.type.dtype, input.type.size().evaluate(bounds));
    if (input.kind == InputKind::param) need.parameters += bytes;
    if (input.kind == InputKind::state) need.states += bytes;
  }
  return need;
}

}  // namespace rlx
