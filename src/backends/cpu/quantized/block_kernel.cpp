#include "backends/cpu/quantized/block_kernel.h"

#include <algorithm>
#include <iterator>

#include "backends/cpu/quantized/block_tables.h"

namespace rlx::cpu {
namespace {

#if defined(__x86_64__)
BlockKernelTable with_tiles_of_amx() {
  BlockKernelTable table = avx512_vnni_block_kernels;
  for (int i = 0; i < block_kernel_count; ++i) table.of_type[i].many = amx_block_products.of_type[i];
  return table;
}
#endif

const BlockKernelTable& block_kernels([[maybe_unused]] CpuLevel level) {
#if defined(__x86_64__)
  static const BlockKernelTable amx = with_tiles_of_amx();
  if (level == CpuLevel::amx) return amx;
  if (level == CpuLevel::avx512 && cpu_features().avx512_vnni) return avx512_vnni_block_kernels;
  if (level >= CpuLevel::avx2) return avx2_block_kernels;
#elif defined(__aarch64__)
  if (level == CpuLevel::neon && cpu_features().neon_dot) return neon_dot_block_kernels;
#endif
  return portable_block_kernels;
}

}  // namespace

const BlockKernel* block_kernel(std::string_view type, CpuLevel level) {
  const BlockKernelTable& table = block_kernels(level);
  const BlockKernel* const kernel = std::ranges::find(table.of_type, type, &BlockKernel::type);
  return kernel != std::end(table.of_type) ? kernel : nullptr;
}

}  // namespace rlx::cpu
