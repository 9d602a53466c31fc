#include "roofline.h"

#include <algorithm>
#include <cstdint>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/fma_peak.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/thread_pool.h"

namespace rlx::command {
namespace {

constexpr double budget_seconds = 0.1;  // of each of the two measurements
constexpr std::int64_t words_at_once = 32;

/// Sums whole vectors of 64 bytes, several at a time so that many lines are under way.
std::uint64_t sum_of(const std::uint64_t* words, std::int64_t count) {
  typedef std::uint64_t Vector __attribute__((vector_size(64)));
  Vector sums[words_at_once / 8] = {};
  for (std::int64_t i = 0; i + words_at_once <= count; i += words_at_once) {
    const auto* vectors = reinterpret_cast<const Vector*>(words + i);
#pragma GCC unroll 4
    for (int v = 0; v < words_at_once / 8; ++v) sums[v] += vectors[v];
  }
  std::uint64_t total = 0;
  for (const Vector& sum : sums) total += sum[0];
  return total;
}

double read_bandwidth(ThreadPool& pool) {
  // Far more than the last cache holds, where that can be had.
  const std::int64_t bytes = std::clamp<std::int64_t>(4 * cpu::cpu_features().l3_bytes, 64 << 20, 256 << 20);
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(std::uint64_t));
  const cpu::AlignedBuffer buffer(static_cast<std::size_t>(bytes));
  auto* words = reinterpret_cast<std::uint64_t*>(buffer.data());
  std::fill_n(words, count, std::uint64_t{1});  // pages that were never written share one of zeros
  const double seconds = cpu::fastest_seconds(budget_seconds, [&] {
    pool.parallel_for(count, words_at_once, [&](std::int64_t begin, std::int64_t end, int) {
      volatile std::uint64_t sink = sum_of(words + begin, end - begin);
      (void)sink;
    });
  });
  return static_cast<double>(bytes) / seconds;
}

}  // namespace

double Roofline::seconds(double work_flops, double work_bytes) const { return std::max(work_flops / flops, work_bytes / bytes); }

bool Roofline::bound_by_memory(double work_flops, double work_bytes) const { return work_bytes / bytes >= work_flops / flops; }

Roofline measure_roofline(int threads) {
  ThreadPool pool(threads);
  return {cpu::fma_peak(pool, cpu::cpu_level(), budget_seconds), read_bandwidth(pool)};
}

}  // namespace rlx::command
