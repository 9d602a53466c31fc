#pragma once
#include <algorithm>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/products.h"
#include "backends/cpu/gemm/blocking.h"

namespace rlx::cpu {

/// The rows of keys or values from a key on, as far as its page goes.
template <class K>
KeyRows<K> rows_from(const AttentionOperand<const K>& operand, const RowFactors& factors, std::int64_t item, std::int64_t kv_head,
                     std::int64_t key) {
  KeyRows<K> rows{operand.at(item, kv_head, key), operand.row_stride};
  if constexpr (std::is_same_v<K, std::int8_t>) {
    rows.scales = factors.operand.at(item, kv_head, key), rows.scale_stride = factors.operand.row_stride;
    rows.scale_shift = factors.shift;
  }
  return rows;
}

/// The keys and values of one block as IntegerProducts take them: rounded once for all queries that meet them.
template <class T, class K>
class IntegerRows {
 public:
  static constexpr std::int64_t row_factors = 2;  // for each key and its values

  /// `place` has room for a block of rows of the most features in f32, and their factors.
  IntegerRows(const AttentionArgs<T, K>& args, float* place)
      : args_(args),
        key_factors_(place),
        value_factors_(place + attention_key_block),
        values_(reinterpret_cast<std::uint32_t*>(place + 2 * attention_key_block)),
        keys_(reinterpret_cast<std::int16_t*>(values_ + attention_key_block / 2 * args.value_size)) {}

  /// Rounds these keys, which are of one block and begin at an even one.
  void load(std::int64_t item, std::int64_t kv_head, Range keys) {
    const auto& round = integer_products(args_)->template of<K>();
    round.keys(args_.head_size, keys.size(), rows_from(args_.k, args_.k_factors, item, kv_head, keys.begin), keys_, key_factors_);
    round.values(args_.value_size, keys.size(), rows_from(args_.v, args_.v_factors, item, kv_head, keys.begin), values_, value_factors_);
    first_ = keys.begin;
  }

  /// From a key on, an even one where it is for values.
  const std::int16_t* keys(std::int64_t key) const { return keys_ + (key - first_) * args_.head_size; }
  const std::uint32_t* values(std::int64_t key) const { return values_ + (key - first_) / 2 * args_.value_size; }
  const float* key_factors(std::int64_t key) const { return key_factors_ + (key - first_); }
  const float* value_factors(std::int64_t key) const { return value_factors_ + (key - first_); }

 private:
  const AttentionArgs<T, K>& args_;
  std::int64_t first_ = 0;
  float *key_factors_, *value_factors_;
  std::uint32_t* values_;  // (keys / 2 rounded up, value_size)
  std::int16_t* keys_;     // (keys, head_size)
};

/// The values of one block of keys as PairProducts take them: paired once for all queries that meet them.
template <class T, class K>
class PairedRows {
 public:
  /// `place` has room for a block of rows of the most features in f32.
  PairedRows(const AttentionArgs<T, K>& args, float* place) : args_(args), values_(reinterpret_cast<std::uint32_t*>(place)) {}

  /// Pairs the values of these keys, which are of one block and begin at an even one.
  void load(std::int64_t item, std::int64_t kv_head, Range keys) {
    const KeyRows<K> v = rows_from(args_.v, args_.v_factors, item, kv_head, keys.begin);
    pair_products(args_.level)->pair_values(v.data, v.stride, keys.size(), args_.value_size, values_);
    first_ = keys.begin;
  }

  /// From an even key on.
  const std::uint32_t* values(std::int64_t key) const { return values_ + (key - first_) / 2 * args_.value_size; }

 private:
  const AttentionArgs<T, K>& args_;
  std::int64_t first_ = 0;
  std::uint32_t* values_;  // (keys / 2 rounded up, value_size)
};

/// What blocks of queries that meet the same keys take in turn.
template <class T, class K>
using SharedRows = std::conditional_t<std::is_same_v<T, Bf16>, PairedRows<T, K>, IntegerRows<T, K>>;

}  // namespace rlx::cpu
