#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/attention/tiles/element.h"
#include "backends/cpu/attention/tiles/tile_kernel.h"

// The pieces of attention over the vectors of one instruction set. `Simd` gives the vector type, the shape of the register tile, and the
// operations that the compiler's own vectors lack. Each file that instantiates this is compiled for another instruction set, so its
// `Simd` must be in an unnamed namespace: the linker would otherwise be free to keep one instantiation for all levels.
namespace rlx::cpu {

template <class Simd, class Number>
using VectorOf [[gnu::vector_size(sizeof(Number) * Simd::lanes)]] = Number;

template <class Simd>
typename Simd::Vector load_wide(const float* from) {
  return Simd::load(from);
}
template <class Simd>
typename Simd::Vector load_wide(const Bf16* from) {
  VectorOf<Simd, std::uint16_t> bits;
  std::memcpy(&bits, from, sizeof bits);
  return reinterpret_cast<typename Simd::Vector>(__builtin_convertvector(bits, VectorOf<Simd, std::uint32_t>) << 16);
}

template <class Simd>
typename Simd::Vector load_wide(const F16* from) {
  return Simd::load_half(from);
}

/// Features d.. of the first row, in f32; d is a multiple of the lanes.
template <class Simd, class K>
[[gnu::always_inline]] inline typename Simd::Vector load_features(const KeyRows<K>& row, std::int64_t d) {
  if constexpr (std::is_same_v<K, std::int8_t>) return Simd::load_bytes(row.data + d) * row.scales[d >> row.scale_shift];
  else return load_wide<Simd>(row.data + d);
}
template <class K>
[[gnu::always_inline]] inline float feature(const KeyRows<K>& row, std::int64_t d) {
  if constexpr (std::is_same_v<K, std::int8_t>) return static_cast<float>(row.data[d]) * row.scales[d >> row.scale_shift];
  else return widened(row.data[d]);
}
/// Of single numbers, with the rounding of Simd's.
template <class Simd>
[[gnu::always_inline]] inline float multiply_add(float a, float b, float sum) {
  using Vector = typename Simd::Vector;
  return Simd::multiply_add(Vector{} + a, Vector{} + b, Vector{} + sum)[0];
}
template <class K>
[[gnu::always_inline]] inline void to_next(KeyRows<K>& row) {
  row.data += row.stride, row.scales += row.scale_stride;
}

/// Numbers of a tile, by row of A and vector of B.
template <class Simd, int vectors, int rows>
using TileSums = typename Simd::Vector[rows][vectors];

/// Calls `of(row, vector)` for all of a tile.
template <int vectors, int rows, class Of>
[[gnu::always_inline]] inline void for_each_sum(const Of& of) {
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) of(r, v);
  }
}

/// Adds one step of depth: a number of each row of A, `stride` apart, times a row of B.
template <class Simd, int vectors, int rows>
[[gnu::always_inline]] inline void add_step(const float* a, std::int64_t stride, const float* b, TileSums<Simd, vectors, rows>& sums) {
  typename Simd::Vector right[vectors];
#pragma GCC unroll 2
  for (int v = 0; v < vectors; ++v) right[v] = Simd::load(b + v * Simd::lanes);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    const auto left = Simd::broadcast(a + r * stride);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sums[r][v] = Simd::multiply_add(left, right[v], sums[r][v]);
  }
}

template <class Simd, int vectors, int rows>
void multiply_values(std::int64_t keys, const float* a, std::int64_t stride, const float* b, float* c, const float* decay) {
  using Vector = typename Simd::Vector;
  constexpr int lanes = vectors * Simd::lanes;
  TileSums<Simd, vectors, rows> sums;
  for_each_sum<vectors, rows>([&](int r, int v) {
    sums[r][v] = decay ? Simd::load(c + r * lanes + v * Simd::lanes) * Simd::load(decay + v * Simd::lanes) : Vector{};
  });
  for (std::int64_t key = 0; key < keys; ++key, a += stride, b += lanes) add_step<Simd, vectors, rows>(a, 1, b, sums);
  for_each_sum<vectors, rows>([&](int r, int v) { Simd::store(c + r * lanes + v * Simd::lanes, sums[r][v]); });
}

