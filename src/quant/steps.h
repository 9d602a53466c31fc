#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/half.h"
#include "quant/block.h"
#include "quant/search.h"
#include "quant/search_lanes.h"
#include "rlx/error.h"

// How encoders walk over a row: some blocks at a time, as numbers that searches can square and sum.

namespace rlx::quant {

/// The exponent of the power of two just above all magnitudes, 0 for zeros. `row_at` is the position of the first value in its row. Throws
/// Error for a value that is not finite.
inline int exponent_of(std::string_view format, const float* values, std::int64_t row_at, std::int64_t count) {
  float largest = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const float size = std::fabs(values[i]);
    finite &= size <= std::numeric_limits<float>::max();
    largest = size > largest ? size : largest;
  }
  if (!finite) {
    const float* const bad = std::find_if_not(values, values + count, [](float value) { return std::isfinite(value); });
    fail("{}: value {} of the row is {} (allowed: finite numbers)", format, row_at + (bad - values), *bad);
  }
  int exponent = 0;
  std::frexp(largest, &exponent);
  return exponent;
}

/// Blocks of a row beside each other. Values are divided by 2^exponent of their block, which brings them into (-1, 1), and dropped where
/// their squares would not matter; weights are relative to the block's mean and never 0, so that also what nobody weighs is near.
template <class Scheme, int count>
struct BlockStep {
  static constexpr int values = static_cast<int>(Scheme::values);

  alignas(sizeof(Lanes)) float x[count * values];
  alignas(sizeof(Lanes)) float w[count * values];
  int exponent[count];
  std::byte bytes[count * Scheme::bytes];  // zeros at first

  std::byte* block(int index) { return bytes + index * Scheme::bytes; }
  /// What a scale or an offset of searched values is for the values of the row.
  float outside(int index, float scale) const { return std::ldexp(scale, exponent[index]); }
  float inside(int index, float scale) const { return std::ldexp(scale, -exponent[index]); }

  /// A scale or an offset as f16, saturated.
  std::uint16_t f16_of(int index, float scale) const { return f16_bits(std::clamp(outside(index, scale), -65504.0f, 65504.0f)); }
  /// Stores it, and returns it as it will be read.
  float put_f16(int index, int offset, float scale) {
    const std::uint16_t bits = f16_of(index, scale);
    put(block(index), offset, bits);
    return inside(index, f16_value(bits));
  }
  void put_code(int index, int j, int code) {
    put(block(index), Scheme::low(j), code);
    if constexpr (requires { Scheme::high(j); }) put(block(index), Scheme::high(j), code);
  }

  void load(int index, const float* row, const float* importance, std::int64_t at) {
    exponent[index] = exponent_of(Scheme::name, row + at, at, values);
    const double unit = std::ldexp(1.0, -exponent[index]);
    float* const to = x + index * values;
    for (int i = 0; i < values; ++i) {
      const float value = static_cast<float>(row[at + i] * unit);
      to[i] = std::fabs(value) < 0x1p-60f ? 0 : value;
    }
    load_weights(w + index * values, importance == nullptr ? nullptr : importance + at);
  }

  void load_zeros(int index) {
    exponent[index] = 0;
    std::fill_n(x + index * values, values, 0.0f);
    std::fill_n(w + index * values, values, 1.0f);
  }

 private:
  static void load_weights(float* to, const float* importance) {
    double sum = 0;
    if (importance != nullptr) {
      for (int i = 0; i < values; ++i) sum += importance[i];
    }
    const double share = sum > 0 ? values / sum : 0;
    for (int i = 0; i < values; ++i) to[i] = share > 0 ? static_cast<float>(importance[i] * share + 1e-6) : 1;
  }
};

/// Encodes a row, `blocks_at_once` blocks at a time: encode(step) fills the step's bytes.
template <class Scheme, int blocks_at_once, class Encode>
void encode_steps(const float* row, const float* importance, std::byte* blocks, std::int64_t count, Encode encode) {
  BlockStep<Scheme, blocks_at_once> step;
  const std::int64_t all_blocks = count / Scheme::values;
  for (std::int64_t first = 0; first < all_blocks; first += blocks_at_once) {
    const int present = static_cast<int>(std::min<std::int64_t>(blocks_at_once, all_blocks - first));
    std::memset(step.bytes, 0, sizeof step.bytes);
    for (int i = 0; i < present; ++i) step.load(i, row, importance, (first + i) * Scheme::values);
    for (int i = present; i < blocks_at_once; ++i) step.load_zeros(i);
    encode(step);
    std::memcpy(blocks + first * Scheme::bytes, step.bytes, static_cast<std::size_t>(present * Scheme::bytes));
  }
}

}  // namespace rlx::quant
