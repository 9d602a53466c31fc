#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"

#include <type_traits>

#include "backends/cpu/gemm/micro_kernels/tables.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

template <class T>
const MicroKernel<T>* find_micro_kernel(CpuLevel level) {
  if constexpr (std::is_same_v<T, float>) {
    if (level == CpuLevel::portable) return &portable_f32;
#ifdef __x86_64__
    if (level >= CpuLevel::avx2) return level == CpuLevel::avx2 ? &avx2_f32 : &avx512_f32;
#elif defined(__aarch64__)
    if (level == CpuLevel::neon) return &neon_f32;
#endif
  } else if constexpr (std::is_same_v<T, double>) {
    if (level == CpuLevel::portable) return &portable_f64;
#ifdef __x86_64__
    if (level >= CpuLevel::avx2) return level == CpuLevel::avx2 ? &avx2_f64 : &avx512_f64;
#elif defined(__aarch64__)
    if (level == CpuLevel::neon) return &neon_f64;
#endif
  } else if constexpr (std::is_same_v<T, Bf16>) {
#ifdef __x86_64__
    if (level == CpuLevel::amx) return &amx_bf16;
    if (level == CpuLevel::avx512 && cpu_features().avx512_bf16) return &avx512_bf16;
#elif defined(__aarch64__)
    if (level == CpuLevel::neon && cpu_features().neon_bf16) return &neon_bf16;
#endif
  } else if constexpr (std::is_same_v<T, F16>) {
#ifdef __x86_64__
    if (level >= CpuLevel::avx2) return level == CpuLevel::avx2 ? &avx2_f16 : &avx512_f16;
#elif defined(__aarch64__)
    if (level == CpuLevel::neon) return &neon_f16;
#endif
  } else if constexpr (std::is_same_v<T, Bf16Weight>) {
#ifdef __x86_64__
    if (level >= CpuLevel::avx2) return level == CpuLevel::avx2 ? &avx2_bf16_weight : &avx512_bf16_weight;
#elif defined(__aarch64__)
    if (level == CpuLevel::neon) return &neon_bf16_weight;
#endif
    return &portable_bf16_weight;
  } else {
#ifdef __x86_64__
    if (level == CpuLevel::amx) return &amx_i8;
    if (level == CpuLevel::avx512 && cpu_features().avx512_vnni) return &avx512_vnni;
    if (level >= CpuLevel::avx2) return &avx2_i8;
#elif defined(__aarch64__)
    if (level == CpuLevel::neon && cpu_features().neon_dot) return &neon_dot;
#endif
    return &portable_i8;
  }
  return nullptr;
}

}  // namespace

template <class T>
bool has_micro_kernel(CpuLevel level) {
  return find_micro_kernel<T>(level) != nullptr;
}

template <class T>
const MicroKernel<T>& micro_kernel(CpuLevel level) {
  const MicroKernel<T>* kernel = find_micro_kernel<T>(level);
  if (!kernel) fail_internal("gemm: no kernel for elements of {} bytes at level {}", sizeof(T), to_string(level));
  return *kernel;
}

template bool has_micro_kernel<float>(CpuLevel);
template bool has_micro_kernel<double>(CpuLevel);
template bool has_micro_kernel<Bf16>(CpuLevel);
template bool has_micro_kernel<F16>(CpuLevel);
template bool has_micro_kernel<Bf16Weight>(CpuLevel);
template bool has_micro_kernel<std::int8_t>(CpuLevel);
template const MicroKernel<float>& micro_kernel(CpuLevel);
template const MicroKernel<double>& micro_kernel(CpuLevel);
template const MicroKernel<Bf16>& micro_kernel(CpuLevel);
template const MicroKernel<F16>& micro_kernel(CpuLevel);
template const MicroKernel<Bf16Weight>& micro_kernel(CpuLevel);
template const MicroKernel<std::int8_t>& micro_kernel(CpuLevel);

}  // namespace rlx::cpu
