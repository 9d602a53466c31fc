#pragma once
#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"

namespace rlx::cpu {

/// One table per level and type, each in a file that is compiled for those instructions.
extern const MicroKernel<float> portable_f32, avx2_f32, avx512_f32, neon_f32;
extern const MicroKernel<double> portable_f64, avx2_f64, avx512_f64, neon_f64;
extern const MicroKernel<Bf16> avx512_bf16, amx_bf16, neon_bf16;
extern const MicroKernel<F16> avx2_f16, avx512_f16, neon_f16;
extern const MicroKernel<Bf16Weight> portable_bf16_weight, avx2_bf16_weight, avx512_bf16_weight, neon_bf16_weight;
extern const MicroKernel<std::int8_t> portable_i8, avx2_i8, avx512_vnni, amx_i8, neon_dot;

}  // namespace rlx::cpu
