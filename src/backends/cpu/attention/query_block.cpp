#include "backends/cpu/attention/query_block.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/attention/products.h"
#include "backends/cpu/attention/scratch.h"
#include "backends/cpu/attention/tiles/element.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/pack.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t key_block = attention_key_block;  // scores of 32 queries take half of a first-level cache of 32 KiB
constexpr float log2_e = 1.4426950408889634f;

std::int64_t most_lanes(CpuLevel level) { return attention_kernel(level).vector_lanes * AttentionKernel::most_vectors; }

template <class T, class K>
std::int64_t most_features(const AttentionArgs<T, K>& args) {
  return std::max(args.head_size, args.value_size);
}

/// The bytes, whole cache lines, of so many elements, and `features` times the most features, for each lane; and of `rows` rows of keys or
/// values, with their factors.
template <class T, class K>
std::size_t scratch_bytes(const AttentionArgs<T, K>& args, std::int64_t features, std::int64_t elements, std::int64_t rows) {
  constexpr std::int64_t line = AlignedBuffer::cache_line;
  const auto of_features = checked_mul(most_features(args), features);
  const auto lane = of_features ? checked_add(*of_features, elements) : std::nullopt;
  const auto lanes = lane ? checked_mul(*lane, most_lanes(args.level)) : std::nullopt;
  const auto row = checked_add(most_features(args), IntegerRows<T, K>::row_factors);
  const auto wide = row ? checked_mul(*row, rows) : std::nullopt;
  const auto all = lanes && wide ? checked_add(*lanes, *wide) : std::nullopt;
  const auto bytes = all ? checked_mul<std::int64_t>(*all, sizeof(float)) : std::nullopt;
  const auto padded = bytes ? checked_add(*bytes, line - 1) : std::nullopt;
  if (!padded) fail("attention: heads of {} and {} features take more bytes than 64 bits count", args.head_size, args.value_size);
  return static_cast<std::size_t>(*padded / line * line);
}

}  // namespace

/// Of each lane they share a row of features, scores, what is added to them and four numbers, and the keys or values of a block, where
/// those are copied; a block's own are queries, sums and five numbers, two of them of 64 bits.
template <class T, class K>
QueryBlockBytes query_block_bytes(const AttentionArgs<T, K>& args) {
  constexpr std::int64_t own_numbers = 3 + 2 * sizeof(std::int64_t) / sizeof(float);
  return {scratch_bytes(args, 1, 2 * key_block + 4, in_place<K> ? 0 : key_block), scratch_bytes(args, 2, own_numbers, 0),
          args.keys > attention_key_chunk ? scratch_bytes(args, 1, 2, 0) : 0};
}

template <class T, class K>
std::int64_t partial_elements(const AttentionArgs<T, K>& args) {
  const auto numbers = checked_add(args.value_size, std::int64_t{2});
  const auto elements = numbers ? checked_mul(*numbers, most_lanes(args.level)) : std::nullopt;
  if (!elements) fail("attention: {} features take more bytes than 64 bits count", args.value_size);
  return *elements;
}

template <class T, class K>
QueryBlock<T, K>::QueryBlock(const AttentionArgs<T, K>& args, std::byte* shared, std::byte* own)
    : args_(args),
      kernel_(attention_kernel(args.level)),
      pairs_(pair_products(args)),
      tiles_(tile_products(args)),
      integers_(integer_products(args)),
      masks_(args, most_lanes(args.level), shared, own) {
  const std::int64_t lanes = most_lanes(args.level), features = most_features(args);
  for (float** numbers : {&now_.largest, &now_.total, &query_factors_}) *numbers = take<float>(own, lanes);
  for (float** part : {&queries_, &now_.sums}) *part = take<float>(own, features * lanes);
  for (float** numbers : {&before_.largest, &before_.total}) *numbers = take<float>(own, lanes);
  before_.sums = take<float>(own, features * lanes);
  scores_ = take<float>(shared, key_block * lanes);
  for (float** numbers : {&decay_, &weight_factors_}) *numbers = take<float>(shared, lanes);
  rows_ = take<float>(shared, features * lanes);
  wide_ = reinterpret_cast<float*>(shared);
}