/// The chains of every lane that few_scores adds up along the features, one after the other, added in the order of Simd::sum: halves of
/// what is left of a vector. So a score has the same bits among few queries and among many.
template <class Simd, int vectors, int rows>
void multiply_keys(std::int64_t features, const float* a, std::int64_t stride, const float* b, float* c, const float*) {
  constexpr int lanes = vectors * Simd::lanes, halvings = std::bit_width(unsigned{Simd::lanes}) - 1;
  const std::int64_t whole = features / Simd::lanes * Simd::lanes;
  TileSums<Simd, vectors, rows> sums = {}, left[halvings];  // what waits for its other half
  int waiting = 0;
  for (unsigned chain = 0; whole > 0 && chain < unsigned{Simd::lanes}; ++chain) {
    std::int64_t first = 0;
    for (int bit = 0; bit < halvings; ++bit) first |= std::int64_t{chain >> bit & 1} << (halvings - 1 - bit);
    for_each_sum<vectors, rows>([&](int r, int v) { sums[r][v] = typename Simd::Vector{}; });
    for (std::int64_t d = first; d < whole; d += Simd::lanes) add_step<Simd, vectors, rows>(a + d, stride, b + d * lanes, sums);
    for (unsigned done = chain; (done & 1) != 0; done >>= 1) {
      --waiting;
      for_each_sum<vectors, rows>([&](int r, int v) { sums[r][v] += left[waiting][r][v]; });
    }
    for_each_sum<vectors, rows>([&](int r, int v) { left[waiting][r][v] = sums[r][v]; });
    ++waiting;
  }
  for (std::int64_t d = whole; d < features; ++d) add_step<Simd, vectors, rows>(a + d, stride, b + d * lanes, sums);
  for_each_sum<vectors, rows>([&](int r, int v) { Simd::store(c + r * lanes + v * Simd::lanes, sums[r][v]); });
}

/// 2^x for x below 30, relative error 1e-7; 0 below -127; NaN stays.
template <class Simd>
typename Simd::Vector exp2(typename Simd::Vector x) {
  using Vector = typename Simd::Vector;
  constexpr double ln2 = 0.6931471805599453;
  // e^r for |r| <= ln 2 / 2 within 3e-9, as in kernel/math/math_exponential.cpp, with r = ln 2 * fraction.
  constexpr double of_e[] = {1, 1, 0.49999994, 0.166665152, 0.0416680835, 0.0083693536, 0.00138405629};
  x = Simd::max(Vector{} + Simd::lowest, x);
  const Vector whole = Simd::round(x), fraction = x - whole;
  Vector power = Vector{} + static_cast<float>(of_e[6] * ln2 * ln2 * ln2 * ln2 * ln2 * ln2);
  power = Simd::multiply_add(power, fraction, Vector{} + static_cast<float>(of_e[5] * ln2 * ln2 * ln2 * ln2 * ln2));
  power = Simd::multiply_add(power, fraction, Vector{} + static_cast<float>(of_e[4] * ln2 * ln2 * ln2 * ln2));
  power = Simd::multiply_add(power, fraction, Vector{} + static_cast<float>(of_e[3] * ln2 * ln2 * ln2));
  power = Simd::multiply_add(power, fraction, Vector{} + static_cast<float>(of_e[2] * ln2 * ln2));
  power = Simd::multiply_add(power, fraction, Vector{} + static_cast<float>(ln2));
  power = Simd::multiply_add(power, fraction, Vector{} + 1.0f);
  return Simd::times_power_of_two(power, whole);
}

