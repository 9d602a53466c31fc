#pragma once
#include <algorithm>
#include <chrono>

namespace rlx {

/// Seconds of the fastest of the calls of `work` that fit into `budget` seconds (at least three): on a machine that others use too, the
/// fastest is what the code can do.
template <class Work>
double fastest_seconds(double budget, Work work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30, total = 0;
  for (int calls = 0; calls < 3 || total < budget; ++calls) {
    const auto begin = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

}  // namespace rlx