template <class T, class K>
void QueryBlock<T, K>::begin(std::int64_t item, std::int64_t kv_head, std::int64_t row0, std::int64_t count) {
  block_.item = item, block_.kv_head = kv_head, block_.count = count;
  const std::int64_t queries = args_.queries_of(item);
  QueryRows::Row at{kv_head * (args_.heads / args_.kv_heads) + row0 / queries, row0 % queries};
  for (std::int64_t lane = 0; lane < count; ++lane) {
    block_.rows[static_cast<std::size_t>(lane)] = at;
    if (++at.query == queries) at = {at.head + 1, 0};
  }
  is_few_ = is_few(args_, item);
  vectors_ = count > kernel_.vector_lanes ? 2 : 1;
  block_.lanes = vectors_ * kernel_.vector_lanes;
  pack_queries();
  masks_.begin(block_);
  clear(now_);
  has_before_ = false;
}

template <class T, class K>
void QueryBlock<T, K>::clear(Sums& of) const {
  std::fill_n(of.largest, block_.lanes, hidden_score);
  std::fill_n(of.total, block_.lanes, 0.0f);
  of.is_empty = true;
}

template <class T, class K>
void QueryBlock<T, K>::attend(Range keys) {
  const Range seen = masks_.visible(keys);
  // Blocks end at multiples of their length, wherever the first begins: what a row adds up does not depend on the rows beside it.
  for (std::int64_t key = seen.begin; key < seen.end;) {
    const Range block{key, std::min((key / key_block + 1) * key_block, seen.end)};
    add_keys(block);
    key = block.end;
  }
}

/// From an even key on, as values are in pairs: one more in front is hidden by its position, and weighs 0.
template <class T, class K>
void QueryBlock<T, K>::attend(Range keys, const SharedRows<T, K>& rows) {
  const Range seen = masks_.visible(keys);
  shared_rows_ = &rows;
  if (seen.size() > 0) add_keys({seen.begin / 2 * 2, seen.end});
}

template <class T, class K>
void QueryBlock<T, K>::save(float* partial) const {
  partial = std::copy_n(now_.largest, block_.lanes, partial);
  partial = std::copy_n(now_.total, block_.lanes, partial);
  if (now_.is_empty) std::fill_n(partial, args_.value_size * block_.lanes, 0.0f);
  else std::copy_n(now_.sums, args_.value_size * block_.lanes, partial);
}

template <class T, class K>
void QueryBlock<T, K>::merge(const float* partial) {
  merge(now_, partial, partial + block_.lanes, partial + 2 * block_.lanes);
}

template <class T, class K>
void QueryBlock<T, K>::merge(Sums& into, const float* largest, const float* total, const float* sums) const {
  if (into.is_empty) std::fill_n(into.sums, args_.value_size * block_.lanes, 0.0f);
  into.is_empty = false;
  for (std::int64_t lane = 0; lane < block_.count; ++lane) {
    const float now = into.largest[lane] > largest[lane] ? into.largest[lane] : largest[lane];  // std::max would drop a NaN on the right
    if (now == hidden_score) continue;
    const float mine = std::exp2(into.largest[lane] - now), theirs = std::exp2(largest[lane] - now);
    into.largest[lane] = now;
    into.total[lane] = into.total[lane] * mine + total[lane] * theirs;
    for (std::int64_t d = 0; d < args_.value_size; ++d) {
      const std::int64_t at = is_few_ ? lane * args_.value_size + d : d * block_.lanes + lane;
      into.sums[at] = into.sums[at] * mine + sums[at] * theirs;
    }
  }
}

/// Merges the sums of a chunk of keys with those before it, as partial sums of chunks are: neither how many queries there are nor who
/// computes the chunks changes the bits.
template <class T, class K>
void QueryBlock<T, K>::end_chunk() {
  if (!has_before_) clear(before_);
  has_before_ = true;
  if (!now_.is_empty) merge(before_, now_.largest, now_.total, now_.sums);
  clear(now_);
}

/// What makes a score one of 2^x, or of the cap.
template <class T, class K>
float QueryBlock<T, K>::score_factor() const {
  return args_.softcap > 0 ? args_.scale / args_.softcap : args_.scale * log2_e;
}

