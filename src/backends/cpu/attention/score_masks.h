#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/tiles/tile_kernel.h"
#include "backends/cpu/gemm/blocking.h"

namespace rlx::cpu {

/// The score of a key that a query does not see.
inline constexpr float hidden_score = -std::numeric_limits<float>::infinity();

/// The queries of a block, of one item and head of k, one a lane. Lanes fill whole vectors; those behind `count` idle.
struct QueryRows {
  struct Row {
    std::int64_t head, query;
  };
  const Row& row(std::int64_t lane) const { return rows[static_cast<std::size_t>(lane)]; }
  bool in_one_head() const { return row(0).head == row(count - 1).head; }

  std::int64_t item = 0, kv_head = 0, count = 0, lanes = 0;
  std::array<Row, AttentionKernel::most_lanes> rows{};  // by lane
};

/// What the queries of a block see of the keys, and what is added to their scores: causality, window, mask and bias.
template <class T, class K>
class ScoreMasks {
 public:
  /// Takes scratch memory for so many lanes.
  ScoreMasks(const AttentionArgs<T, K>& args, std::int64_t lanes, std::byte*& shared, std::byte*& own);

  /// Turns to another block of queries, or to others in its lanes.
  void begin(const QueryRows& block);
  /// Those of the keys that some lane sees, as far as positions and window go.
  Range visible(Range keys) const { return {std::max(keys.begin, visible_.begin), std::min(keys.end, visible_.end)}; }
  /// The rules for the scores of these keys, which are of one block of keys; they refer to the scratch memory. Sets no cap.
  ScoreRules rules(const QueryRows& block, Range keys);

 private:
  void limit(const QueryRows& block, Range keys, ScoreRules& rules);
  void add(const QueryRows& block, Range keys, ScoreRules& rules);
  void add_bias(const QueryRows& block, Range keys, std::int64_t count, std::int64_t stride);

  const AttentionArgs<T, K>& args_;
  float *added_, *first_, *last_;        // (keys, lanes); by lane
  std::int64_t *first_key_, *last_key_;  // by lane: the keys that it sees, as far as positions and window go
  Range visible_{0, 0};                  // those that some lane sees
  Range common_{0, 0};                   // those that every lane sees, if there are any
};

}  // namespace rlx::cpu
