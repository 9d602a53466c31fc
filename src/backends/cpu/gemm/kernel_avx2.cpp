#include <immintrin.h>

#include "backends/cpu/gemm/tables.h"
#include "backends/cpu/gemm/tile.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Scalar = float;
  using Vector = __m256;
  static constexpr int lanes = 8, panel_vectors = 2, max_rows = 6;  // 12 sums, 2 of B, 1 of A: 15 of 16 registers

  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
  static Vector broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
};

struct Doubles {
  using Scalar = double;
  using Vector = __m256d;
  static constexpr int lanes = 4, panel_vectors = 2, max_rows = 6;

  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector load(const double* from) { return _mm256_loadu_pd(from); }
  static void store(double* to, Vector value) { _mm256_storeu_pd(to, value); }
  static Vector broadcast(const double* from) { return _mm256_broadcast_sd(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_pd(a, b, sum); }
};

}  // namespace

constexpr MicroKernel<float> avx2_f32 = make_micro_kernel<Floats>();
constexpr MicroKernel<double> avx2_f64 = make_micro_kernel<Doubles>();

}  // namespace rlx::cpu
