#include "backends/cpu/quantized/block_kernel_table.h"
#include "backends/cpu/quantized/block_tile.h"

namespace rlx::cpu {

constinit const BlockKernelTable avx512_vnni_block_kernels = for_block_types<BlockKernelTable, Avx512, TileKernels>();

}  // namespace rlx::cpu
