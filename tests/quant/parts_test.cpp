// Codes, scales and minima of blocks give the very values that decoding gives.
#include "quant/block_parts.h"

#include <set>

#include "backends/block_cases.h"

namespace rlx::test {
namespace {

/// Where numbers have two levels, their product is they.
void expect_product(const BlockParts::Levels& levels, const std::byte* block, const std::vector<float>& numbers) {
  if (!levels.factors) return;
  std::vector<std::int8_t> factors(numbers.size());
  float unit = 0;
  levels.factors(block, factors.data());
  levels.unit(block, &unit);
  for (std::size_t g = 0; g < numbers.size(); ++g) ASSERT_EQ(unit * static_cast<float>(factors[g]), numbers[g]) << "group " << g;
}

void expect_same_values(const BlockFormat& format) {
  SCOPED_TRACE(format.name);
  const BlockParts* const parts = find_block_parts(format.name);
  ASSERT_NE(parts, nullptr);
  const std::int64_t count = 64 * format.values;
  const std::vector<std::byte> blocks = random_blocks(format, 64, format.values);
  std::vector<float> wanted(static_cast<std::size_t>(count));
  format.decode(blocks.data(), wanted.data(), count);
  std::set<std::int8_t> seen;
  std::vector<std::int8_t> codes(static_cast<std::size_t>(format.values));
  std::vector<float> scales(static_cast<std::size_t>(format.values / parts->group)), minima(scales.size());
  for (std::int64_t i = 0; i < count; i += format.values) {
    const std::byte* const block = blocks.data() + i / format.values * format.bytes;
    parts->codes(block, codes.data());
    seen.insert(codes.begin(), codes.end());
    parts->scales(block, scales.data());
    if (parts->minima) parts->minima(block, minima.data());
    expect_product(parts->scale_levels, block, scales);
    expect_product(parts->minimum_levels, block, minima);
    for (std::size_t j = 0; j < codes.size(); ++j) {
      const std::size_t g = j / static_cast<std::size_t>(parts->group);
      ASSERT_GE(codes[j], parts->lowest);
      ASSERT_LE(codes[j], parts->highest);
      const float product = scales[g] * static_cast<float>(codes[j]), value = parts->minima ? product - minima[g] : product;
      ASSERT_EQ(value, wanted[static_cast<std::size_t>(i) + j]) << "element " << j << " of a block";
    }
  }
  EXPECT_LE(seen.size(), static_cast<std::size_t>(parts->distinct));
}

TEST(BlockParts, EveryType) {
  for (const BlockFormat& format : block_formats())
    if (format.values > 1) expect_same_values(format);
  EXPECT_EQ(find_block_parts("BF16"), nullptr);
}

}  // namespace
}  // namespace rlx::test
