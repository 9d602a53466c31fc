#pragma once
#include <type_traits>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/score_masks.h"
#include "backends/cpu/attention/shared_rows.h"
#include "backends/cpu/attention/tiles/tile_kernel.h"
#include "backends/cpu/gemm/blocking.h"
#include "backends/cpu/gemm/pack.h"

namespace rlx::cpu {

/// Scratch memory of QueryBlocks, in whole cache lines: what those that take turns share, and what each has of its own: what it works on,
/// and where there are several chunks of keys the sums of those before.
struct QueryBlockBytes {
  std::size_t shared, own, before;
};

/// Throws Error for sizes beyond 64 bits.
template <class T, class K>
QueryBlockBytes query_block_bytes(const AttentionArgs<T, K>& args);

/// Elements of what `save` writes. Throws Error for sizes beyond 64 bits.
template <class T, class K>
std::int64_t partial_elements(const AttentionArgs<T, K>& args);

/// Computes the result for one block of queries after the other: begin, attend or merge for each piece of the keys in order, store.
template <class T, class K>
class QueryBlock {
 public:
  QueryBlock(const AttentionArgs<T, K>& args, std::byte* shared, std::byte* own);

  /// Rows row0.. of one batch item and head of k; row r is query r % queries of head r / queries of the group. `count`: 1 to twice the
  /// lanes of a vector.
  void begin(std::int64_t item, std::int64_t kv_head, std::int64_t row0, std::int64_t count);
  /// Whether attend takes rows that are shared, else where they lie.
  bool takes_rows() const { return in_integers() || (in_pairs() && !tiles_); }
  /// Brings keys into the softmax and the sums.
  void attend(Range keys);
  /// The same of keys of one block, which `rows` holds.
  void attend(Range keys, const SharedRows<T, K>& rows);
  /// Where the shared rows of a block have room.
  float* room_for_rows() const { return wide_; }
  /// Keeps what the keys so far amount to, for a block that begins with the same rows and merges it.
  void save(float* partial) const;
  void merge(const float* partial);
  /// Writes the rows of the result.
  void store();

 private:
  /// Whether keys and values are rounded to integers. Not for tokens that are guessed and then checked, which are few: they are to be as
  /// they are one by one.
  bool in_integers() const { return integers_ && !is_few_ && args_.queries_of(block_.item) >= IntegerProducts::least_queries; }

  /// Whether the instructions for pairs of bf16 numbers do the products of this block.
  bool in_pairs() const { return pairs_ && !is_few_; }

  /// Whether tile registers do, which take operands in the form of pairs.
  bool in_tiles() const { return tiles_ && !is_few_; }
  void multiply_queries_in_tiles(Range keys);
  void add_values_in_tiles(Range keys, const float* decay);

  /// Rows of an operand in f32: where they lie, or else a copy.
  struct Rows {
    const float* data;
    std::int64_t stride;
  };
  Rows wide_rows(const KeyRows<K>& rows, std::int64_t keys, std::int64_t features);

  void multiply_queries_as_integers(Range keys)
    requires std::is_same_v<T, float>;
  void add_values_as_integers(Range keys, const float* decay)
    requires std::is_same_v<T, float>;

  float score_factor() const;
  void pack_queries();
  Strided<T> query_rows(T* copy) const;
  template <class To>
  void copy_queries(To* to) const;
  void add_keys(Range keys);
  void multiply_queries(Range keys);
  void weigh(Range keys, const ScoreRules& rules);
  void add_values(Range keys, const float* decay);

  const AttentionArgs<T, K>& args_;
  const AttentionKernel& kernel_;
  const PairProducts* pairs_ = nullptr;
  const TileProducts* tiles_ = nullptr;
  const IntegerProducts* integers_ = nullptr;
  const SharedRows<T, K>* shared_rows_ = nullptr;
  ScoreMasks<T, K> masks_;
  float *queries_, *scores_;                // (head_size, lanes), (keys, lanes)
  float *rows_, *wide_;                     // (lanes, features), (keys, features)
  float* decay_;                            // by lane
  float *query_factors_, *weight_factors_;  // by lane: see IntegerProducts

  /// What keys amount to.
  struct Sums {
    float *largest, *total;  // by lane
    float* sums;             // (value_size, lanes)
    bool is_empty = true;    // no keys yet: `sums` is not defined
  };
  void clear(Sums& of) const;
  void merge(Sums& into, const float* largest, const float* total, const float* sums) const;
  void end_chunk();
  Sums now_, before_;  // of the chunk of keys that was begun, and of those before it
  bool has_before_ = false;
  std::int64_t chunk_ = 0;

  QueryRows block_;
  bool is_few_ = false;
  int vectors_ = 1;
};

}  // namespace rlx::cpu
