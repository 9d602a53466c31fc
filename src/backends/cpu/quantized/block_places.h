#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/quantized/block_kernel.h"

// Where the codes of a step lie in a panel of BlockKernel, as block_codes.h reads them, and the loop over the blocks of a file's rows.

namespace rlx::cpu {
namespace {

constexpr std::int64_t columns = BlockKernel::columns;

// Codes are worked on sixteen at a time, in the compiler's own vectors.
typedef std::uint8_t Half __attribute__((vector_size(16)));
typedef std::uint32_t Fours __attribute__((vector_size(16)));  // the same by four
struct Codes {
  Half half[2] = {};  // of one row in one step
};

inline std::uint8_t byte_at(const std::byte* from, std::int64_t i) { return static_cast<std::uint8_t>(from[i]); }
inline void put(std::byte* to, std::int64_t i, unsigned value) { to[i] = static_cast<std::byte>(value); }

inline Half load_half(const std::byte* from) {
  Half half;
  std::memcpy(&half, from, sizeof half);
  return half;
}

// -- where the codes of a step go: vector j of a step holds the codes 4j to 4j + 3 of all rows

inline void put_fours(Half half, std::int64_t row, std::byte* to) {
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

/// Bits of sixteen codes, `width` of each from bit `first` on: those of the codes 4j to 4j + 3 in the bits width * j of four bytes.
inline std::uint32_t some_bits(Half codes, int first, int width) {
  const Fours some = reinterpret_cast<Fours>((codes >> static_cast<std::uint8_t>(first)) & static_cast<std::uint8_t>((1 << width) - 1));
  return some[0] | some[1] << width | some[2] << (2 * width) | some[3] << (3 * width);
}

/// One bit of each code of a step.
inline void put_plane(const Codes& codes, int bit, std::int64_t row, std::byte* to) {
  const std::uint32_t plane = some_bits(codes.half[0], bit, 1) | some_bits(codes.half[1], bit, 1) << 4;
  std::memcpy(to + row * 4, &plane, 4);
}

/// Two bits of each code of a step.
inline void put_pairs(const Codes& codes, int first, std::int64_t row, std::byte* to) {
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t pairs = some_bits(codes.half[half], first, 2);
    std::memcpy(to + half * 64 + row * 4, &pairs, 4);
  }
}

struct InTwoBits {
  static constexpr std::int64_t step_bytes = 128;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) { put_pairs(codes, 0, row, to); }
};

/// Codes of one bit more than `Lower` holds: the plane of bit `bit` lies behind them.
template <class Lower, int bit>
struct WithPlane {
  static constexpr std::int64_t step_bytes = Lower::step_bytes + 64;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    Lower::place(codes, row, to);
    put_plane(codes, bit, row, to + Lower::step_bytes);
  }
};

using InThreeBits = WithPlane<InTwoBits, 2>;
using InFiveBits = WithPlane<InNibbles, 4>;

struct InSixBits {
  static constexpr std::int64_t step_bytes = InNibbles::step_bytes + 128;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    InNibbles::place(codes, row, to);
    put_pairs(codes, 4, row, to + InNibbles::step_bytes);
  }
};

struct InBytes {
  static constexpr std::int64_t step_bytes = 512;
  static void place(const Codes& codes, std::int64_t row, std::byte* to) {
    put_fours(codes.half[0], row, to);
    put_fours(codes.half[1], row, to + 256);
  }
};

inline void put_half(const std::byte* from, std::int64_t row, std::byte* to) { std::memcpy(to + 2 * row, from, 2); }

/// `Blocks` says how a type's blocks hold their scales and codes, `Places` where those go.
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
}  // namespace rlx::cpu
