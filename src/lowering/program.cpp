#include "lowering/program.h"

namespace rlx {

Cost cost(const Program& program, const Launch& launch, const Bindings& bindings) {
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
      const Type& type = program.type(v);
      total.bytes += static_cast<double>(bytes_for(type.dtype, type.size().evaluate(bindings)));
    }
  if (!launch.claimed) return total;
  total.flops = launch.claimed->flops(program.graph, bindings);
  total.bytes -= launch.claimed->unread_bytes(program.graph, bindings);
  return total;
}

const Type& Program::type(ValueId value) const {
  const auto found = packed.find(value);
  return found == packed.end() ? graph.type(value) : found->second;
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
