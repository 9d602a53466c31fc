#include "backends/cpu/gemm/micro_kernels/amx_registers.h"
#include "backends/cpu/gemm/micro_kernels/matrix_tile.h"
#include "backends/cpu/gemm/micro_kernels/tables.h"

namespace rlx::cpu {

constexpr MicroKernel<Bf16> amx_bf16 = make_matrix_tile_kernel<AmxRegisters, Bf16>();
constexpr MicroKernel<std::int8_t> amx_i8 = make_matrix_tile_kernel<AmxRegisters, std::int8_t>();

}  // namespace rlx::cpu
