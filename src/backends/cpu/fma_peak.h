#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "backends/cpu/cpu_features.h"
#include "base/thread_pool.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace rlx::cpu {

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

constexpr int fma_chains = 16;  // hides a latency of up to 8 cycles on two units
constexpr std::int64_t fma_steps = 50'000;

/// Each does fma_chains * fma_steps vector multiply-adds in registers and returns their sum.
#ifdef __x86_64__
__attribute__((target("avx512f"))) inline float fma_avx512() {
  const __m512 scale = _mm512_set1_ps(0.5f), offset = _mm512_set1_ps(1.0f);
  __m512 sums[fma_chains];
  for (__m512& sum : sums) sum = offset;
  for (std::int64_t i = 0; i < fma_steps; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, scale, offset);
  }
  float total = 0;
  for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx2,fma"))) inline float fma_avx2() {
  constexpr int chains = 12;  // as many as fit into 16 registers beside the constants
  const __m256 scale = _mm256_set1_ps(0.5f), offset = _mm256_set1_ps(1.0f);
  __m256 sums[chains];
  for (__m256& sum : sums) sum = offset;
  for (std::int64_t i = 0; i < fma_steps * fma_chains / chains; ++i) {
#pragma GCC unroll 16
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, scale, offset);
  }
  float total = 0;
  for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}
#endif

inline float fma_portable() {
  typedef float Vector __attribute__((vector_size(16)));
  constexpr int chains = 8;
  const Vector scale = Vector{} + 0.5f, offset = Vector{} + 1.0f;
  Vector sums[chains];
  for (Vector& sum : sums) sum = offset;
  for (std::int64_t i = 0; i < fma_steps * fma_chains / chains; ++i) {
#pragma GCC unroll 16
    for (Vector& sum : sums) sum = sum * scale + offset;
  }
  float total = 0;
  for (const Vector& sum : sums) total += sum[0];
  return total;
}

/// The f32 multiply-add rate of all threads of the pool together, in FLOP/s, from registers only.
inline double fma_peak(ThreadPool& pool, CpuLevel level, double budget_seconds) {
  float (*kernel)() = fma_portable;
  int lanes = 4;
#ifdef __x86_64__
  if (level == CpuLevel::avx2) kernel = fma_avx2, lanes = 8;
  if (level == CpuLevel::avx512) kernel = fma_avx512, lanes = 16;
#endif
  const double seconds = fastest_seconds(budget_seconds, [&] {
    pool.parallel_for(pool.size(), 1, [&](std::int64_t, std::int64_t, int) {
      volatile float sink = kernel();
      (void)sink;
    });
  });
  return 2.0 * lanes * fma_chains * static_cast<double>(fma_steps) * pool.size() / seconds;
}

}  // namespace rlx::cpu
