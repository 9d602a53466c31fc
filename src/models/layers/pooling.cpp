#include "models/layers/pooling.h"

#include <array>
#include <optional>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/config/model_folder.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

struct ModeName {
  Pooling mode;
  std::string_view flag;  // set to true in older configs
  std::string_view word;  // given as pooling_mode in newer ones
};

// In the order of the vectors in the result.
constexpr std::array<ModeName, 6> mode_names{{
    {Pooling::cls, "pooling_mode_cls_token", "cls"},
    {Pooling::max, "pooling_mode_max_tokens", "max"},
    {Pooling::mean, "pooling_mode_mean_tokens", "mean"},
    {Pooling::mean_sqrt_len, "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {Pooling::weighted_mean, "pooling_mode_weightedmean_tokens", "weightedmean"},
    {Pooling::last_token, "pooling_mode_lasttoken", "lasttoken"},
}};

/// The sum of the states times `weights` (B, S, 1), and of the weights alone: (B, H) and (B, 1).
std::pair<Value, Value> weighted_sum(Value states, Value weights) { return {sum(states * weights, {1}), sum(weights, {1})}; }

/// A sum of weights, kept away from 0 as in sentence-transformers.
Value at_least_tiny(Value total) { return max(total, scalar(total, 1e-9, total.dtype())); }

/// The state at a position (B) of each text: (B, H).
Value state_at(Value states, Value position) {
  Value at = reshape(position, {states.dim(0), 1, 1});
  return reshape(take_along_axis(states, at, 1), {states.dim(0), states.dim(2)});
}

Value first_state(Value states) { return reshape(slice_axis(states, 1, 0, 1), {states.dim(0), states.dim(2)}); }

Value largest(Value states, Value keep) {
  Value lowest = scalar(states, -1e9, states.dtype());
  return reduce_max(select(reshape(keep, {keep.dim(0), keep.dim(1), 1}), states, lowest), {1});
}

Value pool_one(Value states, Value keep, Pooling mode) {
  const Dims column{states.dim(0), states.dim(1), 1};
  Value weights = reshape(cast(keep, states.dtype()), column);
  switch (mode) {
    case Pooling::cls: return first_state(states);
    case Pooling::max: return largest(states, keep);
    case Pooling::mean: {
      auto [total, count] = weighted_sum(states, weights);
      return total / at_least_tiny(count);
    }
    case Pooling::mean_sqrt_len: {
      auto [total, count] = weighted_sum(states, weights);
      return total / sqrt(at_least_tiny(count));
    }
    case Pooling::weighted_mean: {  // later tokens weigh more: 1, 2, 3, ...
      Value position = iota(states, column, states.dtype(), 1) + 1;
      auto [total, weight] = weighted_sum(states, weights * position);
      return total / at_least_tiny(weight);
    }
    case Pooling::last_token: {
      Value count = sum(cast(keep, i32), {1});
      return state_at(states, count - scalar(count, 1, i32));
    }
  }
  fail_internal("pooling: mode {} is not in the enumeration", static_cast<int>(mode));
}

std::string allowed_words() {
  std::vector<std::string_view> words;
  for (const ModeName& name : mode_names) words.push_back(name.word);
  return fmt::format("{}", fmt::join(words, ", "));
}

std::optional<Pooling> find_pooling(std::string_view word) {
  for (const ModeName& name : mode_names)
    if (name.word == word) return name.mode;
  return std::nullopt;
}

void add_by_word(const JsonField& field, std::vector<Pooling>& modes) {
  const std::string word = field.as_string();
  const auto mode = find_pooling(word);
  if (!mode) field.refuse("{} is not known (allowed: {})", quote_name(word), allowed_words());
  modes.push_back(*mode);
}

void check_width(const JsonField& config, std::int64_t width) {
  for (std::string_view name : {"word_embedding_dimension", "embedding_dimension"}) {
    if (auto field = config.find(name); field && as_size(*field) != width) {
      field->refuse("{} differs from the model's hidden_size {}", as_size(*field), width);
    }
  }
}

}  // namespace

Pooling parse_pooling(std::string_view word) {
  const auto mode = find_pooling(word);
  if (!mode) fail("pooling {} is not known (allowed: {})", quote_name(word), allowed_words());
  return *mode;
}

std::vector<Pooling> read_pooling(const JsonField& config, std::int64_t width) {
  check_width(config, width);
  std::vector<Pooling> modes;
  if (auto words = config.find("pooling_mode")) {
    if (!words->value().is_array()) add_by_word(*words, modes);
    else
      for (const JsonField& word : words->items()) add_by_word(word, modes);
  } else {
    for (const ModeName& name : mode_names) {
      if (auto flag = config.find(name.flag); flag && flag->as_bool()) modes.push_back(name.mode);
    }
  }
  if (modes.empty()) config.refuse("no pooling mode is set (allowed: {} and others to be true)", mode_names[0].flag);
  return modes;
}

Value pool(Value states, Value keep, const std::vector<Pooling>& modes) {
  Value kept = ne(keep, scalar(keep, 0, keep.dtype()));
  Values parts;
  for (Pooling mode : modes) parts.push_back(pool_one(states, kept, mode));
  return parts.size() == 1 ? parts[0] : concat(parts, 1);
}

Value normalize_rows(Value x) {
  Value norm = sqrt(sum(x * x, {-1}, true));
  return x / max(norm, scalar(norm, 1e-12, norm.dtype()));
}

}  // namespace rlx
