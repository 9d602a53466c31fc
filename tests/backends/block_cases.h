#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "quant/block_format.h"

// Operands of products with weights in blocks, for tests.

namespace rlx {

inline std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

/// Blocks of any bits.
inline std::vector<std::byte> any_blocks(const BlockFormat& format, std::int64_t rows, std::int64_t depth, std::uint32_t seed = 7) {
  std::mt19937 engine(seed);
  std::vector<std::byte> blocks(static_cast<std::size_t>(rows * (depth / format.values) * format.bytes));
  std::generate(blocks.begin(), blocks.end(), [&] { return static_cast<std::byte>(engine()); });
  return blocks;
}

/// Blocks of any bits, but that their largest value is neither tiny nor huge.
inline std::vector<std::byte> random_blocks(const BlockFormat& format, std::int64_t rows, std::int64_t depth) {
  std::mt19937 engine(7);
  std::vector<std::byte> blocks(static_cast<std::size_t>(rows * (depth / format.values) * format.bytes));
  std::vector<float> values(static_cast<std::size_t>(format.values));
  const auto is_fair = [&](const std::byte* block) {
    format.decode(block, values.data(), format.values);
    float largest = 0;
    for (float value : values) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : INFINITY;
    return largest > 0.01F && largest < 10;
  };
  for (std::size_t at = 0; at < blocks.size(); at += static_cast<std::size_t>(format.bytes)) {
    do std::generate_n(blocks.data() + at, format.bytes, [&] { return static_cast<std::byte>(engine()); });
    while (!is_fair(blocks.data() + at));
  }
  return blocks;
}

}  // namespace rlx
