#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "rlx/session.h"

// What the benchmarks that answer a script line by line share: the script times its peers in the same way, by timed.py.

namespace rlx::bench {

/// Of two threads, as the peers have, and without a cache.
inline Session peers_session(const Device& device = Device::cpu()) {
  SessionOptions options;
  options.threads = 2;
  options.cache_folder = "";
  return Session(device, options);
}

/// Seconds of each run in increasing order: of as many as fit into `seconds`, three at least.
inline std::vector<double> timed(const std::function<void()>& run, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<double> times;
  for (const auto begin = Clock::now(); times.size() < 3 || since(begin) < seconds;) {
    const auto start = Clock::now();
    run();
    times.push_back(since(start));
  }
  std::ranges::sort(times);
  return times;
}

}  // namespace rlx::bench
