#include "roofline.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/thread_pool.h"

namespace rlx::command {
namespace {

constexpr double budget_seconds = 0.1;  // of each of the two measurements

}  // namespace

double Roofline::seconds(double work_flops, double work_bytes) const { return std::max(work_flops / flops, work_bytes / bytes); }

bool Roofline::bound_by_memory(double work_flops, double work_bytes) const { return work_bytes / bytes >= work_flops / flops; }

Roofline measure_roofline(int threads) {
  ThreadPool pool(threads);
  return {cpu::compute_peak(pool, cpu::compute_loops(cpu::cpu_level()).front(), budget_seconds),
          cpu::read_bandwidth(pool, cpu::bytes_beyond_caches(threads), budget_seconds)};
}

}  // namespace rlx::command
