#include "backends/cpu/peaks/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "base/fastest_seconds.h"

namespace rlx::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

const MemoryLoops& memory_loops(CpuLevel level) {
#ifdef __x86_64__
  if (level >= CpuLevel::avx512) return avx512_memory_loops;
  if (level == CpuLevel::avx2) return avx2_memory_loops;
#endif
  (void)level;
  return portable_memory_loops;
}

/// One buffer for each thread, written by that thread first: a page lies where it is first written, and those that never were share one
/// of zeros.
std::vector<AlignedBuffer> thread_buffers(ThreadPool& pool, std::size_t bytes) {
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < pool.size(); ++i) buffers.emplace_back(bytes);
  pool.parallel_for(pool.size(), 1,
                    [&](std::int64_t i, std::int64_t, int) { std::memset(buffers[static_cast<std::size_t>(i)].data(), 1, bytes); });
  return buffers;
}

/// The lines of `bytes` as `streams`, side by side where a cache holds them, far apart where prefetchers must follow them; so often that it
/// takes a few hundred microseconds at least.
CacheLines spread(std::size_t bytes, int streams) {
  const std::int64_t size = static_cast<std::int64_t>(bytes), each = size / line_bytes / streams;
  const std::int64_t rounds = std::max<std::int64_t>(1, (8 << 20) / size);
  if (size <= cpu_features().l2_bytes) return {rounds, each, streams * line_bytes, line_bytes};
  const std::int64_t odd = each - (each % 2 == 0);  // streams a power of two apart would fight for one set of the cache
  return {rounds, odd, line_bytes, odd * line_bytes};
}

double bytes_of(const CacheLines& lines, int streams) { return static_cast<double>(lines.rounds * lines.steps * streams * line_bytes); }

/// The best rate, over all numbers of streams, of `pass`, which goes over the lines of a thread's buffer; `bytes_each` of it.
template <class Pass>
double bandwidth(ThreadPool& pool, std::size_t bytes_each, std::size_t buffer_bytes, double budget, Pass pass) {
  const std::vector<AlignedBuffer> buffers = thread_buffers(pool, buffer_bytes);
  const MemoryLoops& loops = memory_loops(cpu_level());
  double best = 0;
  for (const MemoryLoop& loop : loops) {
    const CacheLines lines = spread(bytes_each, loop.streams);
    const double seconds = fastest_seconds(budget / static_cast<double>(loops.size()), [&] {
      pool.parallel_for(pool.size(), 1,
                        [&](std::int64_t i, std::int64_t, int) { pass(loop, buffers[static_cast<std::size_t>(i)].data(), lines); });
    });
    best = std::max(best, bytes_of(lines, loop.streams) * pool.size() / seconds);
  }
  return best;
}

}  // namespace

std::vector<ComputeLoop> compute_loops(CpuLevel level) {
  [[maybe_unused]] const CpuFeatures& features = cpu_features();
#ifdef __x86_64__
  if (level == CpuLevel::avx2) return {avx2_f32_loop, avx2_f64_loop};
  if (level >= CpuLevel::avx512) {
    std::vector<ComputeLoop> loops{avx512_f32_loop, avx512_f64_loop};
    if (features.avx512_bf16) loops.push_back(bf16_dot_loop);
    if (features.avx512_vnni) loops.push_back(int8_dot_loop);
    if (level == CpuLevel::amx) loops.insert(loops.end(), {bf16_tile_loop, int8_tile_loop});
    return loops;
  }
#elif defined(__aarch64__)
  if (level == CpuLevel::neon) {
    std::vector<ComputeLoop> loops{neon_f32_loop, neon_f64_loop};
    if (features.neon_bf16) loops.push_back(neon_bf16_loop);
    if (features.neon_dot) loops.push_back(neon_int8_loop);
    return loops;
  }
#endif
  (void)level;
  return {portable_f32_loop, portable_f64_loop};
}

double compute_peak(ThreadPool& pool, const ComputeLoop& loop, double budget) {
  constexpr std::int64_t steps = 50'000;
  const double seconds = fastest_seconds(budget, [&] {
    pool.parallel_for(pool.size(), 1, [&](std::int64_t, std::int64_t, int) {
      volatile double sink = loop.run(steps);
      (void)sink;
    });
  });
  return loop.operations_per_step * static_cast<double>(steps) * pool.size() / seconds;
}

double compute_peak(ThreadPool& pool, std::string_view operands, double budget) {
  double best = 0;
  for (const ComputeLoop& loop : compute_loops(cpu_level())) {
    if (loop.arithmetic.substr(0, loop.arithmetic.find(' ')) == operands) best = std::max(best, compute_peak(pool, loop, budget));
  }
  return best;
}

double read_bandwidth(ThreadPool& pool, std::size_t bytes_each, double budget) {
  return bandwidth(pool, bytes_each, bytes_each, budget, [](const MemoryLoop& loop, std::byte* data, const CacheLines& lines) {
    volatile std::uint64_t sink = loop.read(data, lines);
    (void)sink;
  });
}

double copy_bandwidth(ThreadPool& pool, std::size_t bytes_each, double budget) {
  const std::size_t half = bytes_each / 2 / line_bytes * line_bytes;
  const auto rate = [&](bool past) {
    return 2 * bandwidth(pool, half, 2 * half, budget / 2, [&](const MemoryLoop& loop, std::byte* data, const CacheLines& lines) {
             (past ? loop.copy_past : loop.copy)(data + half, data, lines);
           });
  };
  return std::max(rate(false), rate(true));
}

std::size_t bytes_beyond_caches(int threads) {
  const std::int64_t all = std::clamp<std::int64_t>(8 * cpu_features().l3_bytes, 64 << 20, 512 << 20);
  return static_cast<std::size_t>(all / threads / line_bytes * line_bytes);
}

double region_seconds(ThreadPool& pool, double pause, double budget) {
  std::vector<double> times;
  for (const auto begin = Clock::now(); seconds_since(begin) < budget || times.empty();) {
    const auto paused = Clock::now();
    while (seconds_since(paused) < pause) continue;
    const auto started = Clock::now();
    pool.parallel_for(pool.size(), 1, [](std::int64_t, std::int64_t, int) {});
    times.push_back(seconds_since(started));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace rlx::cpu