/// queries_ (head_size, lanes), or (rows, head_size) of few, times score_factor; in pairs (head_size / 2, lanes), as they are.
template <class T, class K>
void QueryBlock<T, K>::pack_queries() {
  if (in_pairs())
    return pack_panel(query_rows(reinterpret_cast<T*>(rows_)), block_.count, args_.head_size, reinterpret_cast<Packed<T>*>(queries_),
                      block_.lanes);
  if (is_few_) {
    copy_queries(queries_);
  } else if constexpr (std::is_same_v<T, float>) {
    pack_panel(query_rows(rows_), block_.count, args_.head_size, queries_, block_.lanes);
  } else {
    copy_queries(rows_);
    pack_panel<float>({rows_, args_.head_size, 1}, block_.count, args_.head_size, queries_, block_.lanes);
  }
  if (in_integers()) integers_->round_queries[vectors_ - 1](queries_, args_.head_size, score_factor(), query_factors_);
  else kernel_.scale(queries_, args_.head_size * (is_few_ ? block_.count : block_.lanes), score_factor(), queries_);
}

/// The rows of the block where they lie, or in `copy` (rows, head_size) where they are of several heads.
template <class T, class K>
Strided<T> QueryBlock<T, K>::query_rows(T* copy) const {
  if (block_.in_one_head())
    return {args_.q.at(block_.item, block_.row(0).head, block_.row(0).query), args_.q.row_stride, args_.q.column_stride};
  copy_queries(copy);
  return {copy, args_.head_size, 1};
}

/// to (rows, head_size), widened where To is.
template <class T, class K>
template <class To>
void QueryBlock<T, K>::copy_queries(To* to) const {
  for (std::int64_t lane = 0; lane < block_.count; ++lane, to += args_.head_size) {
    const T* from = args_.q.at(block_.item, block_.row(lane).head, block_.row(lane).query);
    for (std::int64_t d = 0; d < args_.head_size; ++d) {
      if constexpr (std::is_same_v<T, To>) to[d] = from[d * args_.q.column_stride];
      else to[d] = widened(from[d * args_.q.column_stride]);
    }
  }
}

template <class T, class K>
QueryBlock<T, K>::Rows QueryBlock<T, K>::wide_rows(const KeyRows<K>& rows, std::int64_t keys, std::int64_t features) {
  if constexpr (in_place<K>) {
    return {rows.data, rows.stride};
  } else {
    kernel_.of<K>().widen(features, keys, rows, wide_);
    return {wide_, features};
  }
}

/// Brings a block of keys into the running softmax and the sums.
template <class T, class K>
void QueryBlock<T, K>::add_keys(Range keys) {
  if (const std::int64_t chunk = keys.begin / attention_key_chunk; chunk != chunk_) {
    if (!now_.is_empty) end_chunk();
    chunk_ = chunk;
  }
  multiply_queries(keys);
  ScoreRules rules = masks_.rules(block_, keys);
  if (args_.softcap > 0) rules.cap = args_.softcap * log2_e;
  weigh(keys, rules);
  add_values(keys, now_.is_empty ? nullptr : decay_);
  now_.is_empty = false;
}

/// scores_ -> weights, in the form that the product with the values takes.
template <class T, class K>
void QueryBlock<T, K>::weigh(Range keys, const ScoreRules& rules) {
  const RunningSoftmax running{now_.largest, now_.total, decay_};
  if constexpr (std::is_same_v<T, float>)
    if (in_integers())
      return integers_->weigh[vectors_ - 1](scores_, keys.size(), rules, running, shared_rows_->value_factors(keys.begin), weight_factors_);
  const auto& weigh = in_pairs() ? pairs_->weigh : kernel_.weigh;
  weigh[vectors_ - 1](scores_, keys.size(), rules, running);
}

/// Calls `multiply(part)` for parts of an axis that the kernels' tiles hold, as even as can be.
template <class Multiply>
void for_panels(std::int64_t size, const AttentionKernel& kernel, const Multiply& multiply) {
  const std::int64_t panels = divide_up(size, kernel.max_rows);
  for (std::int64_t panel = 0; panel < panels; ++panel) multiply(even_part(size, panels, panel));
}

