#include <limits>
#include <utility>

#include "backends/cpu/attention/tiles/pairs_avx512.h"
#include "backends/cpu/attention/tiles/tile_kernel.h"
#include "backends/cpu/attention/tiles/vectors_avx512.h"

namespace rlx::cpu {
namespace {

struct IntegerPairs {
  /// By its elements: as __m512i, which are others, each sum would take two registers in a loop.
  typedef std::int32_t Sums __attribute__((vector_size(64)));
  static Sums add(Sums sums, __m512i a, __m512i b) {
    return reinterpret_cast<Sums>(_mm512_dpwssd_epi32(reinterpret_cast<__m512i>(sums), a, b));
  }
};

/// Two steps of depth, rounded, in one vector of units. Both are below 2^15: added to 1.5 * 2^23 they leave their integers in the low bits.
__m512i paired(__m512 first, __m512 second) {
  const __m512 raise = _mm512_set1_ps(0x1.8p23f);
  const auto low = _mm512_castps_si512(_mm512_add_ps(first, raise)), high = _mm512_castps_si512(_mm512_add_ps(second, raise));
  return _mm512_mask_blend_epi16(0xaaaaaaaa, low, _mm512_slli_epi32(high, 16));
}

/// What integers up to `most` are multiplied by, where the largest is of this size, and what makes them; of 0 both are 0, of what is not
/// finite NaN and any number.
struct Step {
  Step(__m512 size, float most) {
    const __mmask16 is_finite = _mm512_cmp_ps_mask(size, _mm512_set1_ps(std::numeric_limits<float>::infinity()), _CMP_LT_OQ);
    const __mmask16 is_some = _mm512_cmp_ps_mask(size, _mm512_setzero_ps(), _CMP_GT_OQ);
    const __m512 nan = _mm512_set1_ps(std::numeric_limits<float>::quiet_NaN());
    factor = _mm512_mask_mul_ps(nan, is_finite, size, _mm512_set1_ps(1 / most));
    inverse = _mm512_maskz_div_ps(static_cast<__mmask16>(is_finite & is_some), _mm512_set1_ps(most), size);
  }
  __m512 factor, inverse;
};

template <class K>
void round_keys(std::int64_t features, std::int64_t keys, const KeyRows<K>& rows, std::int16_t* to, float* factors) {
  KeyRows<K> row = rows;
  for (std::int64_t key = 0; key < keys; ++key, to_next(row), to += features) {
    __m512 squares = _mm512_setzero_ps();
    for (std::int64_t d = 0; d < features; d += vector_lanes) {
      const __m512 x = load_features<Floats>(row, d);
      squares = _mm512_fmadd_ps(x, x, squares);
    }
    const Step step(_mm512_sqrt_ps(_mm512_set1_ps(_mm512_reduce_add_ps(squares))), IntegerProducts::most_length);
    factors[key] = _mm512_cvtss_f32(step.factor);
    for (std::int64_t d = 0; d < features; d += vector_lanes) {
      const __m512i integers = _mm512_cvtps_epi32(load_features<Floats>(row, d) * step.inverse);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + d), _mm512_cvtsepi32_epi16(integers));
    }
  }
}

/// The largest number of a row, whatever its sign. NaN counts as the largest, as its bits do.
template <class K>
Step step_of_values(const KeyRows<K>& row, std::int64_t features) {
  __m512i largest = _mm512_setzero_si512();
  for (std::int64_t d = 0; d < features; d += vector_lanes)
    largest = _mm512_max_epi32(largest, _mm512_castps_si512(_mm512_abs_ps(load_features<Floats>(row, d))));
  return {_mm512_castsi512_ps(_mm512_set1_epi32(_mm512_reduce_max_epi32(largest))), IntegerProducts::most_value};
}

template <class K>
void round_values(std::int64_t features, std::int64_t keys, const KeyRows<K>& rows, std::uint32_t* units, float* factors) {
  KeyRows<K> row = rows;
  for (std::int64_t key = 0; key < keys; key += 2, units += features) {
    KeyRows<K> next = row;
    if (key + 1 < keys) to_next(next);  // an odd last key is beside itself: its weights there are 0
    const Step first = step_of_values(row, features), second = step_of_values(next, features);
    factors[key] = _mm512_cvtss_f32(first.factor);
    if (key + 1 < keys) factors[key + 1] = _mm512_cvtss_f32(second.factor);
    for (std::int64_t d = 0; d < features; d += vector_lanes)
      _mm512_storeu_si512(units + d,
                          paired(load_features<Floats>(row, d) * first.inverse, load_features<Floats>(next, d) * second.inverse));
    row = next;
    to_next(row);
  }
}

