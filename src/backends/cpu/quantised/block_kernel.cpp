#include "backends/cpu/quantised/block_kernel.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include "backends/cpu/quantised/block_tables.h"
#endif

namespace rlx::cpu {

const BlockKernel* block_kernel([[maybe_unused]] std::string_view type, [[maybe_unused]] CpuLevel level) {
#if defined(__x86_64__)
  if (level >= CpuLevel::avx512 && cpu_features().avx512_vnni) {
    const BlockKernel* const kernel = std::ranges::find(avx512_vnni_block_kernels, type, &BlockKernel::type);
    if (kernel != std::end(avx512_vnni_block_kernels)) return kernel;
  }
#endif
  return nullptr;
}

}  // namespace rlx::cpu