/// Within 3 ulp; the same two pieces as in kernel/math/math_exponential.cpp.
template <class Simd>
typename Simd::Vector tanh(typename Simd::Vector x) {
  using Vector = typename Simd::Vector;
  constexpr float twice_log2_e = 2.885390081777927f;
  const Vector square = x * x, size = x < 0.0f ? -x : x;
  Vector small = Vector{} - 0.00589796668f;
  for (float coefficient : {0.0207986254f, -0.0537847169f, 0.133319363f, -0.333332986f})
    small = Simd::multiply_add(small, square, Vector{} + coefficient);
  small = Simd::multiply_add(small, x * square, x);
  const Vector power = exp2<Simd>((size > 10.0f ? Vector{} + 10.0f : size) * twice_log2_e);
  const Vector large = 1.0f - 2.0f / (power + 1.0f);
  return size < 0.6f ? small : x < 0.0f ? -large : large;
}

/// The score of one key under the rules, for one vector of queries that begins at `lane`.
template <class Simd>
[[gnu::always_inline]] inline typename Simd::Vector ruled(typename Simd::Vector score, std::int64_t key, int lane,
                                                          const ScoreRules& rules) {
  using Vector = typename Simd::Vector;
  const Vector hidden = Vector{} - __builtin_inff();
  if (rules.cap != 0) score = tanh<Simd>(score) * rules.cap;
  if (rules.added) {
    const float* from = rules.added + key * rules.added_stride;
    const Vector added = rules.added_stride == 1 ? Simd::broadcast(from) : Simd::load(from + lane);
    score = added == hidden ? hidden : Simd::multiply_add(added, Vector{} + 1.44269504f, score);  // log2(e)
  }
  if (rules.first) {
    const Vector at = Vector{} + static_cast<float>(key);
    score = at < Simd::load(rules.first + lane) ? hidden : score;
    score = at > Simd::load(rules.last + lane) ? hidden : score;
  }
  return score;
}

/// Brings scores under the rules, in place, and what was seen before to the new largest scores. A score's weight is 2^(score - shift).
template <class Simd, int vectors>
[[gnu::always_inline]] inline void bring_in(float* scores, std::int64_t keys, const ScoreRules& rules, const RunningSoftmax& running,
                                            typename Simd::Vector (&shift)[vectors], typename Simd::Vector (&total)[vectors]) {
  using Vector = typename Simd::Vector;
  constexpr int lanes = vectors * Simd::lanes;
  Vector largest[vectors];
  for (int v = 0; v < vectors; ++v) largest[v] = Simd::load(running.largest + v * Simd::lanes);
  const bool all = rules.cap != 0 || rules.added;  // else no rule changes the scores of keys that every lane sees
  const std::int64_t begin = all ? keys : rules.first ? rules.common : 0, end = all || !rules.first ? keys : rules.common_end;
  for (std::int64_t key = begin; key < end; ++key)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) largest[v] = Simd::max(largest[v], Simd::load(scores + key * lanes + v * Simd::lanes));
  const auto skip = [&](std::int64_t key) { return key == begin ? end : key; };
  for (std::int64_t key = skip(0); key < keys; key = skip(key + 1))
    for (int v = 0; v < vectors; ++v) {
      float* const at = scores + key * lanes + v * Simd::lanes;
      const Vector score = ruled<Simd>(Simd::load(at), key, v * Simd::lanes, rules);
      Simd::store(at, score);
      largest[v] = Simd::max(largest[v], score);
    }
  for (int v = 0; v < vectors; ++v) {
    const int lane = v * Simd::lanes;
    shift[v] = largest[v] == -__builtin_inff() ? Vector{} : largest[v];  // nothing seen yet: weights of 2^-infinity
    const Vector decay = exp2<Simd>(Simd::load(running.largest + lane) - shift[v]);
    total[v] = Simd::load(running.total + lane) * decay;
    Simd::store(running.decay + lane, decay);
    Simd::store(running.largest + lane, largest[v]);
  }
}

