#include "lowering/program.h"

namespace rlx {

Cost cost(const Graph& graph, const Launch& launch, const Bindings& bindings) {
  Cost total;
  if (launch.kind == Launch::Kind::kernel && !launch.claimed) {
    for (const GeneratedKernel& kernel : launch.kernels) {
      if (kernel.only && !kernel.only->holds(bindings)) continue;
      const Cost part = cost(kernel.kernel, bindings);
      total = {total.flops + part.flops, total.bytes + part.bytes};
    }
    return total;
  }
  for (const auto* values : {&launch.reads, &launch.writes})
    for (ValueId v : *values) {
      const Type& type = graph.type(v);
      total.bytes += static_cast<double>(bytes_for(type.dtype, type.size().evaluate(bindings)));
    }
  if (!launch.claimed) return total;
  total.flops = launch.claimed->flops(graph, bindings);
  total.bytes -= launch.claimed->unread_bytes(graph, bindings);
  return total;
}

std::vector<GeneratedKernel*> Program::kernels() {
  std::vector<GeneratedKernel*> all;
  for (Launch& launch : launches)
    for (GeneratedKernel& kernel : launch.kernels) all.push_back(&kernel);
  for (const auto& [graph, program] : regions)
    for (GeneratedKernel* kernel : program->kernels()) all.push_back(kernel);
  return all;
}

ValueId Program::root(ValueId value) const {
  for (auto it = views.find(value); it != views.end(); it = views.find(value)) value = it->second;
  return value;
}

}  // namespace rlx
