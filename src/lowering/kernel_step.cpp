#include "lowering/kernel_step.h"

#include <algorithm>

namespace rlx {

std::int64_t KernelStep::positions(const std::int64_t* sizes) const {
  if (const std::int64_t size = chosen_by(sizes); size < least || size > most) return 0;
  std::int64_t count = 1;
  for (const Size& extent : grid) count *= extent(sizes);
  return count;
}

namespace {

KernelStep prepare_kernel(const GeneratedKernel& launch, SizeTable& sizes, const std::function<int(ValueId)>& slot_of) {
  const Kernel& kernel = launch.kernel;
  KernelStep step;
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    step.buffers.push_back(slot_of(kernel.buffers[i].value));
    step.starts.push_back(bytes_for(kernel.buffers[i].dtype, launch.first[i]));
  }
  if (const auto& only = launch.only) {
    step.chosen_by = sizes(only->size);
    step.least = only->least, step.most = only->most;
  }
  std::set<int> grid;
  for (const auto [loop, run] : launch.text.grid) {
    grid.insert(loop);
    step.grid.push_back(sizes(kernel.extent(loop)).in_runs(run));
  }
  const auto free = free_variables(kernel);
  std::vector<std::pair<Dim, double>> work;
  for (std::size_t i = 0; i < kernel.exprs.size(); ++i) {
    Dim runs = 1;
    for (int v : free[i])
      if (!grid.count(v)) runs *= kernel.extent(v);
    for (int v : kernel.exprs[i].variables) runs *= kernel.extent(v);
    auto it = std::find_if(work.begin(), work.end(), [&](const auto& w) { return w.first == runs; });
    if (it == work.end()) work.emplace_back(runs, 1);
    else it->second += 1;
  }
  for (const auto& [runs, count] : work) step.work.emplace_back(sizes(runs), count);
  return step;
}

}  // namespace

LaunchStep prepare_launch(const Launch& launch, SizeTable& sizes, const std::function<int(ValueId)>& slot_of) {
  LaunchStep step{&launch, {}, {}, {}};
  if (launch.kind == Launch::Kind::kernel) {
    for (const GeneratedKernel& kernel : launch.kernels) step.kernels.push_back(prepare_kernel(kernel, sizes, slot_of));
    return step;
  }
  for (ValueId v : launch.reads) step.operands.push_back(slot_of(v));
  for (ValueId v : launch.writes) step.results.push_back(slot_of(v));
  return step;
}

}  // namespace rlx
