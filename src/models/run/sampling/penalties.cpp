#include "models/run/sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <unordered_map>
#include <vector>

namespace rlx::sampling {
namespace {

/// For each position the length of the longest prefix of `text` that begins there (the Z algorithm; Gusfield 1997).
std::vector<std::size_t> prefix_matches(std::span<const std::int32_t> text) {
  std::vector<std::size_t> matches(text.size(), 0);
  std::size_t begin = 0, end = 0;  // of the match that reaches furthest
  for (std::size_t i = 1; i < text.size(); ++i) {
    std::size_t length = i < end ? std::min(end - i, matches[i - begin]) : 0;
    while (i + length < text.size() && text[length] == text[i + length]) ++length;
    matches[i] = length;
    if (i + length > end) begin = i, end = i + length;
  }
  return matches;
}

}  // namespace

void penalize(std::span<const std::int32_t> recent, double repetition, double frequency, double presence, std::span<float> scores) {
  if (repetition == 1 && frequency == 0 && presence == 0) return;
  std::unordered_map<std::int32_t, int> counts;
  for (std::int32_t id : recent) ++counts[id];
  for (const auto& [id, count] : counts) {
    float& score = scores[static_cast<std::size_t>(id)];
    const double repeated = score > 0 ? score / repetition : score * repetition;
    score = static_cast<float>(repeated - count * frequency - presence);
  }
}

void penalize_repetition(std::span<const std::int32_t> recent, const Dry& dry, std::span<float> scores) {
  if (dry.multiplier == 0) return;
  const std::vector<std::int32_t> last_first(recent.rbegin(), recent.rend());
  const auto breaker = std::find_if(last_first.begin(), last_first.end(), [&](std::int32_t id) { return dry.breakers.contains(id); });
  const auto longest = static_cast<std::size_t>(breaker - last_first.begin());
  std::unordered_map<std::int32_t, std::size_t> lengths;  // of the repetition that a token would continue
  const std::vector<std::size_t> matches = prefix_matches(last_first);
  for (std::size_t i = 1; i < matches.size(); ++i) {
    const std::size_t length = std::min(matches[i], longest);
    if (length < static_cast<std::size_t>(dry.allowed_length) || length == 0 || dry.breakers.contains(last_first[i - 1])) continue;
    std::size_t& known = lengths[last_first[i - 1]];
    known = std::max(known, length);
  }
  for (const auto& [id, length] : lengths) {
    const double penalty = dry.multiplier * std::pow(dry.base, static_cast<double>(length) - static_cast<double>(dry.allowed_length));
    float& score = scores[static_cast<std::size_t>(id)];
    score = static_cast<float>(std::max(score - penalty, -static_cast<double>(std::numeric_limits<float>::max())));
  }
}

}  // namespace rlx::sampling
