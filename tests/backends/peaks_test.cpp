#include "backends/cpu/peaks/peaks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/tile_trap.h"

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
std::vector<CacheLines> both_orders(int streams) {
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
      for (const CacheLines& lines : both_orders(loop.streams)) {
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
      for (const CacheLines& lines : both_orders(loop.streams)) {
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
  for (CpuLevel level : allowed_levels(cpu_features())) EXPECT_EQ(compute_loops(level).front().arithmetic, "f32");
}

TEST(Peaks, ComputeLoopsAreOfDifferentArithmeticAndRun) {
  ThreadPool pool(2);
  std::set<std::string_view> seen;
  const std::vector<ComputeLoop> loops = compute_loops(cpu_level());
  const double f32_peak = compute_peak(pool, loops.front(), 1e-2);
  // f64 does half of what f32 does, tiles of bytes up to 32 times as much; and a factor of 10 for what else runs on the machine.
  for (const ComputeLoop& loop : loops) {
    EXPECT_TRUE(seen.insert(loop.arithmetic).second) << loop.arithmetic;
    const double ratio = compute_peak(pool, loop, 1e-2) / f32_peak;
    EXPECT_GT(ratio, 0.5 / 10) << loop.arithmetic;
    EXPECT_LT(ratio, 32 * 10) << loop.arithmetic;
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

/// Operations of a step of the best level's loop of this arithmetic, by those of f32's; 0 where there is none.
double operations_by_f32(std::string_view arithmetic) {
  const std::vector<ComputeLoop> loops = compute_loops(best_level(cpu_features()));
  const auto loop = std::find_if(loops.begin(), loops.end(), [&](const ComputeLoop& l) { return l.arithmetic == arithmetic; });
  return loop == loops.end() ? 0 : loop->operations_per_step / loops.front().operations_per_step;
}

TEST(Peaks, DotsOfBf16CountBothTheirProducts) {
  if (!cpu_features().avx512_bf16 && !cpu_features().neon_bf16) GTEST_SKIP() << "needs a CPU with AVX512-BF16, or with BF16 of ARM";
  EXPECT_EQ(operations_by_f32("bf16 dot"), 2);
}

TEST(Peaks, DotsOfBytesCountAllFourProducts) {
  if (!cpu_features().avx512_vnni && !cpu_features().neon_dot) GTEST_SKIP() << "needs a CPU with AVX512-VNNI, or with DotProd of ARM";
  EXPECT_EQ(operations_by_f32("int8 dot"), 4);
}

#if defined(__x86_64__) && defined(__linux__)
TEST(Peaks, TilesAreOfLevelAmxAlone) {
  for (const ComputeLoop& loop : compute_loops(CpuLevel::avx512)) EXPECT_EQ(loop.arithmetic.find("tile"), std::string_view::npos);
  std::set<std::string_view> seen;
  for (const ComputeLoop& loop : compute_loops(CpuLevel::amx)) seen.insert(loop.arithmetic);
  EXPECT_TRUE(seen.contains("bf16 tile") && seen.contains("int8 tile"));
}

TEST(Peaks, TilesCountTheProductsThatTheyRun) {
  if (cpu_features().amx_tile) GTEST_SKIP() << "this CPU has AMX, so its instructions cannot be counted";
  const test::TileTrap trap;
  for (const auto& [loop, depth] : {std::pair{bf16_tile_loop, 32}, std::pair{int8_tile_loop, 64}}) {
    const std::int64_t begin = trap.instructions();
    loop.run(1);
    const std::int64_t once = trap.instructions();
    loop.run(3);
    const std::int64_t products = (trap.instructions() - once - (once - begin)) / 2;  // of one step
    EXPECT_EQ(loop.operations_per_step, 2.0 * 16 * 16 * depth * static_cast<double>(products)) << loop.arithmetic;
  }
  EXPECT_FALSE(test::ModelTiles::registers().configured());
}
#endif

}  // namespace
}  // namespace rlx::cpu
