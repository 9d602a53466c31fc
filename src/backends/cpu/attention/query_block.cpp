#include "backends/cpu/attention/query_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/gemm/pack.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t key_block = 128;  // scores of 32 queries take half of a first-level cache of 32 KiB
constexpr float log2_e = 1.4426950408889634f;
constexpr float hidden = -std::numeric_limits<float>::infinity();

std::int64_t most_lanes(const AttentionArgs& args) { return attention_kernel(args.level).vector_lanes * AttentionKernel::most_vectors; }

/// Elements of one lane in the scratch memory: queries, scores, what is added to them, sums, their rows, and eight numbers.
std::optional<std::int64_t> lane_elements(const AttentionArgs& args) {
  constexpr std::int64_t numbers = 5 + 2 * sizeof(std::int64_t) / sizeof(float);
  const auto values = checked_mul(args.value_size, std::int64_t{2});
  const auto features = values ? checked_add(*values, args.head_size) : std::nullopt;
  return features ? checked_add(*features, 2 * key_block + numbers) : std::nullopt;
}

}  // namespace

std::size_t query_block_bytes(const AttentionArgs& args) {
  constexpr std::size_t line = AlignedBuffer::cache_line;
  const auto elements = lane_elements(args);
  const auto bytes = elements ? checked_mul(*elements, most_lanes(args) * static_cast<std::int64_t>(sizeof(float))) : std::nullopt;
  if (!bytes || *bytes > std::numeric_limits<std::int64_t>::max() - static_cast<std::int64_t>(line))
    fail("attention: heads of {} and {} features take more bytes than 64 bits count", args.head_size, args.value_size);
  return (static_cast<std::size_t>(*bytes) + line - 1) / line * line;
}

std::int64_t partial_elements(const AttentionArgs& args) {
  const auto numbers = checked_add(args.value_size, std::int64_t{2});
  const auto elements = numbers ? checked_mul(*numbers, most_lanes(args)) : std::nullopt;
  if (!elements) fail("attention: {} features take more bytes than 64 bits count", args.value_size);
  return *elements;
}

QueryBlock::QueryBlock(const AttentionArgs& args, std::byte* workspace) : args_(args), kernel_(attention_kernel(args.level)) {
  const std::int64_t lanes = most_lanes(args);
  const auto take = [&]<class T>(T*& place, std::int64_t rows) {
    place = reinterpret_cast<T*>(workspace);
    workspace += static_cast<std::size_t>(rows * lanes) * sizeof(T);
  };
  take(first_key_, 1), take(last_key_, 1);
  take(scores_, key_block), take(added_, key_block);
  take(largest_, 1), take(total_, 1), take(decay_, 1), take(first_, 1), take(last_, 1);
  take(queries_, args.head_size), take(sums_, args.value_size), take(rows_, args.value_size);
}

void QueryBlock::begin(std::int64_t item, std::int64_t kv_head, std::int64_t row0, std::int64_t count) {
  item_ = item, kv_head_ = kv_head, count_ = count;
  Row at{kv_head * (args_.heads / args_.kv_heads) + row0 / args_.queries, row0 % args_.queries};
  for (std::int64_t lane = 0; lane < count; ++lane) {
    rows_of_[static_cast<std::size_t>(lane)] = at;
    if (++at.query == args_.queries) at = {at.head + 1, 0};
  }
  is_empty_ = true;
  is_few_ = count <= AttentionKernel::few;
  vectors_ = count > kernel_.vector_lanes ? 2 : 1;
  lanes_ = vectors_ * kernel_.vector_lanes;
  pack_queries();
  std::fill_n(largest_, lanes_, hidden);
  std::fill_n(total_, lanes_, 0.0f);
}

void QueryBlock::attend(Range keys) {
  const Range visible = find_visible(keys);
  // Blocks begin at multiples of their length: what a row adds up does not depend on the rows beside it.
  for (std::int64_t key = visible.begin; key < visible.end;) {
    const Range block{key, std::min((key / key_block + 1) * key_block, visible.end)};
    add_keys(block);
    key = block.end;
  }
}

void QueryBlock::save(float* partial) const {
  partial = std::copy_n(largest_, lanes_, partial);
  partial = std::copy_n(total_, lanes_, partial);
  if (is_empty_) std::fill_n(partial, args_.value_size * lanes_, 0.0f);
  else std::copy_n(sums_, args_.value_size * lanes_, partial);
}

