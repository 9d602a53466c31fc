#include "quant/block_format.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/half.h"
#include "base/small_float.h"

namespace rlx {
namespace {

TEST(BlockFormats, AreFoundByIdAndByName) {
  for (const BlockFormat& format : block_formats()) {
    EXPECT_EQ(find_block_format(format.id), &format);
    EXPECT_EQ(find_block_format(format.name), &format);
  }
  EXPECT_EQ(find_block_format("q4_k"), find_block_format(12));
  EXPECT_EQ(find_block_format("Q4_K_M"), nullptr);
  EXPECT_EQ(find_block_format(4), nullptr);  // once Q4_2
}

// The slow conversions of base/small_float.h work by the definition of the format, these by its bits.
TEST(Half, AgreesWithTheDefinitionForEveryPattern) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const double f16 = decode(f16_format, bits), bf16 = decode(bf16_format, bits);
    EXPECT_TRUE(std::isnan(f16) ? std::isnan(f16_value(pattern)) : f16_value(pattern) == f16) << bits;
    EXPECT_TRUE(std::isnan(bf16) ? std::isnan(bf16_value(pattern)) : bf16_value(pattern) == bf16) << bits;
    if (!std::isnan(f16)) {
      EXPECT_EQ(f16_bits(f16_value(pattern)), pattern);
    }
    if (!std::isnan(bf16)) {
      EXPECT_EQ(bf16_bits(bf16_value(pattern)), pattern);
    }
  }
}

TEST(Half, RoundsLikeTheDefinition) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) {
    // Every other one has few bits, so that ties occur.
    const std::uint32_t bits = static_cast<std::uint32_t>(random()) & (i % 2 == 0 ? 0xffffffffu : 0xfffff000u);
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_value(f16_bits(value))) && std::isnan(bf16_value(bf16_bits(value))));
    } else {
      EXPECT_EQ(f16_bits(value), encode(f16_format, value)) << value;
      EXPECT_EQ(bf16_bits(value), encode(bf16_format, value)) << value;
    }
  }
}

TEST(PlainTypes, IntegersRoundToTheNearestAndSaturate) {
  const std::vector<float> values{2.5f, -3.4f, 3.6f, 1e30f, -1e30f, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> expected{2, -3, 4, 127, -128, 0};
  const BlockFormat* const i8 = find_block_format("I8");
  std::vector<std::byte> blocks(values.size());
  i8->encode(values.data(), nullptr, blocks.data(), std::ssize(values));
  std::vector<float> decoded(values.size());
  i8->decode(blocks.data(), decoded.data(), std::ssize(values));
  EXPECT_EQ(decoded, expected);
}

}  // namespace
}  // namespace rlx
