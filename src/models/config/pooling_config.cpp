#include "models/config/pooling_config.h"

#include <array>
#include <optional>
#include <string>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/config/config_field.h"

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

std::string_view pooling_word(Pooling mode) {
  for (const ModeName& name : mode_names)
    if (name.mode == mode) return name.word;
  fail_internal("pooling: mode {} is not in the table", static_cast<int>(mode));
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

}  // namespace rlx
