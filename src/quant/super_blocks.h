#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quant/block.h"
#include "quant/small_blocks.h"

// Formats of 256 values a block, whose groups of 16 or 32 have integer scales, and some minima, beside the block's own.

namespace rlx::quant {

/// x = (d s) q - (dmin m), by groups of 16: 16 bytes of s and m, 64 bytes of four codes, f16 d, f16 dmin.
struct Q2_K {
  static constexpr std::string_view name = "Q2_K";
  static constexpr std::uint32_t id = 10;
  static constexpr std::int64_t values = 256, bytes = 84;
  static constexpr int group = 16, scale_at = 80, min_at = 82;

  template <class Index>
  static auto low(Index j) {
    return BitField{16 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 2};
  }
  template <class Index>
  static auto scale_low(Index g) {
    return BitField{g, 0, 4};
  }
  template <class Index>
  static auto min_low(Index g) {
    return BitField{g, 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto scale = block.f16(scale_at) * real(get(block, scale_low(j / group)));
    auto min = block.f16(min_at) * real(get(block, min_low(j / group)));
    return scale * real(get(block, low(j))) - min;
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = (d (s - 32)) (q - 4), by groups of 16: 32 bytes of third bits, 64 bytes of four codes' lower bits, 12 bytes of s, f16 d.
struct Q3_K {
  static constexpr std::string_view name = "Q3_K";
  static constexpr std::uint32_t id = 11;
  static constexpr std::int64_t values = 256, bytes = 110;
  static constexpr int group = 16, scale_at = 108;

  template <class Index>
  static auto low(Index j) {
    return BitField{32 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 2};
  }
  template <class Index>
  static auto high(Index j) {
    return BitField{j % 32, j / 32, 1, 2};
  }
  template <class Index>
  static auto scale_low(Index g) {
    return BitField{96 + g % 8, g / 8 * 4, 4};
  }
  template <class Index>
  static auto scale_high(Index g) {
    return BitField{104 + g % 4, g / 4 * 2, 2, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    auto scale = block.f16(scale_at) * real((get(block, scale_low(j / group)) | get(block, scale_high(j / group))) - 32);
    return scale * real((get(block, low(j)) | get(block, high(j))) - 4);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// The six bits of s and m of eight groups in 12 bytes, from byte 4 on: Q4_K and Q5_K.
struct PackedScales {
  static constexpr int group = 32, scale_at = 0, min_at = 2;

  template <class Index>
  static auto scale_low(Index g) {
    return BitField{4 + g + g / 4 * 4, 0, 4};
  }
  template <class Index>
  static auto scale_high(Index g) {
    return BitField{4 + g % 4, 4 + g / 4 * 2, 2, 4};
  }
  template <class Index>
  static auto min_low(Index g) {
    return BitField{8 + g, g / 4 * 4, 4};
  }
  template <class Index>
  static auto min_high(Index g) {
    return BitField{8 + g % 4, 4 + g / 4 * 2, 2, 4};
  }

  /// The integers s and m of group g.
  template <class Block, class Index>
  static auto scale(const Block& block, Index g) {
    return get(block, scale_low(g)) | get(block, scale_high(g));
  }
  template <class Block, class Index>
  static auto min(const Block& block, Index g) {
    return get(block, min_low(g)) | get(block, min_high(g));
  }

  /// (d s) q - (dmin m)
  template <class Block, class Index>
  static auto value_of(const Block& block, Index g, Index code) {
    return block.f16(scale_at) * real(scale(block, g)) * real(code) - block.f16(min_at) * real(min(block, g));
  }
};

/// x = (d s) q - (dmin m), by groups of 32: f16 d, f16 dmin, 12 bytes of s and m, 128 bytes of two codes.
struct Q4_K : PackedScales {
  static constexpr std::string_view name = "Q4_K";
  static constexpr std::uint32_t id = 12;
  static constexpr std::int64_t values = 256, bytes = 144;

  template <class Index>
  static auto low(Index j) {
    return BitField{16 + j / 64 * 32 + j % 32, j / 32 % 2 * 4, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return value_of(block, j / group, get(block, low(j)));
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = (d s) q - (dmin m), by groups of 32: f16 d, f16 dmin, 12 bytes of s and m, 32 bytes of fifth bits, 128 bytes of two codes' lower
/// bits.
struct Q5_K : PackedScales {
  static constexpr std::string_view name = "Q5_K";
  static constexpr std::uint32_t id = 13;
  static constexpr std::int64_t values = 256, bytes = 176;

  template <class Index>
  static auto low(Index j) {
    return BitField{48 + j / 64 * 32 + j % 32, j / 32 % 2 * 4, 4};
  }
  template <class Index>
  static auto high(Index j) {
    return BitField{16 + j % 32, j / 32, 1, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return value_of(block, j / group, get(block, low(j)) | get(block, high(j)));
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = (d s) (q - 32), by groups of 16: 128 bytes of two codes' lower bits, 64 bytes of four codes' upper bits, 16 signed bytes s, f16 d.
struct Q6_K {
  static constexpr std::string_view name = "Q6_K";
  static constexpr std::uint32_t id = 14;
  static constexpr std::int64_t values = 256, bytes = 210;
  static constexpr int group = 16, scale_at = 208, scales_at = 192;

  template <class Index>
  static auto low(Index j) {
    return BitField{j / 128 * 64 + j % 64, j % 128 / 64 * 4, 4};
  }
  template <class Index>
  static auto high(Index j) {
    return BitField{128 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 2, 4};
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return block.f16(scale_at) * real(block.i8(scales_at + j / group)) * real((get(block, low(j)) | get(block, high(j))) - 32);
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = d q: f32 d, 256 signed bytes, the sums of each 16 of them as 16 bits (which products want).
struct Q8_K {
  static constexpr std::string_view name = "Q8_K";
  static constexpr std::uint32_t id = 15;
  static constexpr std::int64_t values = 256, bytes = 292;
  static constexpr int codes_at = 4, sums_at = 260;

  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return block.f32(0) * real(block.i8(codes_at + j));
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

/// x = (d (s - 32)) nonlinear_codes[q], by groups of 32: f16 d, 2 bytes and 4 bytes of s, 128 bytes of two codes.
struct IQ4_XS {
  static constexpr std::string_view name = "IQ4_XS";
  static constexpr std::uint32_t id = 23;
  static constexpr std::int64_t values = 256, bytes = 136;
  static constexpr int group = 32, scale_at = 0;

  template <class Index>
  static auto low(Index j) {
    return BitField{8 + j / 32 * 16 + j % 16, j % 32 / 16 * 4, 4};
  }
  template <class Index>
  static auto scale_low(Index g) {
    return BitField{4 + g / 2, g % 2 * 4, 4};
  }
  template <class Index>
  static auto scale_high(Index g) {
    return BitField{2 + g / 4, g % 4 * 2, 2, 4};
  }
  /// The integer s - 32 of group g.
  template <class Block, class Index>
  static auto scale(const Block& block, Index g) {
    return (get(block, scale_low(g)) | get(block, scale_high(g))) - 32;
  }
  template <class Block, class Index>
  static auto value(const Block& block, Index j) {
    return block.f16(scale_at) * real(scale(block, j / group)) * real(look_up(nonlinear_codes, get(block, low(j))));
  }
  static void encode(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
};

}  // namespace rlx::quant
