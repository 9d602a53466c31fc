#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "fixture.h"
#include "formats/tensors/safetensors.h"
#include "message.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

std::vector<std::byte> encoded(const BlockFormat& format, std::span<const float> row, const float* importance = nullptr) {
  std::vector<std::byte> blocks(row.size() / static_cast<std::size_t>(format.values) * static_cast<std::size_t>(format.bytes));
  format.encode(row.data(), importance, blocks.data(), std::ssize(row));
  return blocks;
}

std::vector<float> decoded(const BlockFormat& format, const std::vector<std::byte>& blocks) {
  std::vector<float> values(blocks.size() / static_cast<std::size_t>(format.bytes) * static_cast<std::size_t>(format.values));
  format.decode(blocks.data(), values.data(), std::ssize(values));
  return values;
}

std::vector<float> round_trip(const BlockFormat& format, std::span<const float> row, const float* importance = nullptr) {
  return decoded(format, encoded(format, row, importance));
}

/// Root of the weighted mean square of the error, relative to that of the values.
double relative_error(const BlockFormat& format, std::span<const float> values, std::span<const float> importance, bool weighted) {
  const std::size_t columns = importance.size();
  double error = 0, norm = 0;
  for (std::size_t row = 0; row < values.size(); row += columns) {
    const std::vector<float> result = round_trip(format, values.subspan(row, columns), weighted ? importance.data() : nullptr);
    for (std::size_t i = 0; i < columns; ++i) {
      const double weight = weighted ? importance[i] : 1, value = values[row + i];
      error += weight * (value - result[i]) * (value - result[i]);
      norm += weight * value * value;
    }
  }
  return std::sqrt(error / norm);
}

// encoder_errors.json holds what ggml's own encoders reach on the same values.
TEST(Encoders, ErrWhateverIsWeighedNoMoreThanTheRecordedOnes) {
  const SafetensorsFile file = SafetensorsFile::open(test::fixture("gguf/encoder_input.safetensors"));
  const Array importance = file.array("importance");
  const auto recorded = nlohmann::json::parse(std::ifstream(test::fixture("gguf/encoder_errors.json"))).at("types");
  for (const auto& [type, errors] : recorded.items()) {
    const BlockFormat* const format = find_block_format(type);
    ASSERT_NE(format, nullptr) << type;
    for (const std::string tensor : {"gaussian", "heavy"}) {
      const Array values = file.array(tensor);
      for (const std::string kind : {"plain", "weighted"}) {
        const std::string key = fmt::format("{}.{}", tensor, kind);
        if (!errors.contains(key)) continue;  // a type for which ggml wants an importance
        EXPECT_LE(relative_error(*format, values.values<float>(), importance.values<float>(), kind == "weighted"), errors.at(key))
            << type << ' ' << key;
      }
    }
  }
}

// Values that lie on a format's own lattice, of one scale a block, are found again.
TEST(Encoders, KeepWhatTheyCanStore) {
  for (const std::string type : {"q4_0", "q5_0", "iq4_nl", "tq1_0", "mxfp4", "nvfp4"}) {
    const Array array = SafetensorsFile::open(test::fixture(fmt::format("gguf/{}.safetensors", type))).array("w");
    const std::span<const float> values = array.values<float>();
    const std::vector<float> again = round_trip(*find_block_format(type), values);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), again.begin())) << type;
  }
}

