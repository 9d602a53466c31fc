#include "backends/cpu/gemm/amx_registers.h"
#include "backends/cpu/quantised/matrix_block_tile.h"

namespace rlx::cpu {

constinit const BlockManyTable amx_block_products = for_block_types<BlockManyTable, Avx512, MatrixBlockProducts<AmxRegisters>>();

}  // namespace rlx::cpu
