#pragma once
#include "backends/cpu/quantised/block_kernel.h"

namespace rlx::cpu {

inline constexpr int block_kernel_count = 11;
extern const BlockKernel avx512_vnni_block_kernels[block_kernel_count];

}  // namespace rlx::cpu
