#include "backends/cpu/attention/tiles/tile_products.h"
#include "backends/cpu/gemm/micro_kernels/amx_registers.h"

namespace rlx::cpu {

constexpr TileProducts amx_attention = make_tile_products<AmxRegisters>();

}  // namespace rlx::cpu