/// scores_ = k q^T.
template <class T, class K>
void QueryBlock<T, K>::multiply_queries(Range keys) {
  if constexpr (std::is_same_v<T, float>)
    if (in_integers()) return multiply_queries_as_integers(keys);
  const KeyRows<K> k = rows_from(args_.k, args_.k_factors, block_.item, block_.kv_head, keys.begin);
  if (is_few_) return kernel_.of<K>().scores[block_.count](args_.head_size, keys.size(), k, queries_, scores_);
  if constexpr (std::is_same_v<T, Bf16>)
    if (in_tiles()) return multiply_queries_in_tiles(keys);
  if constexpr (std::is_same_v<T, Bf16>)
    if (in_pairs())
      return for_panels(keys.size(), kernel_, [&](Range part) {
        pairs_->scores[vectors_ - 1][part.size()](args_.head_size / 2, k.data + part.begin * k.stride, k.stride,
                                                  reinterpret_cast<const std::uint32_t*>(queries_), scores_ + part.begin * block_.lanes,
                                                  score_factor());
      });
  const Rows rows = wide_rows(k, keys.size(), args_.head_size);
  for_panels(keys.size(), kernel_, [&](Range part) {
    kernel_.scores[vectors_ - 1][part.size()](args_.head_size, rows.data + part.begin * rows.stride, rows.stride, queries_,
                                              scores_ + part.begin * block_.lanes, nullptr);
  });
}

/// The keys that fill no tile are copied, with zeros behind them.
template <class T, class K>
void QueryBlock<T, K>::multiply_queries_in_tiles(Range keys) {
  constexpr std::int64_t side = TileProducts::side, size = sizeof(K);
  const std::int64_t features = args_.head_size, stride = args_.k.row_stride, whole = keys.size() / side * side;
  const std::int64_t row_bytes = block_.lanes * std::int64_t{sizeof(float)}, step_bytes = 2 * side * size;
  const K* const k = args_.k.at(block_.item, block_.kv_head, keys.begin);
  const TileOperand queries{queries_, row_bytes, side * std::int64_t{sizeof(float)}, side * row_bytes};
  const auto multiply = [&](std::int64_t row, std::int64_t rows, const K* from, std::int64_t from_stride) {
    tiles_->multiply[vectors_ - 1](rows, features / (2 * side), {from, from_stride * size, side * from_stride * size, step_bytes}, queries,
                                   scores_ + row * block_.lanes, nullptr);
  };
  multiply(0, whole, k, stride);
  if (whole < keys.size()) {
    K* const rest = reinterpret_cast<K*>(wide_);
    std::fill_n(rest, side * features, K{});
    for (std::int64_t key = whole; key < keys.size(); ++key) std::copy_n(k + key * stride, features, rest + (key - whole) * features);
    multiply(whole, side, rest, features);
  }
  kernel_.scale(scores_, keys.size() * block_.lanes, score_factor(), scores_);
}

template <class T, class K>
void QueryBlock<T, K>::multiply_queries_as_integers(Range keys)
  requires std::is_same_v<T, float>
{
  const auto* const queries = reinterpret_cast<const std::uint32_t*>(queries_);
  for_panels(keys.size(), kernel_, [&](Range part) {
    const std::int64_t key = keys.begin + part.begin;
    integers_->scores[vectors_ - 1][part.size()](args_.head_size / 2, shared_rows_->keys(key), args_.head_size,
                                                 shared_rows_->key_factors(key), queries, query_factors_,
                                                 scores_ + part.begin * block_.lanes);
  });
}

template <class T, class K>
void QueryBlock<T, K>::add_values_as_integers(Range keys, const float* decay)
  requires std::is_same_v<T, float>
{
  const auto* const weights = reinterpret_cast<const std::uint32_t*>(scores_);
  for_panels(args_.value_size, kernel_, [&](Range part) {
    integers_->values[vectors_ - 1][part.size()](divide_up(keys.size(), 2), shared_rows_->values(keys.begin) + part.begin, args_.value_size,
                                                 weights, weight_factors_, decay, now_.sums + part.begin * block_.lanes);
  });
}

