#include "backends/cpu/quantized/block_pack.h"

#include "backends/cpu/quantized/block_places.h"
#include "base/half.h"
#include "quant/small_blocks.h"
#include "quant/ternary.h"

namespace rlx::cpu {
namespace {

// -- what the blocks of a file hold

void nibbles(const std::byte* from, Codes& codes) {
  const Half both = load_half(from);
  codes.half[0] = both & 15, codes.half[1] = both >> 4;
}

/// Nibbles of one of the two steps that share 32 bytes.
void shared_nibbles(const std::byte* from, std::int64_t step, Codes& codes) {
  const auto shift = static_cast<std::uint8_t>(step % 2 != 0 ? 4 : 0);
  for (int half = 0; half < 2; ++half) codes.half[half] = load_half(from + step / 2 * 32 + 16 * half) >> shift & 15;
}

/// The bits of a byte as the fifth bits of eight.
constexpr auto spread_bits = [] {
  std::array<std::uint64_t, 256> table{};
  for (std::size_t byte = 0; byte < 256; ++byte)
    for (unsigned i = 0; i < 8; ++i) table[byte] |= static_cast<std::uint64_t>(byte >> i & 1) << (8 * i + 4);
  return table;
}();

void add_fifth_bits(const std::byte* from, Codes& codes) {
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t eights[] = {spread_bits[byte_at(from, 2 * half)], spread_bits[byte_at(from, 2 * half + 1)]};
    Half fifth;
    std::memcpy(&fifth, eights, sizeof fifth);
    codes.half[half] |= fifth;
  }
}

template <std::int64_t half_floats>
struct Simple {
  static constexpr std::int64_t steps = 1, scale_bytes = 32 * half_floats;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    for (std::int64_t i = 0; i < half_floats; ++i) put_half(block + 2 * i, row, to + 32 * i);
  }
};

struct Q4_0 : Simple<1> {
  static constexpr std::int64_t bytes = 18;
  static void codes(const std::byte* block, std::int64_t, Codes& to) { nibbles(block + 2, to); }
};

struct Q4_1 : Simple<2> {
  static constexpr std::int64_t bytes = 20;
  static void codes(const std::byte* block, std::int64_t, Codes& to) { nibbles(block + 4, to); }
};

struct Q5_0 : Simple<1> {
  static constexpr std::int64_t bytes = 22;
  static void codes(const std::byte* block, std::int64_t, Codes& to) { nibbles(block + 6, to), add_fifth_bits(block + 2, to); }
};

struct Q5_1 : Simple<2> {
  static constexpr std::int64_t bytes = 24;
  static void codes(const std::byte* block, std::int64_t, Codes& to) { nibbles(block + 8, to), add_fifth_bits(block + 4, to); }
};

struct Q8_0 : Simple<1> {
  static constexpr std::int64_t bytes = 34;
  static void codes(const std::byte* block, std::int64_t, Codes& to) {
    for (int half = 0; half < 2; ++half) to.half[half] = load_half(block + 2 + 16 * half) ^ 128;
  }
};

struct Q8_1 : Simple<1> {
  static constexpr std::int64_t bytes = 36;
  static void codes(const std::byte* block, std::int64_t, Codes& to) { Q8_0::codes(block + 2, 0, to); }
};

struct Nvfp4 {
  static constexpr std::int64_t bytes = 36, steps = 2, scale_bytes = 128;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    for (std::int64_t group = 0; group < 4; ++group) {
      const std::uint16_t half = f16_bits(quant::NVFP4::scale(int{byte_at(block, group)}));  // 3 bits above 2^-10: exact
      std::memcpy(to + 32 * group + 2 * row, &half, sizeof half);
    }
  }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    for (int half = 0; half < 2; ++half)
      for (int j = 0; j < 16; ++j) to.half[half][j] = byte_at(block, 4 + 8 * (2 * step + half) + j % 8) >> (j / 8 * 4) & 15;
  }
};