// gguf-py, and ggml's C code for q8_1 and q8_k, take the scale from the largest value; a search errs less. What is only rounded has the
// same bytes.
TEST(Encoders, ErrNoMoreThanWithoutASearch) {
  const Array input = SafetensorsFile::open(test::fixture("gguf/quantize_input.safetensors")).array("x");
  const std::span<const float> x = input.values<float>();
  for (const std::string type : {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q8_1", "q8_k", "tq1_0", "tq2_0", "mxfp4", "f16", "bf16"}) {
    const SafetensorsFile file = SafetensorsFile::open(test::fixture(fmt::format("gguf/{}.quantize.safetensors", type)));
    const Array bytes = file.array("bytes"), theirs = file.array("dequantized");
    const std::vector<std::byte> blocks = encoded(*find_block_format(type), x);
    const std::vector<float> ours = decoded(*find_block_format(type), blocks);
    ASSERT_EQ(blocks.size(), bytes.bytes().size());
    const std::vector<float> read = decoded(*find_block_format(type), {bytes.bytes().begin(), bytes.bytes().end()});
    EXPECT_TRUE(std::ranges::equal(read, theirs.values<float>())) << type;
    const bool only_rounded = type == "f16" || type == "bf16";
    EXPECT_TRUE(!only_rounded || std::memcmp(blocks.data(), bytes.bytes().data(), blocks.size()) == 0) << type;
    double our_error = 0, their_error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      our_error += std::pow(x[i] - ours[i], 2);
      their_error += std::pow(x[i] - theirs.values<float>()[i], 2);
    }
    EXPECT_LE(our_error, their_error) << type;
  }
}

/// Whether the sums that blocks of Q8_1 hold beside their codes, for products with minima, are those of the codes: to the rounding of the
/// scale and of themselves, each to 11 bits or to half of the least number.
bool sums_of_q8_1_fit(const std::vector<std::byte>& blocks) {
  constexpr std::size_t bytes = 36, values = 32;
  constexpr double rounding = 0x1p-11, half_least = 0x1p-25;
  for (std::size_t at = 0; at < blocks.size(); at += bytes) {
    std::uint16_t d = 0, s = 0;
    std::int8_t codes[values];
    std::memcpy(&d, &blocks[at], 2), std::memcpy(&s, &blocks[at + 2], 2), std::memcpy(codes, &blocks[at + 4], values);
    const double codes_sum = std::accumulate(std::begin(codes), std::end(codes), 0.0), sum = f16_value(d) * codes_sum;
    if (std::abs(sum - f16_value(s)) > 2 * rounding * std::abs(sum) + half_least * (std::abs(codes_sum) + 1)) return false;
  }
  return true;
}

bool sums_of_q8_k_fit(const std::vector<std::byte>& blocks) {
  constexpr std::size_t bytes = 292, values = 256, group = 16;
  for (std::size_t at = 0; at < blocks.size(); at += bytes) {
    std::int8_t codes[values];
    std::int16_t sums[values / group];
    std::memcpy(codes, &blocks[at + 4], values), std::memcpy(sums, &blocks[at + 4 + values], sizeof(sums));
    for (std::size_t i = 0; i < values / group; ++i)
      if (std::accumulate(codes + i * group, codes + (i + 1) * group, 0) != sums[i]) return false;
  }
  return true;
}

TEST(Encoders, KeepTheSumsOfCodes) {
  const auto recorded = [](const char* type) {
    const Array bytes = SafetensorsFile::open(test::fixture(fmt::format("gguf/{}.quantize.safetensors", type))).array("bytes");
    return std::vector<std::byte>{bytes.bytes().begin(), bytes.bytes().end()};
  };
  const Array input = SafetensorsFile::open(test::fixture("gguf/quantize_input.safetensors")).array("x");
  EXPECT_TRUE(sums_of_q8_1_fit(recorded("q8_1")));
  EXPECT_TRUE(sums_of_q8_1_fit(encoded(*find_block_format("Q8_1"), input.values<float>())));
  EXPECT_TRUE(sums_of_q8_k_fit(recorded("q8_k")));
  EXPECT_TRUE(sums_of_q8_k_fit(encoded(*find_block_format("Q8_K"), input.values<float>())));
}

// All types of several values a block; what the others store is C++'s own rounding, or in format_test.cpp.
class BlockType : public testing::TestWithParam<const BlockFormat*> {
 protected:
  const BlockFormat& format() const { return *GetParam(); }
  std::size_t row_size() const { return 3 * static_cast<std::size_t>(format().values); }
};

