#pragma once
#include <cstdint>
#include <span>
#include <unordered_set>

namespace rlx::sampling {

/// Lowers the scores of tokens that `recent` holds: divided by `repetition` if positive, else multiplied (Keskar et al., "CTRL", 2019);
/// then less `frequency` for every occurrence and `presence` once.
void penalize(std::span<const std::int32_t> recent, double repetition, double frequency, double presence, std::span<float> scores);

struct Dry {
  double multiplier = 0, base = 1.75;
  std::int64_t allowed_length = 2;
  std::unordered_set<std::int32_t> breakers;  ///< repetitions do not go across these tokens
};

/// "Don't repeat yourself": a token that would make a repetition of the last n tokens longer, n >= allowed_length, loses
/// multiplier * base^(n - allowed_length).
void penalize_repetition(std::span<const std::int32_t> recent, const Dry& dry, std::span<float> scores);

}  // namespace rlx::sampling