void QueryBlock::merge(const float* partial) {
  const float *const largest = partial, *const total = partial + lanes_, *const sums = partial + 2 * lanes_;
  if (is_empty_) std::fill_n(sums_, args_.value_size * lanes_, 0.0f);
  is_empty_ = false;
  for (std::int64_t lane = 0; lane < count_; ++lane) {
    const float now = std::max(largest_[lane], largest[lane]);
    if (now == hidden) continue;
    const float mine = std::exp2(largest_[lane] - now), theirs = std::exp2(largest[lane] - now);
    largest_[lane] = now;
    total_[lane] = total_[lane] * mine + total[lane] * theirs;
    for (std::int64_t d = 0; d < args_.value_size; ++d) {
      const std::int64_t at = is_few_ ? lane * args_.value_size + d : d * lanes_ + lane;
      sums_[at] = sums_[at] * mine + sums[at] * theirs;
    }
  }
}

/// queries_ (head_size, lanes), or (rows, head_size) of few, times what makes a score of e^x one of 2^x.
void QueryBlock::pack_queries() {
  const AttentionOperand<const float>& q = args_.q;
  if (in_one_head() && !is_few_) {
    const Row first = row(0);
    pack_panel<float>({q.at(item_, first.head, first.query), q.row_stride, q.column_stride}, count_, args_.head_size, queries_, lanes_);
  } else {
    if (!is_few_) std::fill_n(queries_, args_.head_size * lanes_, 0.0f);
    for (std::int64_t lane = 0; lane < count_; ++lane) {
      const float* from = q.at(item_, row(lane).head, row(lane).query);
      float* const to = is_few_ ? queries_ + lane * args_.head_size : queries_ + lane;
      const std::int64_t step = is_few_ ? 1 : lanes_;
      for (std::int64_t d = 0; d < args_.head_size; ++d) to[d * step] = from[d * q.column_stride];
    }
  }
  kernel_.scale(queries_, args_.head_size * (is_few_ ? count_ : lanes_),
                args_.softcap > 0 ? args_.scale / args_.softcap : args_.scale * log2_e);
}

/// Fills first_key_ and last_key_. Returns the range of those keys that some row sees.
Range QueryBlock::find_visible(Range keys) {
  if (!args_.causal && args_.window == 0) return keys;
  Range all{keys.end, keys.begin};
  for (std::int64_t lane = 0; lane < count_; ++lane) {
    const std::int64_t query = row(lane).query;
    const std::int64_t position = args_.positions ? args_.positions[item_ * args_.queries + query] : args_.keys - args_.queries + query;
    last_key_[lane] = std::min(position, args_.keys - 1);
    first_key_[lane] = args_.window > 0 ? std::max<std::int64_t>(position - args_.window + 1, 0) : 0;
    const Range seen{std::max(first_key_[lane], keys.begin), std::min(last_key_[lane] + 1, keys.end)};
    if (seen.size() > 0) all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
  }
  return all;
}

/// Brings a block of keys into the running softmax and the sums.
void QueryBlock::add_keys(Range keys) {
  multiply_queries(keys);
  ScoreRules rules;
  if (args_.softcap > 0) rules.cap = args_.softcap * log2_e;
  if (fill_added(keys)) rules.added = added_, rules.added_stride = added_stride_;
  rules.first = limits(keys);
  rules.last = last_;
  kernel_.weigh[vectors_ - 1](scores_, keys.size(), rules, {largest_, total_, decay_});
  add_values(keys, is_empty_ ? nullptr : decay_);
  is_empty_ = false;
}

/// scores_ = k q^T.
void QueryBlock::multiply_queries(Range keys) {
  const float* const k = args_.k.at(item_, kv_head_, keys.begin);
  const std::int64_t stride = args_.k.row_stride, key_panels = divide_up(keys.size(), kernel_.max_rows);
  if (is_few_) return kernel_.few_scores[count_](args_.head_size, keys.size(), k, stride, queries_, scores_);
  for (std::int64_t panel = 0; panel < key_panels; ++panel) {
    const Range part = even_part(keys.size(), key_panels, panel);
    kernel_.scores[vectors_ - 1][part.size()](args_.head_size, k + part.begin * stride, stride, queries_, scores_ + part.begin * lanes_,
                                              nullptr);
  }
}

