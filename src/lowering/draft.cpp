#include "lowering/draft.h"

#include "kernel/math/math.h"
#include "kernel/simplify.h"
#include "kernel/starts.h"
#include "lowering/large_results.h"

namespace rlx {

GeneratedKernel Draft::generate(Kernel kernel) const {
  if (!kernel.tile) kernel.symbols = symbols;
  merge_loops(kernel);
  simplify(kernel);
  expand_math(kernel);
  mark_large_results(kernel, graph, target.caps.past_caches_bytes);
  std::vector<std::int64_t> first = first_elements(kernel);
  KernelText text = target.print(counted_from(kernel, first), target.caps);
  return {std::move(kernel), std::move(text), nullptr, std::move(first)};
}

}  // namespace rlx
