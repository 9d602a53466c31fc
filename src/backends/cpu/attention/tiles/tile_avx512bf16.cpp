#include <utility>

#include "backends/cpu/attention/tiles/pairs_avx512.h"
#include "backends/cpu/attention/tiles/tile_kernel.h"
#include "backends/cpu/attention/tiles/vectors_avx512.h"

namespace rlx::cpu {
namespace {

struct Bf16Pairs {
  using Sums = __m512;
  static Sums add(Sums sums, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

template <int vectors, int rows>
void multiply_keys(std::int64_t units, const Bf16* a, std::int64_t stride, const std::uint32_t* b, float* c, float factor) {
  __m512 sums[rows][vectors] = {};
  multiply_pairs<Bf16Pairs>(units, [&](std::int64_t unit) { return Apart<Bf16>(a + 2 * unit, stride * 2); }, b, sums);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(c + (r * vectors + v) * vector_lanes, sums[r][v] * factor);
}

template <int vectors, int rows>
void multiply_values(std::int64_t units, const std::uint32_t* a, std::int64_t stride, const std::uint32_t* b, float* c,
                     const float* decay) {
  __m512 sums[rows][vectors] = {};
#pragma GCC unroll 16
  for (int r = 0; decay && r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      sums[r][v] = _mm512_loadu_ps(c + (r * vectors + v) * vector_lanes) * _mm512_loadu_ps(decay + v * vector_lanes);
  multiply_pairs<Bf16Pairs>(units, [&](std::int64_t unit) { return SideBySide<std::uint32_t>{a + unit * stride}; }, b, sums);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(c + (r * vectors + v) * vector_lanes, sums[r][v]);
}

/// Numbers begin..begin + 15 of one vector, each followed by that of another.
__m512i interleaving(int begin) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(0x10001)), _mm512_set1_epi32(0x200000 + begin * 0x10001));
}

void pair_values(const Bf16* values, std::int64_t stride, std::int64_t keys, std::int64_t features, std::uint32_t* units) {
  const __m512i low = interleaving(0), high = interleaving(16);
  for (std::int64_t key = 0; key < keys; key += 2, values += 2 * stride, units += features)
    for (std::int64_t d = 0; d < features; d += 32) {
      const std::int64_t rest = features - d;
      const __mmask32 some = rest < 32 ? (1U << rest) - 1 : ~0U;
      const __m512i first = _mm512_maskz_loadu_epi16(some, values + d);
      const __m512i second = _mm512_maskz_loadu_epi16(key + 1 < keys ? some : 0, values + stride + d);
      _mm512_mask_storeu_epi32(units + d, static_cast<__mmask16>(some), _mm512_permutex2var_epi16(first, low, second));
      if (rest > 16)
        _mm512_mask_storeu_epi32(units + d + 16, static_cast<__mmask16>(some >> 16), _mm512_permutex2var_epi16(first, high, second));
    }
}

/// Of 2^x: the least relative error over 0..1, 9e-5, with 1 at 0, a twentieth of what rounding to bf16 adds.
constexpr float powers[] = {0.0770670548f, 0.227644980f, 0.695116818f, 1};

/// Two rows of weights, rounded, in one vector of units. A half is rounded up. NaN stays, as a total of NaN makes the result so.
__m512i paired(__m512 first, __m512 second) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  const auto raised = [&](__m512 x) { return _mm512_add_epi32(_mm512_castps_si512(x), half); };
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(raised(first), 16), raised(second));
}

template <int vectors>
void weigh(float* scores, std::int64_t keys, const ScoreRules& rules, const RunningSoftmax& running) {
  constexpr std::int64_t lanes = vectors * vector_lanes;
  __m512 shift[vectors], total[vectors];
  bring_in<Floats>(scores, keys, rules, running, shift, total);
  const auto weight = [&](std::int64_t key, int v) {
    const __m512 result = exp2_by(powers, _mm512_loadu_ps(scores + key * lanes + v * vector_lanes) - shift[v]);
    total[v] += result;
    return result;
  };
  float* to = scores;
  for (std::int64_t key = 0; key < keys; key += 2) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v, to += vector_lanes) {
      const __m512 first = weight(key, v), second = key + 1 < keys ? weight(key + 1, v) : _mm512_setzero_ps();
      _mm512_storeu_si512(to, paired(first, second));
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(running.total + v * vector_lanes, total[v]);
}

template <int vectors, int... index>
consteval void add_rows(PairProducts& products, std::integer_sequence<int, index...>) {
  ((products.scores[vectors - 1][index + 1] = multiply_keys<vectors, index + 1>), ...);
  ((products.values[vectors - 1][index + 1] = multiply_values<vectors, index + 1>), ...);
  products.weigh[vectors - 1] = weigh<vectors>;
}

consteval PairProducts make_products() {
  PairProducts products;
  add_rows<1>(products, std::make_integer_sequence<int, max_rows>());
  add_rows<2>(products, std::make_integer_sequence<int, max_rows>());
  products.pair_values = pair_values;
  return products;
}

}  // namespace

constexpr PairProducts avx512bf16_attention = make_products();

}  // namespace rlx::cpu
