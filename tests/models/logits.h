#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Tokens for the models of the fixtures, and how far apart the logits behind them are.

namespace rlx::test {

using Ids = std::vector<std::int32_t>;

/// Part of one sequence without an end, from its place `first` on.
inline Ids some_ids(std::size_t length, std::size_t first = 0) {
  Ids ids;
  for (std::size_t i = first; i < first + length; ++i) ids.push_back(static_cast<std::int32_t>((i * 37 + i * i * 11 + 5) % 120));
  return ids;
}

/// Infinite where there are not as many of both.
inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

}  // namespace rlx::test
