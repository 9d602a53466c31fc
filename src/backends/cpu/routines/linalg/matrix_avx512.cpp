#include <immintrin.h>

#include "backends/cpu/routines/linalg/matrix_code.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Element = float;
  using Vector = __m512;
  static constexpr int lanes = 16;
  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector x) { _mm512_storeu_ps(to, x); }
  static Vector all(float x) { return _mm512_set1_ps(x); }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }
  static bool any_larger(Vector x, float than) { return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(than), _CMP_GT_OQ) != 0; }
  static float magnitude(float x) { return x < 0 ? -x : x; }
  static float conjugate(float x) { return x; }
  static bool positive(float x) { return x > 0; }
  static float root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
};
struct Doubles {
  using Element = double;
  using Vector = __m512d;
  static constexpr int lanes = 8;
  static Vector load(const double* from) { return _mm512_loadu_pd(from); }
  static void store(double* to, Vector x) { _mm512_storeu_pd(to, x); }
  static Vector all(double x) { return _mm512_set1_pd(x); }
  static Vector subtract_product(Vector a, Vector b, Vector c) { return _mm512_fnmadd_pd(a, b, c); }
  static bool any_larger(Vector x, double than) { return _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_set1_pd(than), _CMP_GT_OQ) != 0; }
  static double magnitude(double x) { return x < 0 ? -x : x; }
  static double conjugate(double x) { return x; }
  static bool positive(double x) { return x > 0; }
  static double root(double x) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(x), _mm_set_sd(x))); }
};

}  // namespace

extern const MatrixKernel<float> avx512_matrix_f32 = MatrixCode<Floats>::table();
extern const MatrixKernel<double> avx512_matrix_f64 = MatrixCode<Doubles>::table();

}  // namespace rlx::cpu
