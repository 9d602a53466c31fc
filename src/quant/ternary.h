#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"

// Formats of the three values -d, 0, d, in blocks of 256.

namespace rlx::quant {

/// Five codes a byte as digits to base 3 of a fraction of 256, the first the most significant: 48 bytes, 4 bytes of four codes, f16 d.
struct TQ1_0 {
  static constexpr std::string_view name = "TQ1_0";
  static constexpr std::uint32_t id = 34;
  static constexpr std::int64_t values = 256, bytes = 54;
  static constexpr int codes_bytes = 52, scale_at = 52;
  static constexpr std::array<std::uint8_t, 5> powers{1, 3, 9, 27, 81};

  /// Where the code of element j is: its byte, and how many digits stand before it.
  template <class Index>
  static auto byte_of(Index j) {
    return select(j < 160, j % 32, select(j < 240, 32 + j % 16, 48 + j % 4));
  }
  template <class Index>
  static auto digit_of(Index j) {
    return select(j < 160, j / 32, select(j < 240, (j - 160) / 16, (j - 240) / 4));
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto fraction = (block.u8(byte_of(j)) * look_up(powers, digit_of(j))) & 255;  // without the digits before
    return real(((fraction * 3) >> 8) - 1) * block.f16(scale_at);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d (q - 1): 64 bytes of four codes, f16 d.
struct TQ2_0 {
  static constexpr std::string_view name = "TQ2_0";
  static constexpr std::uint32_t id = 35;
  static constexpr std::int64_t values = 256, bytes = 66;
  static constexpr int scale_at = 64;

  template <class Index>
  static auto low(Index j) {
    return BitField{j / 128 * 32 + j % 32, j % 128 / 32 * 2, 2};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(get(block, low(j)) - 1) * block.f16(scale_at);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

}  // namespace rlx::quant
