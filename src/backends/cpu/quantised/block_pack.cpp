#include "backends/cpu/quantised/block_pack.h"

#include <array>
#include <cstring>

#include "backends/cpu/quantised/block_kernel.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t columns = BlockKernel::columns;

// Codes are worked on sixteen at a time, in the compiler's own vectors.
typedef std::uint8_t Half __attribute__((vector_size(16)));
typedef std::uint32_t Fours __attribute__((vector_size(16)));  // the same by four
struct Codes {
  Half half[2] = {};  // of one row in one step
};

std::uint8_t byte_at(const std::byte* from, std::int64_t i) { return static_cast<std::uint8_t>(from[i]); }
void put(std::byte* to, std::int64_t i, unsigned value) { to[i] = static_cast<std::byte>(value); }

Half load_half(const std::byte* from) {
  Half half;
  std::memcpy(&half, from, sizeof half);
  return half;
}

// -- where the codes of a step go: vector j of a step holds the codes 4j to 4j + 3 of all rows

void put_fours(Half half, std::int64_t row, std::byte* to) {
  const Fours fours = reinterpret_cast<Fours>(half);
  for (int j = 0; j < 4; ++j) {
    const std::uint32_t four = fours[j];
    std::memcpy(to + j * 64 + row * 4, &four, 4);
  }
}

struct InNibbles {
  static constexpr std::int64_t step_bytes = 256;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    put_fours((codes.half[0] & 15) | ((codes.half[1] & 15) << 4), row, to);
  }
};

/// The bits above the nibbles of sixteen codes, `width` of each: those of the codes 4j to 4j + 3 in the bits width * j of four bytes.
std::uint32_t upper_bits(Half codes, int width) {
  const Fours upper = reinterpret_cast<Fours>((codes >> 4) & static_cast<std::uint8_t>((1 << width) - 1));
  return upper[0] | upper[1] << width | upper[2] << (2 * width) | upper[3] << (3 * width);
}

struct InFiveBits {
  static constexpr std::int64_t step_bytes = InNibbles::step_bytes + 64;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    InNibbles::place(codes, row, to);
    const std::uint32_t fifth = upper_bits(codes.half[0], 1) | upper_bits(codes.half[1], 1) << 4;
    std::memcpy(to + InNibbles::step_bytes + row * 4, &fifth, 4);
  }
};

struct InSixBits {
  static constexpr std::int64_t step_bytes = InNibbles::step_bytes + 128;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    InNibbles::place(codes, row, to);
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t upper = upper_bits(codes.half[half], 2);
      std::memcpy(to + InNibbles::step_bytes + half * 64 + row * 4, &upper, 4);
    }
  }
};

struct InBytes {
  static constexpr std::int64_t step_bytes = 512;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    put_fours(codes.half[0], row, to);
    put_fours(codes.half[1], row, to + 256);
  }
};

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

void put_half(const std::byte* from, std::int64_t row, std::byte* to) { std::memcpy(to + 2 * row, from, 2); }

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

template <class Blocks, class Places>
void pack(const std::byte* const* rows, std::int64_t blocks, std::byte* scales, std::byte* codes) {
  std::memset(scales, 0, static_cast<std::size_t>(blocks * Blocks::scale_bytes));  // a missing row is zeros
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::int64_t row = 0; row < columns; ++row) {
      const std::byte* const from = rows[row] ? rows[row] + block * Blocks::bytes : nullptr;
      if (from) Blocks::scales(from, row, scales + block * Blocks::scale_bytes);
      for (std::int64_t step = 0; step < Blocks::steps; ++step) {
        Codes of_step;
        if (from) Blocks::codes(from, step, of_step);
        Places::place(of_step, row, codes + (block * Blocks::steps + step) * Places::step_bytes);
      }
    }
  }
}

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

}  // namespace rlx::cpu