template <class Simd, int vectors>
void weigh_scores(float* scores, std::int64_t keys, const ScoreRules& rules, const RunningSoftmax& running) {
  using Vector = typename Simd::Vector;
  constexpr int lanes = vectors * Simd::lanes;
  Vector shift[vectors], total[vectors];
  bring_in<Simd>(scores, keys, rules, running, shift, total);
  for (std::int64_t key = 0; key < keys; ++key)
    for (int v = 0; v < vectors; ++v) {
      float* const at = scores + key * lanes + v * Simd::lanes;
      const Vector weight = exp2<Simd>(Simd::load(at) - shift[v]);
      Simd::store(at, weight);
      total[v] = total[v] + weight;
    }
  for (int v = 0; v < vectors; ++v) Simd::store(running.total + v * Simd::lanes, total[v]);
}

/// Few queries read their keys and values from memory, faster than the hardware fetches ahead: so many keys are asked for early.
constexpr std::int64_t few_ahead = 32;

/// Lane r: the sum of the lanes of sums[r]; else 0.
template <class Simd, int rows>
[[gnu::always_inline]] inline void store_totals(const typename Simd::Vector (&sums)[rows], float* to) {
  if constexpr (rows > 4) {
    typename Simd::Vector eight[8] = {};
    for (int r = 0; r < rows; ++r) eight[r] = sums[r];
    Simd::store(to, Simd::sums_of_eight(eight));
  } else {
    Simd::store(to, typename Simd::Vector{});
    for (int r = 0; r < rows; ++r) to[r] = Simd::sum(sums[r]);
  }
}

template <class Simd, class K, int rows>
void few_scores(std::int64_t features, std::int64_t keys, const KeyRows<K>& k, const float* queries, float* scores) {
  using Vector = typename Simd::Vector;
  KeyRows<K> row = k;
  for (std::int64_t key = 0; key < keys; ++key, to_next(row), scores += Simd::lanes) {
    Vector sums[rows] = {};
    std::int64_t d = 0;
    for (; d + Simd::lanes <= features; d += Simd::lanes) {
      __builtin_prefetch(row.data + few_ahead * row.stride + d);
      const Vector right = load_features<Simd>(row, d);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sums[r] = Simd::multiply_add(Simd::load(queries + r * features + d), right, sums[r]);
    }
    store_totals<Simd>(sums, scores);
    for (; d < features; ++d)
      for (int r = 0; r < rows; ++r) scores[r] = multiply_add<Simd>(queries[r * features + d], feature(row, d), scores[r]);
  }
}

/// few_values for the features of so many vectors, from `first` on.
template <class Simd, class K, int rows, int vectors>
void few_sums(std::int64_t first, std::int64_t features, std::int64_t keys, KeyRows<K> row, const float* weights, float* sums,
              const float* decay) {
  using Vector = typename Simd::Vector;
  Vector total[rows][vectors];
  sums += first;
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < vectors; ++i) total[r][i] = decay ? Simd::load(sums + r * features + i * Simd::lanes) * decay[r] : Vector{};
  for (std::int64_t key = 0; key < keys; ++key, to_next(row), weights += Simd::lanes) {
#pragma GCC unroll 4
    for (int i = 0; i < vectors; ++i) {
      __builtin_prefetch(row.data + few_ahead * row.stride + first + i * Simd::lanes);
      const Vector right = load_features<Simd>(row, first + i * Simd::lanes);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) total[r][i] = Simd::multiply_add(Simd::broadcast(weights + r), right, total[r][i]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < vectors; ++i) Simd::store(sums + r * features + i * Simd::lanes, total[r][i]);
}

template <class Simd, class K, int rows>
void few_values(std::int64_t features, std::int64_t keys, const KeyRows<K>& v, const float* weights, float* sums, const float* decay) {
  constexpr int most = rows > 4 ? Simd::few_vectors / 2 : Simd::few_vectors;
  std::int64_t d = 0;
  for (; d + most * Simd::lanes <= features; d += most * Simd::lanes)
    few_sums<Simd, K, rows, most>(d, features, keys, v, weights, sums, decay);
  for (; d + Simd::lanes <= features; d += Simd::lanes) few_sums<Simd, K, rows, 1>(d, features, keys, v, weights, sums, decay);
  for (; d < features; ++d)
    for (int r = 0; r < rows; ++r) {
      float total = decay ? sums[r * features + d] * decay[r] : 0;
      KeyRows<K> row = v;
      for (std::int64_t key = 0; key < keys; ++key, to_next(row))
        total = multiply_add<Simd>(weights[key * Simd::lanes + r], feature(row, d), total);
      sums[r * features + d] = total;
    }
}