std::vector<float> normal(std::size_t count, float deviation = 1) {
  std::mt19937 random(7);
  std::normal_distribution<float> distribution(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

TEST_P(BlockType, ZerosStayZeros) {
  const std::vector<float> zeros(row_size(), 0.0f), ones(row_size(), 1.0f);
  EXPECT_EQ(round_trip(format(), zeros), zeros);
  EXPECT_EQ(round_trip(format(), std::vector<float>(row_size(), -0.0f)), zeros);
  EXPECT_EQ(round_trip(format(), zeros, ones.data()), zeros);
}

TEST_P(BlockType, WeighingNothingIsWeighingAllTheSame) {
  const std::vector<float> row = normal(row_size()), nothing(row_size(), 0.0f);
  EXPECT_EQ(encoded(format(), row, nothing.data()), encoded(format(), row));
}

// A block neither knows its neighbours nor its place.
TEST_P(BlockType, ABlockIsEncodedAloneAsInItsRow) {
  const std::vector<float> row = normal(row_size());
  const std::vector<std::byte> all = encoded(format(), row);
  const auto values = static_cast<std::size_t>(format().values), bytes = static_cast<std::size_t>(format().bytes);
  for (std::size_t block = 0; block < row.size() / values; ++block) {
    const std::vector<std::byte> alone = encoded(format(), std::span(row).subspan(block * values, values));
    EXPECT_EQ(std::memcmp(alone.data(), all.data() + block * bytes, bytes), 0) << block;
  }
}

TEST_P(BlockType, ExtremeRowsGiveFiniteValues) {
  std::vector<std::vector<float>> rows{std::vector<float>(row_size(), 1.0f), std::vector<float>(row_size(), -0.37f)};
  for (const float size : {1e-45f, 1e-38f, 1e-20f, 1e-6f, 1e6f, 1e20f, std::numeric_limits<float>::max()}) {
    rows.push_back(normal(row_size()));
    rows.back()[5] = size;
    rows.emplace_back(row_size(), 0.0f);
    rows.back()[row_size() - 1] = -size;
    rows.emplace_back(row_size(), size);
  }
  std::vector<float> spike(row_size(), 0.0f);
  spike[7] = std::numeric_limits<float>::max();
  const float* const importances[] = {nullptr, spike.data()};
  for (const std::vector<float>& row : rows) {
    for (const float* const importance : importances) {
      for (const float value : round_trip(format(), row, importance)) ASSERT_TRUE(std::isfinite(value)) << value;
    }
  }
}

TEST_P(BlockType, WhatIsNotFiniteIsRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> row = normal(row_size());
    row[row_size() - 3] = bad;
    EXPECT_EQ(test::error_of([&] { round_trip(format(), row); }),
              fmt::format("{}: value {} of the row is {} (allowed: finite numbers)", format().name, row_size() - 3, bad));
  }
}

// One column that matters more than all others together is met better than without weights.
TEST_P(BlockType, ImportanceDrawsTheErrorAway) {
  double plain = 0, weighted = 0;
  std::vector<float> importance(row_size());
  for (std::size_t i = 0; i < importance.size(); ++i) importance[i] = i % 4 == 0 ? 100.0f : 0.01f;
  const std::vector<float> row = normal(row_size());
  const std::vector<float> without = round_trip(format(), row), with = round_trip(format(), row, importance.data());
  for (std::size_t i = 0; i < row.size(); i += 4) {
    plain += std::pow(row[i] - without[i], 2);
    weighted += std::pow(row[i] - with[i], 2);
  }
  EXPECT_LT(weighted, plain);
}

std::vector<const BlockFormat*> of_several_values() {
  std::vector<const BlockFormat*> formats;
  for (const BlockFormat& format : block_formats()) {
    if (format.values > 1) formats.push_back(&format);
  }
  return formats;
}

INSTANTIATE_TEST_SUITE_P(Gguf, BlockType, testing::ValuesIn(of_several_values()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace rlx
