#include "models/config/rope_factors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace rlx {

std::vector<float> llama3_factors(const RopeOptions& rope) {
  const double longest = rope.original_length / rope.low_freq_factor, shortest = rope.original_length / rope.high_freq_factor;
  std::vector<float> factors;
  for (std::int64_t i = 0; i < rope.dims / 2; ++i) {
    const double length = 2 * std::numbers::pi * std::pow(rope.theta, 2.0 * static_cast<double>(i) / static_cast<double>(rope.dims));
    const double smooth = (rope.original_length / length - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
    const double factor = length < shortest ? 1 : length > longest ? rope.factor : 1 / ((1 - smooth) / rope.factor + smooth);
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

bool nearly_equal(double a, double b) {
  constexpr double f32_rounding = 1e-5;  // what follows from metadata is off by a few roundings
  return std::abs(a - b) <= f32_rounding * std::max(std::abs(a), std::abs(b));
}

bool nearly(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), nearly_equal);
}

}  // namespace rlx