template <class Simd, class K>
void widen_rows(std::int64_t features, std::int64_t keys, const KeyRows<K>& rows, float* to) {
  KeyRows<K> row = rows;
  for (std::int64_t key = 0; key < keys; ++key, to_next(row), to += features) {
    std::int64_t d = 0;
    for (; d + Simd::lanes <= features; d += Simd::lanes) Simd::store(to + d, load_features<Simd>(row, d));
    for (; d < features; ++d) to[d] = feature(row, d);
  }
}

template <class Simd>
void scale_all(const float* from, std::int64_t count, float factor, float* to) {
  std::int64_t i = 0;
  for (; i + Simd::lanes <= count; i += Simd::lanes) Simd::store(to + i, Simd::load(from + i) * factor);
  for (; i < count; ++i) to[i] = from[i] * factor;
}

template <class Simd>
void narrow_all(const float* from, std::int64_t count, float factor, Bf16* to) {
  using Vector = typename Simd::Vector;
  using Bits = VectorOf<Simd, std::uint32_t>;
  std::int64_t i = 0;
  for (; i + Simd::lanes <= count; i += Simd::lanes) {
    const Vector x = Simd::load(from + i) * factor;
    const Bits bits = reinterpret_cast<Bits>(x), rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
    const Bits is_nan = reinterpret_cast<Bits>((bits & 0x7fffffff) > 0x7f800000);
    const auto narrow = __builtin_convertvector((is_nan & quiet) | (~is_nan & rounded), VectorOf<Simd, std::uint16_t>);
    std::memcpy(static_cast<void*>(to + i), &narrow, sizeof narrow);
  }
  for (; i < count; ++i) assign(to[i], from[i] * factor);
}

template <class Simd, int vectors, int... index>
consteval void add_pieces(AttentionKernel& kernel, std::integer_sequence<int, index...>) {
  ((kernel.scores[vectors - 1][index + 1] = multiply_keys<Simd, vectors, index + 1>), ...);
  ((kernel.values[vectors - 1][index + 1] = multiply_values<Simd, vectors, index + 1>), ...);
  kernel.weigh[vectors - 1] = weigh_scores<Simd, vectors>;
}

template <class Simd, class K, int... index>
consteval void add_few(AttentionKernel::Few<K>& kernel, std::integer_sequence<int, index...>) {
  ((kernel.scores[index + 1] = few_scores<Simd, K, index + 1>), ...);
  ((kernel.values[index + 1] = few_values<Simd, K, index + 1>), ...);
  kernel.widen = widen_rows<Simd, K>;
}

template <class Simd>
consteval AttentionKernel make_attention_kernel() {
  AttentionKernel kernel;
  kernel.vector_lanes = Simd::lanes;
  kernel.max_rows = Simd::max_rows;
  kernel.few = Simd::few;
  kernel.scale = scale_all<Simd>;
  kernel.narrow = narrow_all<Simd>;
  add_pieces<Simd, 1>(kernel, std::make_integer_sequence<int, Simd::max_rows>());
  add_pieces<Simd, 2>(kernel, std::make_integer_sequence<int, Simd::max_rows>());
  constexpr auto few = std::make_integer_sequence<int, Simd::few>();
  add_few<Simd>(kernel.of_f32, few), add_few<Simd>(kernel.of_bf16, few), add_few<Simd>(kernel.of_f16, few);
  add_few<Simd>(kernel.of_int8, few);
  return kernel;
}

}  // namespace rlx::cpu
