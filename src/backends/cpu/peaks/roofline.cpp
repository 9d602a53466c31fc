#include "backends/cpu/peaks/roofline.h"

#include <algorithm>
#include <set>

#include "backends/cpu/peaks/peaks.h"
#include "base/thread_pool.h"

namespace rlx::cpu {
namespace {

constexpr double budget_seconds = 0.1;  // of each measurement

}  // namespace

double Roofline::computing(const LaunchReport& launch) const {
  const auto rate = flops.find(launch.arithmetic);
  return rate == flops.end() ? 0 : launch.flops / rate->second;
}

double Roofline::seconds(const LaunchReport& launch) const { return std::max(computing(launch), launch.bytes / bytes); }

bool Roofline::bound_by_memory(const LaunchReport& launch) const { return launch.bytes / bytes >= computing(launch); }

double Roofline::percent_reached(const LaunchReport& launch) const {
  return launch.seconds > 0 ? 100 * seconds(launch) / launch.seconds : 0;
}

Roofline measure_roofline(int threads, const std::vector<LaunchReport>& launches) {
  ThreadPool pool(threads);
  Roofline roofline;
  std::set<std::string> arithmetics;
  for (const LaunchReport& launch : launches) arithmetics.insert(launch.arithmetic);
  for (const std::string& arithmetic : arithmetics)
    if (const double rate = compute_peak(pool, arithmetic, budget_seconds); rate > 0) roofline.flops[arithmetic] = rate;
  roofline.bytes = read_bandwidth(pool, bytes_beyond_caches(threads), budget_seconds);
  return roofline;
}

}  // namespace rlx::cpu