struct Mxfp4 {
  static constexpr std::int64_t bytes = 17, steps = 1, scale_bytes = 16;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) { to[row] = block[0]; }
  static void codes(const std::byte* block, std::int64_t, Codes& to) { nibbles(block + 1, to); }
};

/// Eight scales and eight minima of 6 bits in 12 bytes: the lower bits of the last four are nibbles, their upper bits are above those of
/// the first four.
struct PackedScales {
  static constexpr std::int64_t steps = 8, scale_bytes = 320;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block, row, to);
    put_half(block + 2, row, to + 32);
    const std::byte* const packed = block + 4;
    for (std::int64_t s = 0; s < 8; ++s) {
      const unsigned low = byte_at(packed, s < 4 ? s : s + 4);
      const unsigned scale = s < 4 ? low & 63u : (low & 15u) | (byte_at(packed, s - 4) >> 6u) << 4;
      const unsigned minimum = s < 4 ? byte_at(packed, s + 4) & 63u : low >> 4 | (byte_at(packed, s) >> 6u) << 4;
      put(to, 64 + 16 * s + row, scale);
      put(to, 192 + 16 * s + row, minimum);
    }
  }
};

struct Q4_K : PackedScales {
  static constexpr std::int64_t bytes = 144;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) { shared_nibbles(block + 16, step, to); }
};

struct Q5_K : PackedScales {
  static constexpr std::int64_t bytes = 176;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    shared_nibbles(block + 48, step, to);
    for (int half = 0; half < 2; ++half) to.half[half] |= (load_half(block + 16 + 16 * half) >> static_cast<std::uint8_t>(step) & 1) << 4;
  }
};

struct Q6_K {
  static constexpr std::int64_t bytes = 210, steps = 8, scale_bytes = 288;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block + 208, row, to);
    for (std::int64_t half = 0; half < 16; ++half) to[32 + 16 * half + row] = block[192 + half];
  }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    const std::int64_t part = step / 4, quarter = step % 4;  // a half of the block; which 32 of its 128 values
    const std::byte *low = block + part * 64 + quarter % 2 * 32, *upper = block + 128 + part * 32;
    const auto low_shift = static_cast<std::uint8_t>(quarter / 2 * 4), upper_shift = static_cast<std::uint8_t>(2 * quarter);
    for (int half = 0; half < 2; ++half)
      to.half[half] = (load_half(low + 16 * half) >> low_shift & 15) | (load_half(upper + 16 * half) >> upper_shift & 3) << 4;
  }
};

struct Iq4Xs {
  static constexpr std::int64_t bytes = 136, steps = 8, scale_bytes = 160;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block, row, to);
    std::uint16_t upper;
    std::memcpy(&upper, block + 2, sizeof upper);
    for (std::int64_t s = 0; s < 8; ++s) {
      const unsigned scale = (byte_at(block + 4, s / 2) >> (s % 2 * 4) & 15u) | (unsigned{upper} >> (2 * s) & 3u) << 4;
      put(to, 32 + 16 * s + row, scale - 32);
    }
  }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) { nibbles(block + 8 + 16 * step, to); }
};

/// Two bits of one of the four steps that share 32 bytes.
void shared_pairs(const std::byte* from, std::int64_t step, Codes& codes) {
  for (int half = 0; half < 2; ++half)
    codes.half[half] = load_half(from + step / 4 * 32 + 16 * half) >> static_cast<std::uint8_t>(step % 4 * 2) & 3;
}

struct Q2_K {
  static constexpr std::int64_t bytes = 84, steps = 8, scale_bytes = 576;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block + 80, row, to);
    put_half(block + 82, row, to + 32);
    for (std::int64_t half = 0; half < 16; ++half) {
      put(to, 64 + 16 * half + row, byte_at(block, half) & 15u);
      put(to, 320 + 16 * half + row, byte_at(block, half) >> 4u);
    }
  }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) { shared_pairs(block + 16, step, to); }
};

