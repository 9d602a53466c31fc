#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/grids.h"

// The IQ formats of 1 to 3 bits, 256 values a block: groups of 8 or 4 values are a point of a grid and, but for IQ1, signs.

namespace rlx::quant {

inline constexpr std::array<std::uint8_t, 4> iq2_values{8, 25, 43, 0};
inline constexpr std::array<std::uint8_t, 8> iq3_xxs_values{4, 12, 20, 28, 36, 44, 52, 62};

/// The eight signs of seven stored bits: the eighth makes the number of minus signs even.
inline constexpr auto even_signs = [] {
  std::array<std::uint8_t, 128> signs{};
  for (unsigned i = 0; i < signs.size(); ++i) signs[i] = static_cast<std::uint8_t>(i | (std::popcount(i) % 2) << 7);
  return signs;
}();

/// Coordinate k of a point of 8 coordinates, or of 4, as the number of its value.
template <class Point, class Index>
auto coordinate8(Point point, Index k) {
  return (point >> (k * 2)) & 3;
}
template <class Point, class Index>
auto coordinate4(Point point, Index k) {
  return (point >> (k * 4)) & 15;
}

/// `magnitude`, negative where bit k of `signs` is set.
template <class Real, class Index>
auto with_sign(Real magnitude, Index signs, Index k) {
  return select(((signs >> k) & 1) != 0, -magnitude, magnitude);
}

/// x = ((d (s + 1/2)) / 4) g: f16 d; for each 32 values four bytes, the points of 8, and 32 bits, four times 7 of signs and 4 of s.
struct IQ2_XXS {
  static constexpr std::string_view name = "IQ2_XXS";
  static constexpr std::uint32_t id = 16;
  static constexpr std::int64_t values = 256, bytes = 66;

  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto signs_and_scale = block.i32(6 + j / 32 * 8);
    auto scale = block.f16(0) * (0.5f + real((signs_and_scale >> 28) & 15)) * 0.25f;
    auto point = look_up(iq2_xxs_grid, block.u8(2 + j / 32 * 8 + j / 8 % 4));
    auto signs = look_up(even_signs, (signs_and_scale >> (j / 8 % 4 * 7)) & 127);
    return with_sign(scale * real(look_up(iq2_values, coordinate8(point, j % 8))), signs, j % 8);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = ((d (s + 1/2)) / 4) g: f16 d; for each 8 values 9 bits, the point, and 7 of signs; for each 16 values 4 bits s.
struct IQ2_XS {
  static constexpr std::string_view name = "IQ2_XS";
  static constexpr std::uint32_t id = 17;
  static constexpr std::int64_t values = 256, bytes = 74;

