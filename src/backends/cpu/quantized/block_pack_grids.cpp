#include "backends/cpu/quantized/block_pack.h"
#include "backends/cpu/quantized/block_places.h"
#include "quant/grid_blocks.h"

// Blocks whose values are points of grids: their coordinates and signs become codes that name numbers (see block_pack.h).

namespace rlx::cpu {
namespace {

std::uint32_t word_at(const std::byte* from, int bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, from, static_cast<std::size_t>(bytes));
  return word;
}

/// Sets the codes 8 p to 8 p + 7 of a step to the coordinates of a point, and above them the bits of `upper`.
void put_point8(std::uint32_t point, unsigned upper, std::int64_t p, Codes& to) {
  for (int k = 0; k < 8; ++k) to.half[p / 2][p % 2 * 8 + k] = static_cast<std::uint8_t>((point >> (2 * k) & 3u) | (upper >> k & 1u) << 2);
}
void put_points4(std::uint32_t first, std::uint32_t second, unsigned upper, std::int64_t p, Codes& to) {
  const std::uint32_t points = first | second << 16;
  for (int k = 0; k < 8; ++k) to.half[p / 2][p % 2 * 8 + k] = static_cast<std::uint8_t>((points >> (4 * k) & 7u) | (upper >> k & 1u) << 3);
}

/// 2 s + 1 for each of the `halves` of a step, s four bits.
template <std::int64_t halves, class ScaleOf>
void put_odd_scales(std::int64_t row, std::byte* to, const ScaleOf& scale_of) {
  for (std::int64_t i = 0; i < 8 * halves; ++i) put(to, 32 + 16 * i + row, 2 * (scale_of(i) & 15u) + 1);
}
unsigned nibble_at(const std::byte* from, std::int64_t i) { return byte_at(from, i / 2) >> (i % 2 * 4) & 15u; }

/// Of IQ2_XXS and IQ3_XXS: four times 7 bits of signs and 4 of the scale for each step.
unsigned even_signs_of(std::uint32_t word, std::int64_t p) { return quant::even_signs[word >> (7 * p) & 127u]; }

/// d, and s in four bits for each of the `halves` of a step.
template <std::int64_t halves, std::int64_t at>
struct NibbleScales {
  static constexpr std::int64_t steps = 8, scale_bytes = 32 + 128 * halves;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block, row, to);
    put_odd_scales<halves>(row, to, [&](std::int64_t i) { return nibble_at(block + at, i); });
  }
};

/// d, and s above the signs of each step, `apart` bytes from one to the next.
template <std::int64_t at, std::int64_t apart>
struct SignScales {
  static constexpr std::int64_t steps = 8, scale_bytes = 160;
  static std::uint32_t signs(const std::byte* block, std::int64_t step) { return word_at(block + at + apart * step, 4); }
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block, row, to);
    put_odd_scales<1>(row, to, [&](std::int64_t step) { return signs(block, step) >> 28; });
  }
};

struct Iq2Xxs : SignScales<6, 8> {
  static constexpr std::int64_t bytes = 66;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    const std::uint32_t word = signs(block, step);
    for (std::int64_t p = 0; p < 4; ++p) put_point8(quant::iq2_xxs_grid[byte_at(block, 2 + 8 * step + p)], even_signs_of(word, p), p, to);
  }
};

struct Iq2Xs : NibbleScales<2, 66> {
  static constexpr std::int64_t bytes = 74;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    for (std::int64_t p = 0; p < 4; ++p) {
      const std::uint32_t both = word_at(block + 2 + 2 * (4 * step + p), 2);
      put_point8(quant::iq2_xs_grid[both & 511u], quant::even_signs[both >> 9], p, to);
    }
  }
};

