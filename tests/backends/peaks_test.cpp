#include "backends/cpu/peaks/peaks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "backends/cpu/gemm/aligned_buffer.h"

namespace rlx::cpu {
namespace {

std::vector<const MemoryLoops*> machine_loops() {
  std::vector<const MemoryLoops*> tables{&portable_memory_loops};
#ifdef __x86_64__
  const CpuLevel best = best_level(cpu_features());
  if (best >= CpuLevel::avx2) tables.push_back(&avx2_memory_loops);
  if (best >= CpuLevel::avx512) tables.push_back(&avx512_memory_loops);
#endif
  return tables;
}

constexpr std::int64_t rounds = 3, steps = 5;

/// The streams one behind the other, and line by line in turn: both cover `steps` lines of each stream, `rounds` times.
std::vector<Lines> both_orders(int streams) {
  return {{rounds, steps, line_bytes, steps * line_bytes}, {rounds, steps, streams * line_bytes, line_bytes}};
}

TEST(Peaks, ReadLoopsReadEveryWordOnceARound) {
  for (const MemoryLoops* loops : machine_loops()) {
    for (const MemoryLoop& loop : *loops) {
      const std::size_t count = static_cast<std::size_t>(steps * loop.streams * line_bytes) / sizeof(std::uint64_t);
      const AlignedBuffer buffer(count * sizeof(std::uint64_t));
      std::vector<std::uint64_t> words(count);
      for (std::size_t i = 0; i < count; ++i) words[i] = i * i * 0x9e3779b97f4a7c15u;  // no other choice of words has the same sum
      std::memcpy(buffer.data(), words.data(), count * sizeof(std::uint64_t));
      for (const Lines& lines : both_orders(loop.streams)) {
        EXPECT_EQ(loop.read(buffer.data(), lines), rounds * std::accumulate(words.begin(), words.end(), std::uint64_t{0}));
      }
    }
  }
}

TEST(Peaks, CopyLoopsCopyEveryByte) {
  for (const MemoryLoops* loops : machine_loops()) {
    for (const MemoryLoop& loop : *loops) {
      const auto bytes = static_cast<std::size_t>(steps * loop.streams * line_bytes);
      const AlignedBuffer from(bytes), to(bytes);
      for (std::size_t i = 0; i < bytes; ++i) from.data()[i] = static_cast<std::byte>(i * 7 + i / 256);
      for (const Lines& lines : both_orders(loop.streams)) {
        for (const auto copy : {loop.copy, loop.copy_past}) {
          std::memset(to.data(), 0, bytes);
          copy(to.data(), from.data(), lines);
          EXPECT_EQ(std::memcmp(to.data(), from.data(), bytes), 0);
        }
      }
    }
  }
}

TEST(Peaks, EveryLevelComputesInF32First) {
  for (CpuLevel level = CpuLevel::portable; level <= best_level(cpu_features());
       level = static_cast<CpuLevel>(static_cast<int>(level) + 1)) {
    EXPECT_EQ(compute_loops(level).front().arithmetic, "f32");
  }
}

TEST(Peaks, ComputeLoopsAreOfDifferentArithmeticAndRun) {
  ThreadPool pool(2);
  std::set<std::string_view> seen;
  for (const ComputeLoop& loop : compute_loops(cpu_level())) {
    EXPECT_TRUE(seen.insert(loop.arithmetic).second) << loop.arithmetic;
    EXPECT_GT(compute_peak(pool, loop, 1e-3), 1e6) << loop.arithmetic;  // a machine of a million operations/s would be of the 1970s
  }
}

TEST(Peaks, OperandsHaveThePeakOfTheirFastestLoop) {
  ThreadPool pool(1);
  std::set<std::string_view> operands;
  for (const ComputeLoop& loop : compute_loops(cpu_level())) operands.insert(loop.arithmetic.substr(0, loop.arithmetic.find(' ')));
  for (std::string_view name : {"f32", "f64", "bf16", "int8"}) {
    EXPECT_EQ(compute_peak(pool, name, 1e-3) > 1e6, operands.contains(name)) << name;
  }
  EXPECT_EQ(compute_peak(pool, "bf16 dot", 1e-3), 0);  // a loop, no operands
}

TEST(Peaks, DotsOfNarrowElementsCountAllTheirProducts) {
  const std::vector<ComputeLoop> loops = compute_loops(cpu_level());
  for (const ComputeLoop& loop : loops) {
    if (loop.arithmetic == "bf16 dot") {
      EXPECT_EQ(loop.operations_per_step, 2 * loops.front().operations_per_step);
    }
    if (loop.arithmetic == "int8 dot") {
      EXPECT_EQ(loop.operations_per_step, 4 * loops.front().operations_per_step);
    }
  }
}

}  // namespace
}  // namespace rlx::cpu
