#include <immintrin.h>

#include "backends/cpu/routines/fourier/fft_passes.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Element = float;
  using Vector = __m256;
  static constexpr int lanes = 8;
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return _mm256_fnmadd_ps(a, b, c); }
};
struct Doubles {
  using Element = double;
  using Vector = __m256d;
  static constexpr int lanes = 4;
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return _mm256_fnmadd_pd(a, b, c); }
};

}  // namespace

extern const FftKernel<float> avx2_fft_f32 = FftCode<Floats>::table();
extern const FftKernel<double> avx2_fft_f64 = FftCode<Doubles>::table();

}  // namespace rlx::cpu
