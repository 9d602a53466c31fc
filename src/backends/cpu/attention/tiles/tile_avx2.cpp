#include <immintrin.h>

#include "backends/cpu/attention/tiles/tile_code.h"

namespace rlx::cpu {
namespace {

struct Floats {
  using Vector = __m256;
  static constexpr int lanes = 8, max_rows = 6;   // with 2 vectors: 12 sums, 2 of B, 1 of A: 15 of 16 registers
  static constexpr int few = 4, few_vectors = 2;  // with 4 rows: 8 sums
  static constexpr float lowest = -127;           // the exponent field of 0

  static Vector load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
  static Vector load_half(const void* from) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from))); }
  static Vector load_bytes(const void* from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from))));
  }
  static Vector broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm256_fmadd_ps(a, b, sum); }
  static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }  // b where one is NaN
  static float sum(Vector x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static Vector round(Vector x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Vector times_power_of_two(Vector x, Vector exponent) {
    const __m256i field = _mm256_add_epi32(_mm256_cvtps_epi32(exponent), _mm256_set1_epi32(127));
    return x * _mm256_castsi256_ps(_mm256_slli_epi32(field, 23));
  }
};

}  // namespace

constexpr AttentionKernel avx2_attention = make_attention_kernel<Floats>();

}  // namespace rlx::cpu
