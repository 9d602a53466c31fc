#include "roofline.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/thread_pool.h"

namespace rlx::command {
namespace {

constexpr double budget_seconds = 0.1;  // of each measurement

}  // namespace

double Roofline::seconds(const LaunchReport& launch) const {
  return std::max(launch.flops / flops.at(launch.arithmetic), launch.bytes / bytes);
}

bool Roofline::bound_by_memory(const LaunchReport& launch) const {
  return launch.bytes / bytes >= launch.flops / flops.at(launch.arithmetic);
}

Roofline measure_roofline(int threads, const std::vector<LaunchReport>& launches) {
  ThreadPool pool(threads);
  Roofline roofline;
  for (const LaunchReport& launch : launches) {
    double& rate = roofline.flops[launch.arithmetic];
    if (rate == 0) rate = cpu::compute_peak(pool, launch.arithmetic, budget_seconds);
  }
  roofline.bytes = cpu::read_bandwidth(pool, cpu::bytes_beyond_caches(threads), budget_seconds);
  return roofline;
}

}  // namespace rlx::command
