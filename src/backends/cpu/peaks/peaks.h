#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "backends/cpu/machine/cpu_features.h"
#include "backends/cpu/peaks/loops.h"
#include "base/thread_pool.h"

// What the machine can do at best, measured: the limits that other figures are shares of. All threads of the pool work at a time, and
// rates are of all of them together. Each figure takes about `budget` seconds.

namespace rlx::cpu {

/// What kernels of `level` may compute with on this CPU; the first is f32.
std::vector<ComputeLoop> compute_loops(CpuLevel level);

/// Operations per second, a multiply-add being two, from registers only.
double compute_peak(ThreadPool& pool, const ComputeLoop& loop, double budget);

/// The same of the fastest loop of this level over such operands, "f32", "f64", "bf16" or "int8": the first word of its arithmetic. 0 where
/// there is none.
double compute_peak(ThreadPool& pool, std::string_view operands, double budget);

/// Bytes per second that threads read, each from `bytes_each` of its own, which decides on the cache that they come from. Throws
/// std::bad_alloc.
double read_bandwidth(ThreadPool& pool, std::size_t bytes_each, double budget);

/// The same for a copy, the bytes read and those written counted together; half of `bytes_each` is the source.
double copy_bandwidth(ThreadPool& pool, std::size_t bytes_each, double budget);

/// Bytes for each thread such that their reads come from memory.
std::size_t bytes_beyond_caches(int threads);

/// Seconds that a parallel loop with nothing to do takes (the median), when its caller worked alone for `pause` seconds before: workers
/// that spin answer at once, those that sleep are woken.
double region_seconds(ThreadPool& pool, double pause, double budget);

}  // namespace rlx::cpu