  template <class Index>
  static auto scale_low(Index g) {
    return BitField{66 + g / 2, g % 2 * 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto scale = block.f16(0) * (0.5f + real(get(block, scale_low(j / 16)))) * 0.25f;
    auto point_and_signs = block.u16(2 + j / 8 * 2);
    auto point = look_up(iq2_xs_grid, point_and_signs & 511);
    auto signs = look_up(even_signs, point_and_signs >> 9);
    return with_sign(scale * real(look_up(iq2_values, coordinate8(point, j % 8))), signs, j % 8);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = ((d (s + 1/2)) / 4) g: f16 d; for each 8 values 8 + 2 bits, the point, and 8 signs; for each 16 values 4 bits s.
struct IQ2_S {
  static constexpr std::string_view name = "IQ2_S";
  static constexpr std::uint32_t id = 22;
  static constexpr std::int64_t values = 256, bytes = 82;
  static constexpr int signs_at = 34;

  template <class Index>
  static auto low(Index p) {
    return BitField{2 + p, 0, 8};
  }
  template <class Index>
  static auto high(Index p) {
    return BitField{66 + p / 4, p % 4 * 2, 2, 8};
  }
  template <class Index>
  static auto scale_low(Index g) {
    return BitField{74 + g / 2, g % 2 * 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto scale = block.f16(0) * (0.5f + real(get(block, scale_low(j / 16)))) * 0.25f;
    auto point = look_up(iq2_s_grid, get(block, low(j / 8)) | get(block, high(j / 8)));
    return with_sign(scale * real(look_up(iq2_values, coordinate8(point, j % 8))), block.u8(signs_at + j / 8), j % 8);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = ((d (s + 1/2)) / 2) g: f16 d; 64 bytes, the points of 4; for each 32 values 32 bits, four times 7 of signs and 4 of s.
struct IQ3_XXS {
  static constexpr std::string_view name = "IQ3_XXS";
  static constexpr std::uint32_t id = 18;
  static constexpr std::int64_t values = 256, bytes = 98;

  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto signs_and_scale = block.i32(66 + j / 32 * 4);
    auto scale = block.f16(0) * (0.5f + real((signs_and_scale >> 28) & 15)) * 0.5f;
    auto point = look_up(iq3_xxs_grid, block.u8(2 + j / 4));
    auto signs = look_up(even_signs, (signs_and_scale >> (j / 8 % 4 * 7)) & 127);
    return with_sign(scale * real(look_up(iq3_xxs_values, coordinate4(point, j % 4))), signs, j % 8);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = (d (2 s + 1)) g: f16 d; for each 4 values 8 + 1 bits, the point; 256 signs; for each 32 values 4 bits s.
struct IQ3_S {
  static constexpr std::string_view name = "IQ3_S";
  static constexpr std::uint32_t id = 21;
  static constexpr std::int64_t values = 256, bytes = 110;
  static constexpr int signs_at = 74;

  template <class Index>
  static auto low(Index p) {
    return BitField{2 + p, 0, 8};
  }
  template <class Index>
  static auto high(Index p) {
    return BitField{66 + p / 8, p % 8, 1, 8};
  }
  template <class Index>
  static auto scale_low(Index g) {
    return BitField{106 + g / 2, g % 2 * 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto scale = block.f16(0) * real(get(block, scale_low(j / 32)) * 2 + 1);
    auto point = look_up(iq3_s_grid, get(block, low(j / 4)) | get(block, high(j / 4)));
    return with_sign(scale * real(coordinate4(point, j % 4) * 2 + 1), block.u8(signs_at + j / 8), j % 8);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// What is added to all of a group's values, or taken from them.
inline constexpr float iq1_delta = 0.125f;

/// x = (d (2 s + 1)) (g +- 1/8): f16 d; for each 8 values 8 + 3 bits, the point; for each 32 values 3 bits s and the sign of 1/8.
struct IQ1_S {
  static constexpr std::string_view name = "IQ1_S";
  static constexpr std::uint32_t id = 19;
  static constexpr std::int64_t values = 256, bytes = 50;
  static constexpr int high_at = 34;

  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto high = block.u16(high_at + j / 32 * 2);
    auto scale = block.f16(0) * real((high >> 12 & 7) * 2 + 1);
    auto delta = select((high & 0x8000) != 0, -iq1_delta, iq1_delta);
    auto point = look_up(iq1_grid, block.u8(2 + j / 8) | ((high >> (j / 8 % 4 * 3)) & 7) << 8);
    return scale * (real(coordinate8(point, j % 8) - 1) + delta);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = (d (2 s + 1)) (g +- 1/8): for each 8 values 8 + 3 bits, the point, and the sign of 1/8; for each 16 values 3 bits s; f16 d in the
/// upper 4 bits of the four 16-bit words of s.
struct IQ1_M {
  static constexpr std::string_view name = "IQ1_M";
  static constexpr std::uint32_t id = 29;
  static constexpr std::int64_t values = 256, bytes = 56;
  static constexpr int scales_at = 48;

  template <class Index>
  static auto low(Index p) {
    return BitField{p, 0, 8};
  }
  template <class Index>
  static auto high(Index p) {
    return BitField{32 + p / 2, p % 2 * 4, 3, 8};
  }
  template <class Index>
  static auto minus(Index p) {
    return BitField{32 + p / 2, p % 2 * 4 + 3, 1};
  }
  template <class Block>
  static auto block_scale(const Block& block) {
    return half_of_bits(block.u16(scales_at) >> 12 | block.u16(scales_at + 2) >> 12 << 4 | block.u16(scales_at + 4) >> 12 << 8 |
                        block.u16(scales_at + 6) >> 12 << 12);
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto scale = block_scale(block) * real((block.u16(scales_at + j / 64 * 2) >> (j / 16 % 4 * 3) & 7) * 2 + 1);
    auto delta = select(get(block, minus(j / 8)) != 0, -iq1_delta, iq1_delta);
    auto point = look_up(iq1_grid, get(block, low(j / 8)) | get(block, high(j / 8)));
    return scale * (real(coordinate8(point, j % 8) - 1) + delta);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

}  // namespace rlx::quant