struct Iq2S : NibbleScales<2, 74> {
  static constexpr std::int64_t bytes = 82;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    for (std::int64_t p = 0; p < 4; ++p) {
      const unsigned high = byte_at(block + 66, step) >> (2 * p) & 3u;
      put_point8(quant::iq2_s_grid[byte_at(block + 2, 4 * step + p) | high << 8], byte_at(block + quant::IQ2_S::signs_at, 4 * step + p), p,
                 to);
    }
  }
};

struct Iq3Xxs : SignScales<66, 4> {
  static constexpr std::int64_t bytes = 98;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    const std::uint32_t word = signs(block, step);
    const auto point = [&](std::int64_t i) { return quant::iq3_xxs_grid[byte_at(block + 2, 8 * step + i)]; };
    for (std::int64_t p = 0; p < 4; ++p) put_points4(point(2 * p), point(2 * p + 1), even_signs_of(word, p), p, to);
  }
};

struct Iq3S : NibbleScales<1, 106> {
  static constexpr std::int64_t bytes = 110;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    const unsigned high = byte_at(block + 66, step);
    const auto point = [&](std::int64_t i) { return quant::iq3_s_grid[byte_at(block + 2, 8 * step + i) | (high >> i & 1u) << 8]; };
    for (std::int64_t p = 0; p < 4; ++p)
      put_points4(point(2 * p), point(2 * p + 1), byte_at(block + quant::IQ3_S::signs_at, 4 * step + p), p, to);
  }
};

struct Iq1S {
  static constexpr std::int64_t bytes = 50, steps = 8, scale_bytes = 160;
  static std::uint32_t high_of(const std::byte* block, std::int64_t step) { return word_at(block + quant::IQ1_S::high_at + 2 * step, 2); }
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block, row, to);
    put_odd_scales<1>(row, to, [&](std::int64_t s) { return high_of(block, s) >> 12 & 7u; });
  }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    const std::uint32_t high = high_of(block, step);
    for (std::int64_t p = 0; p < 4; ++p)
      put_point8(quant::iq1_grid[byte_at(block + 2, 4 * step + p) | (high >> (3 * p) & 7u) << 8], high >> 15 != 0 ? 255 : 0, p, to);
  }
};

struct Iq1M {
  static constexpr std::int64_t bytes = 56, steps = 8, scale_bytes = 288;
  static std::uint32_t word(const std::byte* block, std::int64_t i) { return word_at(block + quant::IQ1_M::scales_at + 2 * i, 2); }
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    const std::uint32_t bits = word(block, 0) >> 12 | word(block, 1) >> 12 << 4 | word(block, 2) >> 12 << 8 | word(block, 3) >> 12 << 12;
    const auto d = static_cast<std::uint16_t>(bits);
    std::memcpy(to + 2 * row, &d, sizeof d);
    put_odd_scales<2>(row, to, [&](std::int64_t half) { return word(block, half / 4) >> (3 * (half % 4)) & 7u; });
  }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    for (std::int64_t p = 0; p < 4; ++p) {
      const unsigned high = nibble_at(block + 32, 4 * step + p);
      put_point8(quant::iq1_grid[byte_at(block, 4 * step + p) | (high & 7u) << 8], high >> 3 != 0 ? 255 : 0, p, to);
    }
  }
};

}  // namespace

void pack_iq1_s(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq1S, InThreeBits>(rows, blocks, scales, codes);
}
void pack_iq1_m(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq1M, InThreeBits>(rows, blocks, scales, codes);
}
void pack_iq2_xxs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq2Xxs, InThreeBits>(rows, blocks, scales, codes);
}
void pack_iq2_xs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq2Xs, InThreeBits>(rows, blocks, scales, codes);
}
void pack_iq2_s(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq2S, InThreeBits>(rows, blocks, scales, codes);
}
void pack_iq3_xxs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq3Xxs, InNibbles>(rows, blocks, scales, codes);
}
void pack_iq3_s(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq3S, InNibbles>(rows, blocks, scales, codes);
}

}  // namespace rlx::cpu
