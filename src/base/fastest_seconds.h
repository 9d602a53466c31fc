#pragma once
#include <algorithm>
#include <chrono>
#include <vector>

namespace rlx {

/// Seconds of each of the calls of `work` that fit into `budget` seconds, in order, at least three.
template <class Work>
std::vector<double> seconds_of_calls(double budget, Work work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> all;
  for (double total = 0; all.size() < 3 || total < budget; total += all.back()) {
    const auto begin = Clock::now();
    work();
    all.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return all;
}

/// The least of them: on a machine that others use too, the fastest is what the code can do.
template <class Work>
double fastest_seconds(double budget, Work work) {
  const std::vector<double> all = seconds_of_calls(budget, work);
  return *std::min_element(all.begin(), all.end());
}

/// The element that half of the others are not above. Expects one.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace rlx
