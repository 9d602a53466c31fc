#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/half.h"

// Types of one value a block.

namespace rlx::quant {

static_assert(std::endian::native == std::endian::little, "blocks are read in place");

/// Integers: the nearest one, ties to even; out of range saturates, NaN gives 0.
template <class Integer>
Integer nearest_integer(float value) {
  constexpr double lowest = static_cast<double>(std::numeric_limits<Integer>::min());
  const double rounded = std::nearbyint(static_cast<double>(value));
  if (std::isnan(rounded)) return 0;
  if (rounded <= lowest) return std::numeric_limits<Integer>::min();
  if (rounded >= -lowest) return std::numeric_limits<Integer>::max();  // one above the largest, which a double may not hold
  return static_cast<Integer>(rounded);
}

/// A type whose elements C++ can hold.
template <class Element>
struct Plain {
  static constexpr std::int64_t values = 1, bytes = sizeof(Element);

  static void decode(const std::byte* blocks, float* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      Element element{};
      std::memcpy(&element, blocks + i * bytes, bytes);
      values[i] = static_cast<float>(element);
    }
  }

  static void encode(const float* values, const float* /*importance*/, std::byte* blocks, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      Element element{};
      if constexpr (std::is_integral_v<Element>) element = nearest_integer<Element>(values[i]);
      else element = static_cast<Element>(values[i]);
      std::memcpy(blocks + i * bytes, &element, bytes);
    }
  }
};

/// A 16-bit float, which C++20 has no type for.
template <float (*value_of)(std::uint16_t), std::uint16_t (*bits_of)(float)>
struct Short {
  static constexpr std::int64_t values = 1, bytes = 2;

  static void decode(const std::byte* blocks, float* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, blocks + i * bytes, bytes);
      values[i] = value_of(bits);
    }
  }

  static void encode(const float* values, const float* /*importance*/, std::byte* blocks, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint16_t bits = bits_of(values[i]);
      std::memcpy(blocks + i * bytes, &bits, bytes);
    }
  }
};

struct F32 : Plain<float> {
  static constexpr std::string_view name = "F32";
  static constexpr std::uint32_t id = 0;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return block.f32(0);
  }
};
struct F16 : Short<f16_value, f16_bits> {
  static constexpr std::string_view name = "F16";
  static constexpr std::uint32_t id = 1;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return block.f16(0);
  }
};
struct I8 : Plain<std::int8_t> {
  static constexpr std::string_view name = "I8";
  static constexpr std::uint32_t id = 24;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return real(block.i8(0));
  }
};
struct I16 : Plain<std::int16_t> {
  static constexpr std::string_view name = "I16";
  static constexpr std::uint32_t id = 25;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return real(block.u16(0) << 16 >> 16);
  }
};
struct I32 : Plain<std::int32_t> {
  static constexpr std::string_view name = "I32";
  static constexpr std::uint32_t id = 26;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return real(block.i32(0));
  }
};
struct I64 : Plain<std::int64_t> {
  static constexpr std::string_view name = "I64";
  static constexpr std::uint32_t id = 27;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return block.i64(0);
  }
};
struct F64 : Plain<double> {
  static constexpr std::string_view name = "F64";
  static constexpr std::uint32_t id = 28;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return block.f64(0);
  }
};
struct BF16 : Short<bf16_value, bf16_bits> {
  static constexpr std::string_view name = "BF16";
  static constexpr std::uint32_t id = 30;
  template <class Block, class Index>
  static auto value(const Block& block, Index /*j*/) {
    return float_of_bits(block.u16(0) << 16);
  }
};

}  // namespace rlx::quant
