#include "backends/cpu/attention/score_masks.h"

#include <algorithm>

#include "backends/cpu/attention/scratch.h"
#include "backends/cpu/gemm/pack.h"

namespace rlx::cpu {

template <class T, class K>
ScoreMasks<T, K>::ScoreMasks(const AttentionArgs<T, K>& args, std::int64_t lanes, std::byte*& shared, std::byte*& own)
    : args_(args),
      added_(take<float>(shared, attention_key_block * lanes)),
      first_(take<float>(shared, lanes)),
      last_(take<float>(shared, lanes)),
      first_key_(take<std::int64_t>(own, lanes)),
      last_key_(take<std::int64_t>(own, lanes)) {}

template <class T, class K>
void ScoreMasks<T, K>::begin(const QueryRows& block) {
  visible_ = common_ = {0, args_.keys};
  if (!args_.causal && args_.window == 0) return;
  visible_ = {args_.keys, 0};
  for (std::int64_t lane = 0; lane < block.count; ++lane) {
    const std::int64_t position = args_.position(block.item, block.row(lane).query);
    last_key_[lane] = std::min(position, args_.keys - 1);
    first_key_[lane] = args_.window > 0 ? std::max<std::int64_t>(position - args_.window + 1, 0) : 0;
    common_ = {std::max(common_.begin, first_key_[lane]), std::min(common_.end, last_key_[lane] + 1)};
    if (first_key_[lane] <= last_key_[lane])
      visible_ = {std::min(visible_.begin, first_key_[lane]), std::max(visible_.end, last_key_[lane] + 1)};
  }
}

template <class T, class K>
ScoreRules ScoreMasks<T, K>::rules(const QueryRows& block, Range keys) {
  ScoreRules rules;
  add(block, keys, rules);
  limit(block, keys, rules);
  return rules;
}

/// What each lane sees of the keys, counted from their first, unless every lane sees all of them.
template <class T, class K>
void ScoreMasks<T, K>::limit(const QueryRows& block, Range keys, ScoreRules& rules) {
  if (common_.begin <= keys.begin && common_.end >= keys.end) return;
  for (std::int64_t lane = 0; lane < block.lanes; ++lane) {
    const std::int64_t of = std::min(lane, block.count - 1);
    first_[lane] = static_cast<float>(std::clamp(first_key_[of] - keys.begin, std::int64_t{0}, attention_key_block));
    last_[lane] = static_cast<float>(std::clamp(last_key_[of] - keys.begin, std::int64_t{-1}, attention_key_block));
  }
  rules.first = first_, rules.last = last_;
  rules.common = std::clamp(common_.begin - keys.begin, std::int64_t{0}, keys.size());
  rules.common_end = std::clamp(common_.end - keys.begin, rules.common, keys.size());
}

/// Bias and mask as one number for each key, or each key and lane.
template <class T, class K>
void ScoreMasks<T, K>::add(const QueryRows& block, Range keys, ScoreRules& rules) {
  const AttentionOperand<const std::uint8_t>& mask = args_.mask;
  const AttentionOperand<const float>& bias = args_.bias;
  if (!mask.data && !bias.data) return;
  const auto is_shared = [&](const auto& operand) { return operand.row_stride == 0 && (operand.head_stride == 0 || block.in_one_head()); };
  const bool shared = is_shared(mask) && is_shared(bias);
  const std::int64_t count = shared ? 1 : block.count, stride = shared ? 1 : block.lanes;
  if (bias.data) add_bias(block, keys, count, stride);
  else std::fill_n(added_, keys.size() * stride, 0.0f);
  for (std::int64_t lane = 0; mask.data && lane < count; ++lane) {
    const std::uint8_t* const keep = mask.at(block.item, block.row(lane).head, block.row(lane).query) + keys.begin * mask.column_stride;
    float* const to = added_ + lane;
    for (std::int64_t key = 0; key < keys.size(); ++key)
      to[key * stride] = keep[key * mask.column_stride] ? to[key * stride] : hidden_score;
  }
  rules.added = added_, rules.added_stride = stride;
}

template <class T, class K>
void ScoreMasks<T, K>::add_bias(const QueryRows& block, Range keys, std::int64_t count, std::int64_t stride) {
  const AttentionOperand<const float>& bias = args_.bias;
  const auto from = [&](std::int64_t lane) {
    return bias.at(block.item, block.row(lane).head, block.row(lane).query) + keys.begin * bias.column_stride;
  };
  if (block.in_one_head()) return pack_panel<float>({from(0), bias.row_stride, bias.column_stride}, count, keys.size(), added_, stride);
  for (std::int64_t lane = 0; lane < count; ++lane)
    for (std::int64_t key = 0; key < keys.size(); ++key) added_[key * stride + lane] = from(lane)[key * bias.column_stride];
}

template class ScoreMasks<float, float>;
template class ScoreMasks<Bf16, Bf16>;
template class ScoreMasks<float, Bf16>;
template class ScoreMasks<float, F16>;
template class ScoreMasks<float, std::int8_t>;

}  // namespace rlx::cpu