/// sums_ = v^T scores_, plus what the blocks before left, times `decay`.
void QueryBlock::add_values(Range keys, const float* decay) {
  const float* const v = args_.v.at(item_, kv_head_, keys.begin);
  const std::int64_t stride = args_.v.row_stride;
  if (is_few_) return kernel_.few_values[count_](args_.value_size, keys.size(), v, stride, scores_, sums_, decay);
  const std::int64_t feature_panels = divide_up(args_.value_size, kernel_.max_rows);
  for (std::int64_t panel = 0; panel < feature_panels; ++panel) {
    const Range part = even_part(args_.value_size, feature_panels, panel);
    kernel_.values[vectors_ - 1][part.size()](keys.size(), v + part.begin, stride, scores_, sums_ + part.begin * lanes_, decay);
  }
}

/// first_ and last_: what each lane sees of the block, counted in it; null where every lane sees all of it.
const float* QueryBlock::limits(Range keys) {
  if (!args_.causal && args_.window == 0) return nullptr;
  bool whole = true;
  for (std::int64_t lane = 0; lane < lanes_; ++lane) {
    const std::int64_t of = std::min(lane, count_ - 1);
    whole = whole && first_key_[of] <= keys.begin && last_key_[of] >= keys.end - 1;
    first_[lane] = static_cast<float>(std::clamp(first_key_[of] - keys.begin, std::int64_t{0}, key_block));
    last_[lane] = static_cast<float>(std::clamp(last_key_[of] - keys.begin, std::int64_t{-1}, key_block));
  }
  return whole ? nullptr : first_;
}

/// Bias and mask as one number for each key, or each key and lane. False when there is neither.
bool QueryBlock::fill_added(Range keys) {
  const AttentionOperand<const std::uint8_t>& mask = args_.mask;
  const AttentionOperand<const float>& bias = args_.bias;
  if (!mask.data && !bias.data) return false;
  const auto is_shared = [&](const auto& operand) { return operand.row_stride == 0 && (operand.head_stride == 0 || in_one_head()); };
  const bool shared = is_shared(mask) && is_shared(bias);
  const std::int64_t count = shared ? 1 : count_;
  added_stride_ = shared ? 1 : lanes_;
  if (bias.data) add_bias(keys, count);
  else std::fill_n(added_, keys.size() * added_stride_, 0.0f);
  for (std::int64_t lane = 0; mask.data && lane < count; ++lane) {
    const std::uint8_t* const keep = mask.at(item_, row(lane).head, row(lane).query) + keys.begin * mask.column_stride;
    float* const to = added_ + lane;
    for (std::int64_t key = 0; key < keys.size(); ++key)
      to[key * added_stride_] = keep[key * mask.column_stride] ? to[key * added_stride_] : hidden;
  }
  return true;
}

void QueryBlock::add_bias(Range keys, std::int64_t count) {
  const AttentionOperand<const float>& bias = args_.bias;
  const auto from = [&](std::int64_t lane) { return bias.at(item_, row(lane).head, row(lane).query) + keys.begin * bias.column_stride; };
  if (in_one_head()) return pack_panel<float>({from(0), bias.row_stride, bias.column_stride}, count, keys.size(), added_, added_stride_);
  for (std::int64_t lane = 0; lane < count; ++lane)
    for (std::int64_t key = 0; key < keys.size(); ++key) added_[key * added_stride_ + lane] = from(lane)[key * bias.column_stride];
}

/// The sums divided by the totals, at their places in the result. Where rows can be empty, an empty one gives zeros.
void QueryBlock::store() {
  const bool may_be_empty = args_.mask.data || args_.bias.data || args_.causal || args_.window > 0 || args_.keys == 0;
  const std::int64_t size = args_.value_size;
  if (size == 0) return;
  if (is_empty_) std::fill_n(sums_, size * lanes_, 0.0f);
  if (!is_few_) pack_panel<float>({sums_, lanes_, 1}, size, count_, rows_, size);
  for (std::int64_t lane = 0; lane < count_; ++lane) {
    const float factor = total_[lane] == 0 && may_be_empty ? 0 : 1 / total_[lane];
    const float* const from = (is_few_ ? sums_ : rows_) + lane * size;
    float* const to = args_.out.at(item_, row(lane).head, row(lane).query);
    const std::int64_t stride = args_.out.column_stride;
    if (stride == 1)
      for (std::int64_t d = 0; d < size; ++d) to[d] = from[d] * factor;
    else
      for (std::int64_t d = 0; d < size; ++d) to[d * stride] = from[d] * factor;
  }
}

}  // namespace rlx::cpu
