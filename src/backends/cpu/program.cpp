#include "backends/cpu/program.h"

namespace rlx::cpu {

std::string Launch::name() const {
  const auto short_name = [](const GeneratedKernel& kernel) { return kernel.text.name.substr(0, 9); };
  if (const auto* kernel = std::get_if<GeneratedKernel>(&what)) return short_name(*kernel);
  if (const auto* host = std::get_if<HostLaunch>(&what)) return std::string(host->op);
  if (std::holds_alternative<Attention>(what)) return "attention";
  if (std::holds_alternative<StateUpdate>(what)) return "state_update";
  if (const auto* dot = std::get_if<BlockDot>(&what)) return (dot->experts ? "grouped_block_dot " : "block_dot ") + dot->type;
  const auto* product = std::get_if<Product>(&what);
  return (product->prologue ? short_name(*product->prologue) + "+" : "") + "gemm" +
         (product->epilogue ? "+" + short_name(*product->epilogue) : "");
}

std::vector<GeneratedKernel*> Launch::kernels() {
  std::vector<GeneratedKernel*> all;
  if (auto* kernel = std::get_if<GeneratedKernel>(&what)) all.push_back(kernel);
  for (GeneratedKernel& edge : edges) all.push_back(&edge);
  if (auto* product = std::get_if<Product>(&what))
    for (auto* part : {&product->prologue, &product->epilogue})
      if (*part) all.push_back(&**part);
  return all;
}

std::vector<const GeneratedKernel*> Launch::kernels() const {
  const auto all = const_cast<Launch*>(this)->kernels();
  return {all.begin(), all.end()};
}

std::vector<GeneratedKernel*> Program::kernels() {
  std::vector<GeneratedKernel*> all;
  for (Launch& launch : launches)
    for (GeneratedKernel* kernel : launch.kernels()) all.push_back(kernel);
  for (const auto& [graph, program] : regions)
    for (GeneratedKernel* kernel : program->kernels()) all.push_back(kernel);
  return all;
}

ValueId Program::root(ValueId value) const {
  for (auto it = views.find(value); it != views.end(); it = views.find(value)) value = it->second;
  return value;
}

}  // namespace rlx::cpu
