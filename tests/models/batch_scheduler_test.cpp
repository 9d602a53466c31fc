// How the tokens of many sequences are cut into runs.
#include "models/run/batches/batch_scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace rlx {
namespace {

using Pieces = std::vector<BatchPiece>;

Pieces some_pieces(std::mt19937& random, std::size_t count) {
  Pieces pieces;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int64_t>(random() % 50);
    pieces.push_back({static_cast<std::int64_t>(i) * 3, begin, begin + 1 + static_cast<std::int64_t>(random() % 40), i});
  }
  return pieces;
}

/// Each sequence's tokens run once, in order, `chunk` of all at a time, and the last piece of each says so.
void expect_all_run(const Pieces& all, std::int64_t chunk, const auto& next, const auto& check) {
  std::map<std::int64_t, std::int64_t> done;
  std::size_t lasts = 0;
  for (const BatchPiece& piece : all) done[piece.sequence] = piece.begin;
  for (Pieces waiting = all; !waiting.empty();) {
    const Pieces run = next(waiting);
    ASSERT_FALSE(run.empty());
    std::int64_t tokens = 0;
    for (const BatchPiece& piece : run) {
      EXPECT_EQ(piece.begin, done[piece.sequence]);
      EXPECT_GT(piece.end, piece.begin);
      EXPECT_EQ(all[piece.result].sequence, piece.sequence);
      EXPECT_EQ(piece.last, piece.end == all[piece.result].end);
      done[piece.sequence] = piece.end;
      tokens += piece.end - piece.begin;
      lasts += piece.last ? 1 : 0;
    }
    EXPECT_LE(tokens, chunk);
    check(run, tokens, waiting.empty());
  }
  EXPECT_EQ(lasts, all.size());
  for (const BatchPiece& piece : all) EXPECT_EQ(done[piece.sequence], piece.end);
}

TEST(BatchRuns, AreFullButForTheLast) {
  std::mt19937 random(1);
  for (const std::int64_t chunk : {1, 7, 64, 1000})
    expect_all_run(
        some_pieces(random, 9), chunk, [&](Pieces& waiting) { return next_run(waiting, chunk); },
        [&](const Pieces&, std::int64_t tokens, bool last) { EXPECT_TRUE(last || tokens == chunk); });
}

TEST(BatchRuns, AreEvenWhereTheyAreToBe) {
  std::mt19937 random(2);
  for (const std::int64_t chunk : {1, 7, 64, 1000})
    for (const std::int64_t most : {1, 4, 100})
      expect_all_run(
          some_pieces(random, 9), chunk, [&](Pieces& waiting) { return next_even_run(waiting, chunk, most, chunk); },
          [&](const Pieces& run, std::int64_t tokens, bool) {
            EXPECT_LE(static_cast<std::int64_t>(run.size()), most);
            for (const BatchPiece& piece : run) EXPECT_EQ((piece.end - piece.begin) * static_cast<std::int64_t>(run.size()), tokens);
          });
}

// One that joins with a prompt while others go on token by token: they run together once, then the prompt runs alone.
TEST(BatchRuns, AreAsManyAsThereAreUnlikeLengths) {
  Pieces waiting{{0, 10, 11, 0}, {1, 90, 91, 1}, {2, 0, 300, 2}, {3, 5, 6, 3}};
  EXPECT_EQ(next_even_run(waiting, 512, 64, 512).size(), 4U);
  EXPECT_EQ(next_even_run(waiting, 512, 64, 512).size(), 1U);
  EXPECT_TRUE(waiting.empty());
}

}  // namespace
}  // namespace rlx
