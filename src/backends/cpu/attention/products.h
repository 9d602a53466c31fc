#pragma once
#include <type_traits>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/tiles/tile_kernel.h"

namespace rlx::cpu {

/// Whether keys and values are multiplied where they lie; else they are widened block by block.
template <class K>
constexpr bool in_place = std::is_same_v<K, float>;

/// What multiplies keys where they lie, in pairs of features, and values in pairs of keys. Null where nothing does.
template <class T, class K>
const PairProducts* pair_products(const AttentionArgs<T, K>& args) {
  return std::is_same_v<T, Bf16> && args.head_size % 2 == 0 ? pair_products(args.level) : nullptr;
}

/// What multiplies pairs in tile registers, which rows of features fill. Null where nothing does.
template <class T, class K>
const TileProducts* tile_products(const AttentionArgs<T, K>& args) {
  constexpr std::int64_t side = TileProducts::side;
  if (!pair_products(args) || args.head_size % (2 * side) != 0 || args.value_size % side != 0) return nullptr;
  return args.tiles ? args.tiles : tile_products(args.level);
}

/// Beside floats, where keys and values are narrower: what multiplies them as integers of 16 bits. Null where nothing does: the level has
/// no such instructions, features are no multiples of a vector, or the rows are not to be rounded. Fewer than 32 queries of an item never
/// are.
template <class T, class K>
const IntegerProducts* integer_products(const AttentionArgs<T, K>& args) {
  if constexpr (std::is_same_v<T, float> && !in_place<K>) {
    constexpr std::int64_t step = IntegerProducts::step;
    if (args.int16 && args.head_size % step == 0 && args.value_size % step == 0) return integer_products(args.level);
  }
  return nullptr;
}

/// Most queries of an item that continues a text which are widened where pairs of bf16 numbers could be multiplied.
inline constexpr std::int64_t most_few_queries = 16;

/// Whether the rows of an item are multiplied along their features, a few at a time. In f32 that changes no bits, and they are as few as
/// one block takes. Pairs of bf16 numbers are other numbers: what is guessed and then checked is to have the bits of what is computed token
/// by token, and the bits of a text are to stay the same in a batch, where it may be padded or lie beside longer ones.
template <class T, class K>
bool is_few(const AttentionArgs<T, K>& args, std::int64_t item) {
  const std::int64_t queries = args.queries_of(item);
  if (pair_products(args)) return queries <= most_few_queries && !args.is_text(item);
  return args.heads / args.kv_heads * queries <= attention_kernel(args.level).few;
}

/// Whether blocks of more than few queries take the keys or values of a block in a form that is made once for all of them.
template <class T, class K>
bool shares_rows(const AttentionArgs<T, K>& args) {
  return integer_products(args) || (pair_products(args) && !tile_products(args));
}

}  // namespace rlx::cpu
