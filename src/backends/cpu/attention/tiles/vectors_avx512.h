#pragma once
#include <immintrin.h>

#include <cstdint>

#include "backends/cpu/attention/tiles/tile_code.h"

namespace rlx::cpu {
namespace {

/// The vectors of AVX-512 for the pieces in tile.h.
struct Floats {
  using Vector = __m512;
  static constexpr int lanes = 16, max_rows = 14;  // with 2 vectors: 28 sums, 2 of B, 1 of A: 31 of 32 registers
  static constexpr int few = 8, few_vectors = 4;   // with 4 rows: 16 sums
  static constexpr float lowest = -1000;           // 2^-1000 is 0 even where denormals are kept

  static Vector load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
  static Vector broadcast(const float* from) { return _mm512_set1_ps(*from); }
  static Vector multiply_add(Vector a, Vector b, Vector sum) { return _mm512_fmadd_ps(a, b, sum); }
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }  // b where one is NaN
  static float sum(Vector x) {
    const __m256 eight = _mm512_castps512_ps256(x) + _mm512_extractf32x8_ps(x, 1);
    const __m128 four = _mm256_castps256_ps128(eight) + _mm256_extractf128_ps(eight, 1), two = four + _mm_movehl_ps(four, four);
    return two[0] + two[1];
  }
  /// Lane r: the sum of x[r]; the others 0.
  static Vector sums_of_eight(const Vector* x) {
    // Each step adds halves of what is left of two vectors: 256 bits, 128, 64.
    const auto halves = [](Vector a, Vector b) { return _mm512_shuffle_f32x4(a, b, 0x44) + _mm512_shuffle_f32x4(a, b, 0xee); };
    const auto quarters = [](Vector a, Vector b) { return _mm512_shuffle_f32x4(a, b, 0x88) + _mm512_shuffle_f32x4(a, b, 0xdd); };
    const Vector low = quarters(halves(x[0], x[1]), halves(x[2], x[3])), high = quarters(halves(x[4], x[5]), halves(x[6], x[7]));
    const Vector pairs = _mm512_shuffle_ps(low, high, 0x44) + _mm512_shuffle_ps(low, high, 0xee);  // 2 lanes of x[r], 2 of x[r + 4]
    const Vector sums = pairs + _mm512_permute_ps(pairs, 0xb1);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_maskz_permutexvar_ps(0xff, order, sums);
  }
  static Vector load_half(const void* from) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from))); }
  static Vector load_bytes(const void* from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from))));
  }
  static Vector round(Vector x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Vector times_power_of_two(Vector x, Vector exponent) { return _mm512_scalef_ps(x, exponent); }
};

/// 2^x for x up to 0, from a polynomial of what x is above the next whole number down, whose highest power comes first; NaN stays.
template <int terms>
[[gnu::always_inline]] inline __m512 exp2_by(const float (&coefficients)[terms], __m512 x) {
  const __m512 fraction = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);  // of minus infinity: 0
  __m512 power = _mm512_set1_ps(coefficients[0]);
#pragma GCC unroll 8
  for (int i = 1; i < terms; ++i) power = _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(coefficients[i]));
  return _mm512_scalef_ps(power, x);  // rounds x down
}

}  // namespace
}  // namespace rlx::cpu
