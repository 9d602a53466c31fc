#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cpu/gemm/micro_kernels/panel_format.h"
#include "backends/cpu/machine/cpu_features.h"

namespace rlx::cpu {

/// What happens to scores before they become weights, in this order. Scores are in units of ln 2: the weight of a score is 2^score.
struct ScoreRules {
  float cap = 0;  // score = cap * tanh(score), where it is not 0
  const float* added =
      nullptr;  // (keys) or (keys, lanes), see added_stride, in units of 1; minus infinity hides the key, whatever its score
  std::int64_t added_stride = 0;  // from key to key: 1 or the number of lanes
  const float* first = nullptr;   // by lane: only keys first..last of the block are seen; null: all
  const float* last = nullptr;
  std::int64_t common = 0, common_end = 0;  // the keys common..common_end - 1 are seen by every lane
};

/// The softmax of a row of scores of which a part was seen so far, by lane.
struct RunningSoftmax {
  float* largest;  // score
  float* total;    // of 2^(score - largest)
  float* decay;    // result of a step: what the sums before it are worth in units of the new largest score
};

/// Rows of keys or values, `stride` elements apart. Those of int8 numbers are multiplied by factors: feature d by scales[d >> scale_shift],
/// `scale_stride` apart from row to row.
template <class K>
struct KeyRows {
  const K* data;
  std::int64_t stride;
  const float* scales = nullptr;
  std::int64_t scale_stride = 0;
  int scale_shift = 0;
};

/// Attention on blocks of `lanes` queries, which lie side by side in the lanes of 1 or 2 vectors: a score tile is (keys, lanes), so that
/// maxima and sums over keys need no exchange between lanes, and the weights are the right operand of the product with the values
/// where they lie. Keys and values are read where they lie, one number for all lanes at a time.
///
/// Each lane is a chain of operations of its own: its bits do not depend on the other lanes, nor on the number of vectors.
struct AttentionKernel {
  static constexpr int rows_limit = 14, most_vectors = 2, most_lanes = 32;

  /// C (rows, lanes) = A (rows, depth) * B (depth, lanes), plus C * decay (lanes) where it is given. Features, or keys, lie side by side
  /// in A: `stride` elements from row to row in `scores`, from one step of depth to the next in `values`.
  using Multiply = void (*)(std::int64_t depth, const float* a, std::int64_t stride, const float* b, float* c, const float* decay);
  /// scores (keys, lanes) -> weights, in place.
  using Weigh = void (*)(float* scores, std::int64_t keys, const ScoreRules& rules, const RunningSoftmax& running);

  /// The same for so few queries that most lanes would be idle: queries and sums are (rows, features), vectors lie along the features.
  /// Keys and values are elements K of the operands.
  static constexpr int most_few = 8;
  template <class K>
  struct Few {
    /// scores (keys, lanes of one vector) = k q^T, idle lanes 0.
    using Scores = void (*)(std::int64_t features, std::int64_t keys, const KeyRows<K>& k, const float* queries, float* scores);
    /// sums (rows, features) = weights^T v, plus sums * decay (rows) where it is given.
    using Values = void (*)(std::int64_t features, std::int64_t keys, const KeyRows<K>& v, const float* weights, float* sums,
                            const float* decay);
    Scores scores[most_few + 1] = {};  // by rows
    Values values[most_few + 1] = {};
    /// to (keys, features) in f32.
    void (*widen)(std::int64_t features, std::int64_t keys, const KeyRows<K>& rows, float* to) = nullptr;
  };
  template <class K>
  const Few<K>& of() const {
    if constexpr (std::is_same_v<K, Bf16>) return of_bf16;
    else if constexpr (std::is_same_v<K, F16>) return of_f16;
    else if constexpr (std::is_same_v<K, std::int8_t>) return of_int8;
    else return of_f32;
  }

  int vector_lanes = 0, max_rows = 0, few = 0;
  Multiply scores[most_vectors][rows_limit + 1] = {};  // by vectors - 1 and rows: rows are keys, the depth is features
  Multiply values[most_vectors][rows_limit + 1] = {};  // rows are features, the depth is keys
  Weigh weigh[most_vectors] = {};
  Few<float> of_f32;
  Few<Bf16> of_bf16;
  Few<F16> of_f16;
  Few<std::int8_t> of_int8;
  void (*scale)(const float* from, std::int64_t count, float factor, float* to) = nullptr;  // from * factor; in place too
  void (*narrow)(const float* from, std::int64_t count, float factor, Bf16* to) = nullptr;  // the same, rounded
};

/// The two products of attention on instructions that multiply pairs of bf16 numbers; a unit of 32 bits is two steps of depth.
struct PairProducts {
  static constexpr int rows_limit = AttentionKernel::rows_limit, most_vectors = AttentionKernel::most_vectors;

  /// C (rows, lanes) = factor * A * B (units, lanes), for A of keys, `stride` numbers apart, whose features lie side by side.
  using Scores = void (*)(std::int64_t units, const Bf16* a, std::int64_t stride, const std::uint32_t* b, float* c, float factor);
  /// C (rows, lanes) = A * B (units, lanes), plus C * decay (lanes) where it is given. A (units, features) has `stride` units from step to
  /// step.
  using Values = void (*)(std::int64_t units, const std::uint32_t* a, std::int64_t stride, const std::uint32_t* b, float* c,
                          const float* decay);

