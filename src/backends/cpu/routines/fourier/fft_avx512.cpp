#include <immintrin.h>

#include "backends/cpu/routines/fourier/fft_passes.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Element = float;
  using Vector = __m512;
  static constexpr int lanes = 16;
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }
};
struct Doubles {
  using Element = double;
  using Vector = __m512d;
  static constexpr int lanes = 8;
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return _mm512_fnmadd_pd(a, b, c); }
};

}  // namespace

extern const FftKernel<float> avx512_fft_f32 = FftCode<Floats>::table();
extern const FftKernel<double> avx512_fft_f64 = FftCode<Doubles>::table();

}  // namespace rlx::cpu
