#include "backends/cpu/gemm/micro_kernel.h"

#include "backends/cpu/gemm/tables.h"
#include "rlx/error.h"

namespace rlx::cpu {

template <>
const MicroKernel<float>& micro_kernel(CpuLevel level) {
  if (level == CpuLevel::portable) return portable_f32;
#ifdef __x86_64__
  if (level == CpuLevel::avx2) return avx2_f32;
  if (level == CpuLevel::avx512) return avx512_f32;
#endif
  fail_internal("gemm: no f32 kernel at level {}", to_string(level));
}

template <>
const MicroKernel<double>& micro_kernel(CpuLevel level) {
  if (level == CpuLevel::portable) return portable_f64;
#ifdef __x86_64__
  if (level == CpuLevel::avx2) return avx2_f64;
  if (level == CpuLevel::avx512) return avx512_f64;
#endif
  fail_internal("gemm: no f64 kernel at level {}", to_string(level));
}

}  // namespace rlx::cpu
