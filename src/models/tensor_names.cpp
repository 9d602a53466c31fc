#include "models/tensor_names.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace rlx {
namespace {

constexpr std::string_view expert_mark = "{e}";

bool is_name_part(std::string_view name, std::string_view part) {
  return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
}

/// The number at the front, which is removed with the dot behind it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

/// The place of a name: its layer, and what stands behind it.
struct NamePlace {
  std::int64_t layer = -1;
  std::string_view rest;
};

NamePlace place_of_name(std::string_view name, const WeightNames& names) {
  std::string_view rest = name;
  if (is_name_part(name, names.layers) && name.size() > names.layers.size() + 1) {
    rest.remove_prefix(names.layers.size() + 1);
    const auto layer = take_number(rest);
    if (layer && rest.starts_with('.')) return {*layer, rest.substr(1)};
  }
  return {-1, name};
}

std::string_view without_prefix(std::string_view name, const WeightNames& names) {
  if (!names.prefix.empty() && name.starts_with(names.prefix)) name.remove_prefix(names.prefix.size());
  return name;
}

/// Of two lines for a parameter the last counts.
bool line_counts(const WeightName& line, const std::vector<WeightName>& table) {
  return std::all_of(line.params.begin(), line.params.end(), [&](std::string_view param) {
    const auto last = std::find_if(table.rbegin(), table.rend(), [&](const WeightName& each) {
      return std::find(each.params.begin(), each.params.end(), param) != each.params.end();
    });
    return last != table.rend() && &*last == &line;
  });
}

/// What stands behind `pattern` in `rest`, whose {e} is any number; nothing where they do not fit.
std::optional<std::string_view> match_pattern(std::string_view rest, std::string_view pattern, std::optional<std::int64_t>& expert) {
  if (const auto mark = pattern.find(expert_mark); mark != std::string_view::npos) {
    if (!rest.starts_with(pattern.substr(0, mark))) return std::nullopt;
    rest.remove_prefix(mark);
    expert = take_number(rest);
    if (!expert) return std::nullopt;
    pattern.remove_prefix(mark + expert_mark.size());
  }
  if (!is_name_part(rest, pattern)) return std::nullopt;
  return rest.substr(pattern.size());
}

}  // namespace

std::optional<TensorName> parse_tensor_name(std::string_view name, const WeightNames& names) {
  const NamePlace place = place_of_name(without_prefix(name, names), names);
  const auto& table = place.layer >= 0 ? names.layer : names.whole;
  for (auto line = table.rbegin(); line != table.rend(); ++line) {
    TensorName found;
    found.layer = place.layer, found.params = line->params, found.transposed = line->transposed;
    const auto ending = match_pattern(place.rest, line->tensor, found.expert);
    if (!ending || line->groups != 1 || !line_counts(*line, table)) continue;
    found.ending = *ending;
    return found;
  }
  return std::nullopt;
}

std::optional<std::string> spell_tensor_name(const TensorName& tensor, const WeightNames& names) {
  const auto& table = tensor.layer >= 0 ? names.layer : names.whole;
  const auto line = std::find_if(table.rbegin(), table.rend(), [&](const WeightName& each) { return each.params == tensor.params; });
  if (line == table.rend()) return std::nullopt;
  return tensor.layer >= 0 ? fmt::format("{}.{}.{}{}", names.layers, tensor.layer, line->tensor, tensor.ending)
                           : fmt::format("{}{}", line->tensor, tensor.ending);
}

bool is_unused_tensor(std::string_view name, const WeightNames& names) {
  const std::string_view plain = without_prefix(name, names);
  const NamePlace place = place_of_name(plain, names);
  if (names.used_layers > 0 && place.layer >= static_cast<std::int64_t>(names.used_layers)) return true;
  return std::any_of(names.unused.begin(), names.unused.end(),
                     [&](std::string_view part) { return is_name_part(plain, part) || is_name_part(place.rest, part); });
}

}  // namespace rlx
