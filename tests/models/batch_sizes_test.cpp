// How texts are cut into batches: against every way to cut them.
#include "models/run/batches/batch_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace rlx::test {
namespace {

using Sizes = std::vector<std::size_t>;

/// Of all runs.
std::size_t cost(const Sizes& lengths, const Sizes& sizes) {
  std::size_t total = 0, begin = 0;
  for (std::size_t size : sizes) total += cost_of_run(size * lengths[begin]), begin += size;
  return total;
}

/// The least cost of all ways to cut `lengths` from `begin` on.
std::size_t least(const Sizes& lengths, std::size_t begin, std::size_t most) {
  if (begin == lengths.size()) return 0;
  std::size_t best = SIZE_MAX;
  for (std::size_t size = 1; size <= std::min(most, lengths.size() - begin); ++size)
    best = std::min(best, cost_of_run(size * lengths[begin]) + least(lengths, begin + size, most));
  return best;
}

TEST(Batching, NothingCostsLess) {
  std::mt19937 random(1);
  for (std::size_t count = 1; count <= 12; ++count)
    for (std::size_t most : {1, 3, 12}) {
      Sizes lengths(count);
      for (std::size_t& length : lengths) length = 1 + random() % 60;
      std::sort(lengths.rbegin(), lengths.rend());
      const Sizes sizes = batch_sizes(lengths, most);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), count);
      EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), most);
      EXPECT_EQ(cost(lengths, sizes), least(lengths, 0, most));
    }
}

TEST(Batching, EqualLengthsFillBatches) { EXPECT_EQ(batch_sizes(Sizes(10, 20), 4).size(), 3u); }

TEST(Batching, OneLongTextRunsAlone) { EXPECT_EQ(batch_sizes(Sizes{500, 8, 8, 8}, 32), (Sizes{1, 3})); }

TEST(Batching, UnlikeLengthsRunApart) { EXPECT_EQ(batch_sizes(Sizes{128, 111}, 32), (Sizes{1, 1})); }

TEST(Batching, ShortTextsReadTheWeightsOnce) { EXPECT_EQ(batch_sizes(Sizes{12, 5, 2}, 32), (Sizes{3})); }

TEST(Batching, NoTexts) {
  EXPECT_TRUE(batch_sizes(Sizes{}, 4).empty());
  EXPECT_TRUE(even_sizes(0, 4).empty());
}

TEST(Batching, WithoutPaddingBatchesAreFewAndEven) {
  EXPECT_EQ(even_sizes(32, 32), (Sizes{32}));
  EXPECT_EQ(even_sizes(33, 32), (Sizes{17, 16}));
  EXPECT_EQ(even_sizes(8, 3), (Sizes{3, 3, 2}));
}

}  // namespace
}  // namespace rlx::test
