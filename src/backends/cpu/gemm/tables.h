#pragma once
#include "backends/cpu/gemm/micro_kernel.h"

namespace rlx::cpu {

/// One table per level and type, each in its own file, which is compiled for that level.
extern const MicroKernel<float> portable_f32, avx2_f32, avx512_f32;
extern const MicroKernel<double> portable_f64, avx2_f64, avx512_f64;

}  // namespace rlx::cpu
