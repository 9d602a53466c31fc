#pragma once
#include "backends/cpu/quantized/block_kernel.h"

namespace rlx::cpu {

inline constexpr int block_kernel_count = 25;

/// One for each block type that is multiplied as it is stored.
struct BlockKernelTable {
  BlockKernel of_type[block_kernel_count];
};
extern const BlockKernelTable portable_block_kernels, avx2_block_kernels, avx512_vnni_block_kernels, neon_dot_block_kernels;

/// BlockKernel::many of the same types, on AMX.
struct BlockManyTable {
  BlockKernel::Many of_type[block_kernel_count];
};
extern const BlockManyTable amx_block_products;

}  // namespace rlx::cpu