template <int vectors>
void round_queries(float* queries, std::int64_t features, float factor, float* factors) {
  constexpr std::int64_t lanes = vectors * vector_lanes;
  const auto at = [&](std::int64_t d, int v) { return _mm512_loadu_ps(queries + d * lanes + v * vector_lanes); };
  __m512 squares[vectors] = {}, inverse[vectors];
  for (std::int64_t d = 0; d < features; ++d)
    for (int v = 0; v < vectors; ++v) squares[v] = _mm512_fmadd_ps(at(d, v), at(d, v), squares[v]);
  for (int v = 0; v < vectors; ++v) {
    const Step step(_mm512_sqrt_ps(squares[v]), IntegerProducts::most_length);
    inverse[v] = step.inverse;
    _mm512_storeu_ps(factors + v * vector_lanes, step.factor * factor);
  }
  float* to = queries;
  for (std::int64_t d = 0; d < features; d += 2)
    for (int v = 0; v < vectors; ++v, to += vector_lanes) _mm512_storeu_si512(to, paired(at(d, v) * inverse[v], at(d + 1, v) * inverse[v]));
}

/// Of 2^x: the least relative error over 0..1, 3e-6, with 1 at 0, a tenth of what rounding to integers adds.
constexpr float powers[] = {0.0134266857f, 0.0522424728f, 0.241280213f, 0.693044841f, 1};

template <int vectors>
void weigh(float* scores, std::int64_t keys, const ScoreRules& rules, const RunningSoftmax& running, const float* value_factors,
           float* factors) {
  constexpr std::int64_t lanes = vectors * vector_lanes;
  __m512 shift[vectors], total[vectors], sum[vectors] = {}, largest[vectors] = {}, inverse[vectors];
  bring_in<Floats>(scores, keys, rules, running, shift, total);
  for (std::int64_t key = 0; key < keys; ++key) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      float* const at = scores + key * lanes + v * vector_lanes;
      const __m512 weight = exp2_by(powers, _mm512_loadu_ps(at) - shift[v]), of_value = weight * value_factors[key];
      _mm512_storeu_ps(at, of_value);
      total[v] += weight;
      sum[v] += of_value;
      largest[v] = _mm512_max_ps(largest[v], of_value);
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) {
    _mm512_storeu_ps(running.total + v * vector_lanes, total[v]);
    // A NaN is in the sum in any case, and max gives its right operand where one is NaN.
    constexpr float part = IntegerProducts::most_weight / IntegerProducts::most_weights;
    const Step step(_mm512_max_ps(largest[v], sum[v] * part), IntegerProducts::most_weight);
    inverse[v] = step.inverse;
    _mm512_storeu_ps(factors + v * vector_lanes, step.factor);
  }
  const auto at = [&](std::int64_t key, int v) { return _mm512_loadu_ps(scores + key * lanes + v * vector_lanes) * inverse[v]; };
  float* to = scores;
  for (std::int64_t key = 0; key < keys; key += 2)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v, to += vector_lanes)
      _mm512_storeu_si512(to, paired(at(key, v), key + 1 < keys ? at(key + 1, v) : _mm512_setzero_ps()));
}

template <int vectors, int rows>
void multiply_keys(std::int64_t units, const std::int16_t* keys, std::int64_t stride, const float* key_factors,
                   const std::uint32_t* queries, const float* factors, float* scores) {
  IntegerPairs::Sums sums[rows][vectors] = {};
  multiply_pairs<IntegerPairs>(units, [&](std::int64_t unit) { return Apart<std::int16_t>(keys + 2 * unit, stride * 2); }, queries, sums);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      _mm512_storeu_ps(scores + (r * vectors + v) * vector_lanes, _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(sums[r][v])) *
                                                                      key_factors[r] * _mm512_loadu_ps(factors + v * vector_lanes));
}

template <int vectors, int rows>
void multiply_values(std::int64_t units, const std::uint32_t* values, std::int64_t stride, const std::uint32_t* weights,
                     const float* factors, const float* decay, float* sums) {
  IntegerPairs::Sums added[rows][vectors] = {};
  multiply_pairs<IntegerPairs>(units, [&](std::int64_t unit) { return SideBySide<std::uint32_t>{values + unit * stride}; }, weights, added);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      float* const to = sums + (r * vectors + v) * vector_lanes;
      const __m512 before = decay ? _mm512_loadu_ps(to) * _mm512_loadu_ps(decay + v * vector_lanes) : _mm512_setzero_ps();
      _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(added[r][v])),
                                           _mm512_loadu_ps(factors + v * vector_lanes), before));
    }
}

template <int vectors, int... index>
consteval void add_rows(IntegerProducts& products, std::integer_sequence<int, index...>) {
  ((products.scores[vectors - 1][index + 1] = multiply_keys<vectors, index + 1>), ...);
  ((products.values[vectors - 1][index + 1] = multiply_values<vectors, index + 1>), ...);
  products.round_queries[vectors - 1] = round_queries<vectors>;
  products.weigh[vectors - 1] = weigh<vectors>;
}

consteval IntegerProducts make_products() {
  IntegerProducts products;
  add_rows<1>(products, std::make_integer_sequence<int, max_rows>());
  add_rows<2>(products, std::make_integer_sequence<int, max_rows>());
  products.of_bf16 = {round_keys<Bf16>, round_values<Bf16>};
  products.of_f16 = {round_keys<F16>, round_values<F16>};
  products.of_int8 = {round_keys<std::int8_t>, round_values<std::int8_t>};
  return products;
}

}  // namespace

constexpr IntegerProducts avx512vnni_attention = make_products();

}  // namespace rlx::cpu