struct Q3_K {
  static constexpr std::int64_t bytes = 110, steps = 8, scale_bytes = 288;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block + 108, row, to);
    for (std::int64_t half = 0; half < 16; ++half) {
      const unsigned low = byte_at(block + 96, half % 8) >> (half / 8 * 4) & 15u,
                     upper = byte_at(block + 104, half % 4) >> (half / 4 * 2) & 3u;
      put(to, 32 + 16 * half + row, (low | upper << 4) - 32);
    }
  }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    shared_pairs(block + 32, step, to);
    for (int half = 0; half < 2; ++half) to.half[half] |= (load_half(block + 16 * half) >> static_cast<std::uint8_t>(step) & 1) << 2;
  }
};

struct Q8_K {
  static constexpr std::int64_t bytes = 292, steps = 8, scale_bytes = 64;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) { std::memcpy(to + 4 * row, block, 4); }
  static void codes(const std::byte* block, std::int64_t step, Codes& to) { Q8_0::codes(block + 2 + 32 * step, 0, to); }
};

/// One scale for a block.
template <std::int64_t scale_at>
struct OneScale {
  static constexpr std::int64_t steps = 8, scale_bytes = 160;
  static void scales(const std::byte* block, std::int64_t row, std::byte* to) {
    put_half(block + scale_at, row, to);
    for (std::int64_t s = 0; s < steps; ++s) put(to, 32 + 16 * s + row, 1);
  }
};

struct Tq2_0 : OneScale<quant::TQ2_0::scale_at> {
  static constexpr std::int64_t bytes = 66;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) { shared_pairs(block, step, to); }
};

struct Tq1_0 : OneScale<quant::TQ1_0::scale_at> {
  static constexpr std::int64_t bytes = 54;
  static void codes(const std::byte* block, std::int64_t step, Codes& to) {
    for (int i = 0; i < 32; ++i) {
      const int j = static_cast<int>(32 * step) + i;
      const unsigned byte = byte_at(block, quant::TQ1_0::byte_of(j));
      const unsigned power = quant::TQ1_0::powers[static_cast<std::size_t>(quant::TQ1_0::digit_of(j))];
      to.half[i / 16][i % 16] = static_cast<std::uint8_t>((byte * power & 255u) * 3 >> 8);
    }
  }
};

}  // namespace

void pack_q4_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q4_0, InNibbles>(rows, blocks, scales, codes);
}
void pack_q4_1(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q4_1, InNibbles>(rows, blocks, scales, codes);
}
void pack_q5_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q5_0, InFiveBits>(rows, blocks, scales, codes);
}
void pack_q5_1(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q5_1, InFiveBits>(rows, blocks, scales, codes);
}
void pack_q8_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q8_0, InBytes>(rows, blocks, scales, codes);
}
void pack_q4_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q4_K, InNibbles>(rows, blocks, scales, codes);
}
void pack_q5_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q5_K, InFiveBits>(rows, blocks, scales, codes);
}
void pack_q6_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q6_K, InSixBits>(rows, blocks, scales, codes);
}
void pack_iq4_nl(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q4_0, InNibbles>(rows, blocks, scales, codes);
}
void pack_iq4_xs(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Iq4Xs, InNibbles>(rows, blocks, scales, codes);
}
void pack_mxfp4(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Mxfp4, InNibbles>(rows, blocks, scales, codes);
}
void pack_nvfp4(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Nvfp4, InNibbles>(rows, blocks, scales, codes);
}
void pack_q8_1(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q8_1, InBytes>(rows, blocks, scales, codes);
}
void pack_q8_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q8_K, InBytes>(rows, blocks, scales, codes);
}
void pack_q2_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q2_K, InTwoBits>(rows, blocks, scales, codes);
}
void pack_q3_k(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Q3_K, InThreeBits>(rows, blocks, scales, codes);
}
void pack_tq1_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Tq1_0, InTwoBits>(rows, blocks, scales, codes);
}
void pack_tq2_0(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  pack<Tq2_0, InTwoBits>(rows, blocks, scales, codes);
}

}  // namespace rlx::cpu