  Scores scores[most_vectors][rows_limit + 1] = {};  // by vectors - 1 and rows: rows are keys, the depth is features
  Values values[most_vectors][rows_limit + 1] = {};  // rows are features, the depth is keys
  /// values (keys, features), rows `stride` numbers apart -> units (keys / 2 rounded up, features); what an odd last key lacks is 0.
  void (*pair_values)(const Bf16* values, std::int64_t stride, std::int64_t keys, std::int64_t features, std::uint32_t* units) = nullptr;
  /// scores (keys, lanes) of f32 -> weights as units (keys / 2 rounded up, lanes), rounded, in place; what an odd last key lacks is 0.
  AttentionKernel::Weigh weigh[most_vectors] = {};  // by vectors - 1
};

/// The two products of attention on integers of 16 bits, of which instructions multiply pairs; a unit of 32 bits is two steps of depth. A
/// row of keys, of queries or of values is integers times a factor of its own, the weights of a lane likewise. What they are limited to
/// keeps every sum within 32 bits: a score by the lengths of its two vectors (Cauchy and Schwarz), a sum of values by that of the weights.
/// Rows that are not finite, and those whose squares f32 does not hold, have the factor NaN.
struct IntegerProducts {
  static constexpr int rows_limit = AttentionKernel::rows_limit, most_vectors = AttentionKernel::most_vectors;
  static constexpr std::int64_t step = 16;           // features are a multiple of it
  static constexpr std::int64_t least_queries = 32;  // that are worth rounding keys and values for
  static constexpr float most_length = 32767, most_value = 8191, most_weight = 32767, most_weights = 260000;

  /// From rows (keys, features); factors (keys).
  template <class K>
  struct Round {
    /// -> (keys, features).
    void (*keys)(std::int64_t features, std::int64_t keys, const KeyRows<K>& rows, std::int16_t* to, float* factors) = nullptr;
    /// -> units (keys / 2 rounded up, features).
    void (*values)(std::int64_t features, std::int64_t keys, const KeyRows<K>& rows, std::uint32_t* units, float* factors) = nullptr;
  };
  template <class K>
  const Round<K>& of() const {
    if constexpr (std::is_same_v<K, Bf16>) return of_bf16;
    else if constexpr (std::is_same_v<K, F16>) return of_f16;
    else return of_int8;
  }

  /// queries (features, lanes) of f32 -> units (features / 2, lanes), in place; factors (lanes) times `factor`.
  using RoundQueries = void (*)(float* queries, std::int64_t features, float factor, float* factors);
  /// scores (keys, lanes) of f32 -> weights, times the factors of their values, as units (keys / 2 rounded up, lanes), in place; factors
  /// (lanes).
  using Weigh = void (*)(float* scores, std::int64_t keys, const ScoreRules& rules, const RunningSoftmax& running,
                         const float* value_factors, float* factors);
  /// scores (rows, lanes) of f32 from keys, `stride` numbers apart, and queries (units, lanes).
  using Scores = void (*)(std::int64_t units, const std::int16_t* keys, std::int64_t stride, const float* key_factors,
                          const std::uint32_t* queries, const float* factors, float* scores);
  /// sums (rows, lanes) of f32 = values * weights (units, lanes), plus sums * decay (lanes) where it is given. Values (units, features)
  /// have `stride` units from step to step.
  using Values = void (*)(std::int64_t units, const std::uint32_t* values, std::int64_t stride, const std::uint32_t* weights,
                          const float* factors, const float* decay, float* sums);

  Round<Bf16> of_bf16;
  Round<F16> of_f16;
  Round<std::int8_t> of_int8;
  RoundQueries round_queries[most_vectors] = {};  // by vectors - 1
  Weigh weigh[most_vectors] = {};
  Scores scores[most_vectors][rows_limit + 1] = {};  // by vectors - 1 and rows: rows are keys, the depth is features
  Values values[most_vectors][rows_limit + 1] = {};  // rows are features, the depth is keys
};

/// One operand of a product of whole tiles: where its first tile is, in bytes from row to row of a tile, from tile to tile beside it, and
/// from one step of 16 units of depth to the next.
struct TileOperand {
  const void* data;
  std::int64_t row_bytes, tile_bytes, step_bytes;

  const void* at(std::int64_t tile, std::int64_t step) const {
    return static_cast<const std::byte*>(data) + tile * tile_bytes + step * step_bytes;
  }
};

/// Both products of attention on tile registers of 16 rows of 16 units: keys are read where they lie, values are transposed by blocks.
struct TileProducts {
  static constexpr std::int64_t side = 16;

  /// C (rows, lanes) = A * B, plus C * decay (lanes) where it is given: whole tiles of A and B, `steps` of 16 units of depth.
  using Multiply = void (*)(std::int64_t rows, std::int64_t steps, const TileOperand& a, const TileOperand& b, float* c,
                            const float* decay);

  Multiply multiply[AttentionKernel::most_vectors] = {};  // by vectors - 1, of 16 lanes
};

/// Throws InternalError for a level that this build has no kernel for.
const AttentionKernel& attention_kernel(CpuLevel level);

/// Null where the CPU has no such instructions, or the level is not to use them. The vectors are those of the level's AttentionKernel.
const PairProducts* pair_products(CpuLevel level);

/// Null likewise.
const IntegerProducts* integer_products(CpuLevel level);

/// Null where the level has no such registers. They go beside pair_products.
const TileProducts* tile_products(CpuLevel level);

/// One table per level, each in its own file, which is compiled for that level.
extern const AttentionKernel portable_attention, avx2_attention, avx512_attention, neon_attention;
extern const PairProducts avx512bf16_attention;
extern const IntegerProducts avx512vnni_attention;
extern const TileProducts amx_attention;

}  // namespace rlx::cpu
