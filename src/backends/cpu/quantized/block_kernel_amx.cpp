#include "backends/cpu/gemm/micro_kernels/amx_registers.h"
#include "backends/cpu/quantized/matrix_block_tile.h"

namespace rlx::cpu {

constinit const BlockManyTable amx_block_products = for_block_types<BlockManyTable, Avx512, MatrixBlockProducts<AmxRegisters>>();

}  // namespace rlx::cpu
