#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"

// Formats of short blocks, each with its own scale: 32 values, or 64 of four scales.

namespace rlx::quant {

/// x = d (q - 8): f16 d, 16 bytes of two codes.
struct Q4_0 {
  static constexpr std::string_view name = "Q4_0";
  static constexpr std::uint32_t id = 2;
  static constexpr std::int64_t values = 32, bytes = 18;

  template <class Index>
  static auto low(Index j) {
    return BitField{2 + j % 16, j / 16 * 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(get(block, low(j)) - 8) * block.f16(0);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d q + m: f16 d, f16 m, 16 bytes of two codes.
struct Q4_1 {
  static constexpr std::string_view name = "Q4_1";
  static constexpr std::uint32_t id = 3;
  static constexpr std::int64_t values = 32, bytes = 20;

  template <class Index>
  static auto low(Index j) {
    return BitField{4 + j % 16, j / 16 * 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(get(block, low(j))) * block.f16(0) + block.f16(2);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d (q - 16): f16 d, 32 fifth bits, 16 bytes of two codes' lower bits.
struct Q5_0 {
  static constexpr std::string_view name = "Q5_0";
  static constexpr std::uint32_t id = 6;
  static constexpr std::int64_t values = 32, bytes = 22;

  template <class Index>
  static auto low(Index j) {
    return BitField{6 + j % 16, j / 16 * 4, 4};
  }
  template <class Index>
  static auto high(Index j) {
    return BitField{2 + j / 8, j % 8, 1, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real((get(block, low(j)) | get(block, high(j))) - 16) * block.f16(0);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d q + m: f16 d, f16 m, 32 fifth bits, 16 bytes of two codes' lower bits.
struct Q5_1 {
  static constexpr std::string_view name = "Q5_1";
  static constexpr std::uint32_t id = 7;
  static constexpr std::int64_t values = 32, bytes = 24;

  template <class Index>
  static auto low(Index j) {
    return BitField{8 + j % 16, j / 16 * 4, 4};
  }
  template <class Index>
  static auto high(Index j) {
    return BitField{4 + j / 8, j % 8, 1, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(get(block, low(j)) | get(block, high(j))) * block.f16(0) + block.f16(2);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d q: f16 d, 32 signed bytes.
struct Q8_0 {
  static constexpr std::string_view name = "Q8_0";
  static constexpr std::uint32_t id = 8;
  static constexpr std::int64_t values = 32, bytes = 34;

  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(block.i8(2 + j)) * block.f16(0);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d q: f16 d, f16 d times the sum of the codes (which products with Q4_1 want), 32 signed bytes.
struct Q8_1 {
  static constexpr std::string_view name = "Q8_1";
  static constexpr std::uint32_t id = 9;
  static constexpr std::int64_t values = 32, bytes = 36;

  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(block.i8(4 + j)) * block.f16(0);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// The values of 4-bit codes that lie denser around zero.
inline constexpr std::array<std::int8_t, 16> nonlinear_codes{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// x = d nonlinear_codes[q]: f16 d, 16 bytes of two codes.
struct IQ4_NL {
  static constexpr std::string_view name = "IQ4_NL";
  static constexpr std::uint32_t id = 20;
  static constexpr std::int64_t values = 32, bytes = 18;

  template <class Index>
  static auto low(Index j) {
    return BitField{2 + j % 16, j / 16 * 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(look_up(nonlinear_codes, get(block, low(j)))) * block.f16(0);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// Twice the values of the float of 4 bits, E2M1; its scales are halved in turn.
inline constexpr std::array<std::int8_t, 16> e2m1_codes{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// x = 2^(e - 128) e2m1_codes[q]: a byte e, 16 bytes of two codes.
struct MXFP4 {
  static constexpr std::string_view name = "MXFP4";
  static constexpr std::uint32_t id = 39;
  static constexpr std::int64_t values = 32, bytes = 17;

  template <class Index>
  static auto low(Index j) {
    return BitField{1 + j % 16, j / 16 * 4, 4};
  }
  /// 2^(exponent - 128), which is subnormal for the exponents 0 and 1.
  template <class Index>
  static auto scale(Index exponent) {
    return float_of_bits(select(exponent < 2, 0x200000 << (exponent & 1), (exponent - 1) << 23));
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(look_up(e2m1_codes, get(block, low(j)))) * scale(block.u8(0));
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d/2 e2m1_codes[q]: 4 bytes d, floats E4M3 without sign, of 16 values each; for each of them 8 bytes of two codes.
struct NVFP4 {
  static constexpr std::string_view name = "NVFP4";
  static constexpr std::uint32_t id = 40;
  static constexpr std::int64_t values = 64, bytes = 36;

  template <class Index>
  static auto low(Index j) {
    return BitField{4 + j / 16 * 8 + j % 8, j % 16 / 8 * 4, 4};
  }
  /// Half the value of the bits; the pattern of E4M3's NaN is 0.
  template <class Index>
  static auto scale(Index bits) {
    auto subnormal = real(bits & 7) * 0x1p-10f;
    auto normal = float_of_bits(((bits & 127) << 20) + (119 << 23));
    return select(bits == 127, 0.0f, select((bits & 0x78) == 0, subnormal, normal));
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return real(look_up(e2m1_codes, get(block, low(j)))) * scale(block.u8(j / 16));
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

}  // namespace rlx::quant
