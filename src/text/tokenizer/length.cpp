#include "text/tokenizer/length.h"

#include <algorithm>
#include <utility>

#include "formats/json/json_field.h"

namespace rlx {
namespace {

TokenSide read_side(const JsonField& field) { return field.as_one_of({"Left", "Right"}) == 0 ? TokenSide::left : TokenSide::right; }

void cut(Encoding& encoding, std::size_t length, TokenSide side) {
  if (length >= encoding.size()) return;
  if (side == TokenSide::right) encoding.keep(0, length);
  else encoding.keep(encoding.size() - length, encoding.size());
}

/// The lengths of two texts that share `max_length`: the shorter one stays if it leaves room for as much of the other, else both get half
/// and the longer one the odd token.
std::pair<std::size_t, std::size_t> share(std::size_t first, std::size_t second, std::size_t max_length) {
  const bool swapped = first > second;
  std::size_t shorter = std::min(first, second);
  std::size_t longer = shorter > max_length ? shorter : std::max(shorter, max_length - shorter);
  if (shorter + longer > max_length) {
    shorter = max_length / 2;
    longer = shorter + max_length % 2;
  }
  return swapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

template <class T>
void pad_vector(std::vector<T>& values, std::size_t count, TokenSide side, const T& value) {
  values.insert(side == TokenSide::left ? values.begin() : values.end(), count, value);
}

void pad_to(Encoding& encoding, std::size_t length, const Padding& padding) {
  if (encoding.size() >= length) return;
  const std::size_t count = length - encoding.size();
  pad_vector(encoding.ids, count, padding.direction, padding.pad_id);
  pad_vector(encoding.type_ids, count, padding.direction, padding.pad_type_id);
  pad_vector(encoding.attention_mask, count, padding.direction, std::uint8_t{0});
  pad_vector(encoding.special_mask, count, padding.direction, std::uint8_t{1});
  pad_vector(encoding.offsets, count, padding.direction, {0, 0});
  pad_vector(encoding.tokens, count, padding.direction, padding.pad_token);
}

}  // namespace

Truncation read_truncation(const JsonField& field) {
  Truncation result;
  result.max_length = field.at("max_length").as_integer(0, UINT64_MAX);
  result.strategy = static_cast<Truncation::Strategy>(field.at("strategy").as_one_of({"LongestFirst", "OnlyFirst", "OnlySecond"}));
  if (const auto direction = field.find("direction")) result.direction = read_side(*direction);
  const auto stride = field.at("stride").as_integer(0, UINT64_MAX);
  if (stride > 0 && stride >= result.max_length) field.at("stride").refuse("{} is not under max_length, {}", stride, result.max_length);
  return result;
}

Padding read_padding(const JsonField& field) {
  Padding result;
  const JsonField strategy = field.at("strategy");
  if (strategy.value().is_object()) result.fixed_length = strategy.at("Fixed").as_integer(0, max_padded_length);
  else strategy.as_one_of({"BatchLongest"});
  if (const auto multiple = field.find("pad_to_multiple_of")) result.multiple_of = multiple->as_integer(0, max_padded_length);
  result.direction = read_side(field.at("direction"));
  result.pad_id = field.at("pad_id").as_id();
  result.pad_type_id = field.at("pad_type_id").as_id();
  result.pad_token = field.at("pad_token").as_string();
  return result;
}

void check(const Padding& padding) {
  const std::size_t longest = std::max(padding.fixed_length.value_or(0), padding.multiple_of);
  if (longest > max_padded_length) fail("padding: a length of {} is over the limit, {}", longest, max_padded_length);
}

void truncate(Encoding& first, std::optional<Encoding>& second, const Truncation& truncation, std::size_t max_length) {
  const std::size_t total = first.size() + (second ? second->size() : 0);
  if (total <= max_length) return;
  if (truncation.strategy == Truncation::Strategy::longest_first || max_length == 0) {
    const auto [first_length, second_length] =
        second ? share(first.size(), second->size(), max_length) : std::pair(max_length, std::size_t{0});
    cut(first, first_length, truncation.direction);
    if (second) cut(*second, second_length, truncation.direction);
    return;
  }
  const bool only_first = truncation.strategy == Truncation::Strategy::only_first;
  if (!only_first && !second) fail("tokenizer: truncation 'OnlySecond' of a single text of {} tokens (allowed: {})", total, max_length);
  Encoding& target = only_first ? first : *second;
  const std::size_t surplus = total - max_length;
  if (target.size() <= surplus) {
    fail("tokenizer: truncation '{}' must take {} tokens from a text of {}", only_first ? "OnlyFirst" : "OnlySecond", surplus,
         target.size());
  }
  cut(target, target.size() - surplus, truncation.direction);
}

void pad(Encoding& encoding, const Padding& padding) {
  std::size_t length = padding.fixed_length.value_or(encoding.size());
  if (padding.multiple_of > 0) length = (length + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of;
  pad_to(encoding, length, padding);
}

}  // namespace rlx
