#include <immintrin.h>

#include "backends/cpu/attention/tile.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Vector = __m512;
  static constexpr int lanes = 16, max_rows = 14;  // with 2 vectors: 28 sums, 2 of B, 1 of A: 31 of 32 registers
  static constexpr int few_vectors = 4;            // with 4 rows: 16 sums
  static constexpr float lowest = -1000;           // 2^-1000 is 0 even where denormals are kept

  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
  static Vector broadcast(const float* from) { return _mm512_set1_ps(*from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }  // b where one is NaN
  static float sum(Vector x) { return _mm512_reduce_add_ps(x); }
  static Vector round(Vector x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Vector times_power_of_two(Vector x, Vector exponent) { return _mm512_scalef_ps(x, exponent); }
};

}  // namespace

constexpr AttentionKernel avx512_attention = make_attention_kernel<Floats>();

}  // namespace rlx::cpu
