// The arena plan: no two blocks that live at the same time overlap, and it is not much larger than what lives at once.
#include "lowering/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rlx {
namespace {

std::int64_t rounded(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// The most bytes that live at one step: no plan can be smaller. Blocks that pass their memory on count once where they meet.
std::int64_t peak(const std::vector<Lifetime>& blocks) {
  int last = 0;
  for (const Lifetime& b : blocks) last = std::max(last, b.last);
  std::int64_t most = 0;
  for (int step = 0; step <= last; ++step) {
    std::int64_t live = 0;
    for (const Lifetime& b : blocks)
      if (b.first <= step && step <= b.last) live += rounded(b.bytes);
    most = std::max(most, live);
  }
  return most;
}

void expect_no_overlap(const std::vector<Lifetime>& blocks, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + blocks[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      const bool handed_on = blocks[i].in_place_of == static_cast<int>(j) && blocks[i].first == blocks[j].last;
      if (!together || handed_on) continue;
      const bool apart = plan.offsets[i] + blocks[i].bytes <= plan.offsets[j] || plan.offsets[j] + blocks[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart) << "blocks " << j << " and " << i;
    }
  }
}

std::vector<Lifetime> random_blocks(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Lifetime> blocks;
  const int count = 1 + static_cast<int>(random() % 40);
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % 30);
    blocks.push_back({static_cast<std::int64_t>(random() % 5000), first, first + static_cast<int>(random() % 8), -1});
  }
  return blocks;
}

TEST(Plan, BlocksThatLiveTogetherDoNotOverlap) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const auto blocks = random_blocks(seed);
    const MemoryPlan plan = plan_memory(blocks);
    expect_no_overlap(blocks, plan);
    EXPECT_GE(plan.bytes, peak(blocks));
  }
}

TEST(Plan, NoBlockLiesInTwoPieces) {
  constexpr std::int64_t piece = 5056;  // the largest block, rounded up
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const auto blocks = random_blocks(seed);
    const MemoryPlan plan = plan_memory(blocks, piece);
    expect_no_overlap(blocks, plan);
    ASSERT_GE(std::ssize(plan.chunks), (plan.bytes + piece - 1) / piece);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].bytes == 0) continue;
      const auto chunk = static_cast<std::size_t>(plan.offsets[i] / piece);
      EXPECT_LE(plan.offsets[i] % piece + blocks[i].bytes, plan.chunks.at(chunk));
    }
    for (const std::int64_t bytes : plan.chunks) EXPECT_LE(bytes, piece);
  }
}

TEST(Plan, ABlockThatIsLargerBeginsAPiece) {
  const MemoryPlan plan = plan_memory({{64, 0, 1, -1}, {1000, 0, 1, -1}, {64, 0, 1, -1}}, 128);
  EXPECT_EQ(plan.offsets[1], 0);
  EXPECT_EQ(plan.chunks[0], 1024);
  EXPECT_EQ(plan.offsets[0] % 128 + plan.offsets[2] % 128, 64);
}

TEST(Plan, StaysCloseToThePeak) {
  double used = 0, needed = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto blocks = random_blocks(seed);
    used += static_cast<double>(plan_memory(blocks).bytes);
    needed += static_cast<double>(peak(blocks));
  }
  EXPECT_LT(used, 1.25 * needed);  // packing by size is within a quarter of the peak on such intervals; one block after another is far off
}

TEST(Plan, ChainNeedsTwoBlocks) {
  std::vector<Lifetime> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back({1000, i, i + 1, -1});
  EXPECT_EQ(plan_memory(blocks).bytes, 2 * 1024);
}

TEST(Plan, InPlaceChainNeedsOne) {
  std::vector<Lifetime> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back({1000, i, i + 1, i - 1});
  const MemoryPlan plan = plan_memory(blocks);
  EXPECT_EQ(plan.bytes, 1024);
  expect_no_overlap(blocks, plan);
}

TEST(Plan, OthersKeepAwayFromTheWholeChain) {
  const std::vector<Lifetime> blocks{{100, 0, 2, -1}, {100, 2, 5, 0}, {100, 1, 3, -1}, {100, 4, 6, -1}};
  const MemoryPlan plan = plan_memory(blocks);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.bytes, 256);
  expect_no_overlap(blocks, plan);
}

TEST(Plan, NothingNeedsNothing) {
  EXPECT_EQ(plan_memory({}).bytes, 0);
  EXPECT_EQ(plan_memory({{0, 0, 3, -1}}).bytes, 0);
}

}  // namespace
}  // namespace rlx