/// now_.sums = v^T scores_, plus what the blocks before left, times `decay`.
template <class T, class K>
void QueryBlock<T, K>::add_values(Range keys, const float* decay) {
  if constexpr (std::is_same_v<T, float>)
    if (in_integers()) return add_values_as_integers(keys, decay);
  const KeyRows<K> v = rows_from(args_.v, args_.v_factors, block_.item, block_.kv_head, keys.begin);
  const std::int64_t size = args_.value_size;
  if (is_few_) return kernel_.of<K>().values[block_.count](size, keys.size(), v, scores_, now_.sums, decay);
  if constexpr (std::is_same_v<T, Bf16>)
    if (in_tiles()) return add_values_in_tiles(keys, decay);
  if constexpr (std::is_same_v<T, Bf16>)
    if (in_pairs())
      return for_panels(size, kernel_, [&](Range part) {
        pairs_->values[vectors_ - 1][part.size()](units_of<Bf16>(keys.size()), shared_rows_->values(keys.begin) + part.begin, size,
                                                  reinterpret_cast<const std::uint32_t*>(scores_), now_.sums + part.begin * block_.lanes,
                                                  decay);
      });
  const Rows rows = wide_rows(v, keys.size(), size);
  for_panels(size, kernel_, [&](Range part) {
    kernel_.values[vectors_ - 1][part.size()](keys.size(), rows.data + part.begin, rows.stride, scores_,
                                              now_.sums + part.begin * block_.lanes, decay);
  });
}

/// wide_ holds the values transposed: blocks of 16 pairs of keys, (features, 16) units each.
template <class T, class K>
void QueryBlock<T, K>::add_values_in_tiles(Range keys, const float* decay) {
  constexpr std::int64_t side = TileProducts::side, unit = sizeof(std::uint32_t);
  const std::int64_t size = args_.value_size, steps = divide_up(keys.size(), 2 * side), units = divide_up(keys.size(), 2);
  if constexpr (std::is_same_v<T, Bf16>)
    pack_blocks<T>({args_.v.at(block_.item, block_.kv_head, keys.begin), 1, args_.v.row_stride}, size, keys.size(),
                   reinterpret_cast<std::uint32_t*>(wide_), size, side);
  std::fill(scores_ + units * block_.lanes, scores_ + steps * side * block_.lanes, 0.0f);
  tiles_->multiply[vectors_ - 1](size, steps, {wide_, side * unit, side * side * unit, size * side * unit},
                                 {scores_, block_.lanes * unit, side * unit, side * block_.lanes * unit}, now_.sums, decay);
}

/// The sums divided by the totals, at their places in the result. Where rows can be empty, an empty one gives zeros.
template <class T, class K>
void QueryBlock<T, K>::store() {
  const bool may_be_empty = args_.mask.data || args_.bias.data || args_.causal || args_.window > 0 || args_.keys == 0;
  const std::int64_t size = args_.value_size;
  if (size == 0) return;
  if (has_before_) end_chunk();
  const Sums& all = has_before_ ? before_ : now_;
  if (all.is_empty) std::fill_n(all.sums, size * block_.lanes, 0.0f);
  if (!is_few_) pack_panel<float>({all.sums, block_.lanes, 1}, size, block_.count, rows_, size);
  for (std::int64_t lane = 0; lane < block_.count; ++lane) {
    const float factor = all.total[lane] == 0 && may_be_empty ? 0 : 1 / all.total[lane];
    const float* const from = (is_few_ ? all.sums : rows_) + lane * size;
    T* const to = args_.out.at(block_.item, block_.row(lane).head, block_.row(lane).query);
    const std::int64_t stride = args_.out.column_stride;
    if (stride != 1)
      for (std::int64_t d = 0; d < size; ++d) assign(to[d * stride], from[d] * factor);
    else if constexpr (std::is_same_v<T, Bf16>) kernel_.narrow(from, size, factor, to);
    else kernel_.scale(from, size, factor, to);
  }
}

template QueryBlockBytes query_block_bytes(const AttentionArgs<float>&);
template QueryBlockBytes query_block_bytes(const AttentionArgs<Bf16>&);
template QueryBlockBytes query_block_bytes(const AttentionArgs<float, Bf16>&);
template QueryBlockBytes query_block_bytes(const AttentionArgs<float, F16>&);
template QueryBlockBytes query_block_bytes(const AttentionArgs<float, std::int8_t>&);
template std::int64_t partial_elements(const AttentionArgs<float>&);
template std::int64_t partial_elements(const AttentionArgs<Bf16>&);
template std::int64_t partial_elements(const AttentionArgs<float, Bf16>&);
template std::int64_t partial_elements(const AttentionArgs<float, F16>&);
template std::int64_t partial_elements(const AttentionArgs<float, std::int8_t>&);
template class QueryBlock<float, float>;
template class QueryBlock<Bf16, Bf16>;
template class QueryBlock<float, Bf16>;
template class QueryBlock<float, F16>;
template class QueryBlock<float, std::int8_t>;

}  // namespace rlx::cpu
