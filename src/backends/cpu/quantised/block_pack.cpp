#include "backends/cpu/quantised/block_pack.h"

#include <array>
#include <cstring>

#include "backends/cpu/quantised/block_kernel.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t columns = BlockKernel::columns;
using Codes = std::array<std::uint8_t, RowFormat::step>;  // of one row in one step

std::uint8_t byte_at(const std::byte* from, std::int64_t i) { return static_cast<std::uint8_t>(from[i]); }
void put(std::byte* to, std::int64_t i, unsigned value) { to[i] = static_cast<std::byte>(value); }

// -- where the codes of a step go: vector j of a step holds the codes 4j to 4j + 3 of all rows

struct InNibbles {
  static constexpr std::int64_t step_bytes = 256;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    for (std::int64_t i = 0; i < 16; ++i)
      put(to, i / 4 * 64 + row * 4 + i % 4,
          (codes[static_cast<std::size_t>(i)] & 15u) | (codes[static_cast<std::size_t>(i + 16)] & 15u) << 4);
  }
};

struct InFiveBits {
  static constexpr std::int64_t step_bytes = InNibbles::step_bytes + 64;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    InNibbles::place(codes, row, to);
    for (std::int64_t b = 0; b < 4; ++b) {
      unsigned fifth = 0;
      for (unsigned j = 0; j < 8; ++j) fifth |= (codes[4 * j + static_cast<std::size_t>(b)] >> 4 & 1u) << j;
      put(to, InNibbles::step_bytes + row * 4 + b, fifth);
    }
  }
};

struct InSixBits {
  static constexpr std::int64_t step_bytes = InNibbles::step_bytes + 128;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    InNibbles::place(codes, row, to);
    for (std::int64_t half = 0; half < 2; ++half)
      for (std::int64_t b = 0; b < 4; ++b) {
        unsigned upper = 0;
        for (unsigned j = 0; j < 4; ++j)
          upper |= (codes[16 * static_cast<std::size_t>(half) + 4 * j + static_cast<std::size_t>(b)] >> 4 & 3u) << (2 * j);
        put(to, InNibbles::step_bytes + half * 64 + row * 4 + b, upper);
      }
  }
};

struct InBytes {
  static constexpr std::int64_t step_bytes = 512;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    for (std::int64_t j = 0; j < 8; ++j) std::memcpy(to + j * 64 + row * 4, codes.data() + 4 * j, 4);
  }
};

// -- what the blocks of a file hold

void nibbles(const std::byte* from, Codes& codes) {
  for (std::size_t i = 0; i < 16; ++i)
    codes[i] = byte_at(from, static_cast<std::int64_t>(i)) & 15, codes[i + 16] = byte_at(from, static_cast<std::int64_t>(i)) >> 4;
}

/// Nibbles of one of the two steps that share 32 bytes.
void shared_nibbles(const std::byte* from, std::int64_t step, Codes& codes) {
  const unsigned shift = step % 2 != 0 ? 4 : 0;
  for (std::size_t i = 0; i < 32; ++i) codes[i] = byte_at(from + step / 2 * 32, static_cast<std::int64_t>(i)) >> shift & 15;
}

void add_fifth_bits(const std::byte* from, Codes& codes) {
  std::uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  for (std::size_t i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] | (bits >> i & 1u) << 4);
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
    for (std::size_t i = 0; i < 32; ++i) to[i] = byte_at(block + 2, static_cast<std::int64_t>(i)) ^ 128;
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
    for (std::size_t i = 0; i < 32; ++i)
      to[i] =
          static_cast<std::uint8_t>(to[i] | (byte_at(block + 16, static_cast<std::int64_t>(i)) >> static_cast<unsigned>(step) & 1u) << 4);
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
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned nibble = byte_at(low, static_cast<std::int64_t>(i)) >> (quarter / 2 * 4) & 15u;
      to[i] = static_cast<std::uint8_t>(nibble | (byte_at(upper, static_cast<std::int64_t>(i)) >> (2 * quarter) & 3u) << 4);
    }
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
  for (std::int64_t row = 0; row < columns; ++row) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::byte* const from = rows[row] ? rows[row] + block * Blocks::bytes : nullptr;
      if (from) Blocks::scales(from, row, scales + block * Blocks::scale_bytes);
      for (std::int64_t step = 0; step < Blocks::steps; ++step) {
        Codes of_step{};
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
