#include "backends/cpu/routines/fourier/fft_passes.h"

namespace rlx::cpu {
namespace {

/// 128-bit vectors by the compiler's own extension: SSE2 on x86-64, NEON on ARM, plain code elsewhere.
template <class T>
struct Simd128 {
  using Element = T;
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr int lanes = 16 / sizeof(T);
  static Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return c - a * b; }
};

constexpr FftKernel<float> portable_fft_f32 = FftCode<Simd128<float>>::table();
constexpr FftKernel<double> portable_fft_f64 = FftCode<Simd128<double>>::table();

}  // namespace

#ifdef __x86_64__
extern const FftKernel<float> avx2_fft_f32, avx512_fft_f32;
extern const FftKernel<double> avx2_fft_f64, avx512_fft_f64;

template <>
const FftKernel<float>& fft_kernel<float>(CpuLevel level) {
  return level >= CpuLevel::avx512 ? avx512_fft_f32 : level == CpuLevel::avx2 ? avx2_fft_f32 : portable_fft_f32;
}
template <>
const FftKernel<double>& fft_kernel<double>(CpuLevel level) {
  return level >= CpuLevel::avx512 ? avx512_fft_f64 : level == CpuLevel::avx2 ? avx2_fft_f64 : portable_fft_f64;
}
#else
template <>
const FftKernel<float>& fft_kernel<float>(CpuLevel) {
  return portable_fft_f32;
}
template <>
const FftKernel<double>& fft_kernel<double>(CpuLevel) {
  return portable_fft_f64;
}
#endif

}  // namespace rlx::cpu
