#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/half.h"

// What the layouts of block formats are written in. A scheme gives the value of element j of a block as an expression over a reader of
// blocks and an index: plain loops take BlockBytes and int, and whoever compiles the expression brings a reader and an index of his own,
// with the functions below for them. Integers are of 32 bits, offsets count bytes from the start of the block.

namespace rlx::quant {

static_assert(std::endian::native == std::endian::little, "blocks are read in place");

/// A block in memory.
struct BlockBytes {
  const std::byte* bytes;

  template <class T>
  T read(int offset) const {
    T value{};
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  }
  int u8(int offset) const { return read<std::uint8_t>(offset); }
  int i8(int offset) const { return read<std::int8_t>(offset); }
  int u16(int offset) const { return read<std::uint16_t>(offset); }
  int i32(int offset) const { return read<std::int32_t>(offset); }
  float f16(int offset) const { return f16_value(read<std::uint16_t>(offset)); }
  float f32(int offset) const { return read<float>(offset); }
};

inline float real(int value) { return static_cast<float>(value); }
inline float float_of_bits(int bits) { return std::bit_cast<float>(bits); }
inline float half_of_bits(int bits) { return f16_value(static_cast<std::uint16_t>(bits)); }
inline float select(bool condition, float yes, float no) { return condition ? yes : no; }
inline int select(bool condition, int yes, int no) { return condition ? yes : no; }
template <class Table>
int look_up(const Table& table, int index) {
  return table[static_cast<std::size_t>(index)];
}

/// `width` bits of the byte at offset `byte`, from bit `shift` on, which are the bits of a stored integer from bit `place` on. Reading and
/// writing of a format come from the same fields.
template <class Byte, class Shift>
struct BitField {
  Byte byte;
  Shift shift;
  int width;
  int place = 0;

  constexpr int mask() const { return (1 << width) - 1; }
};

template <class Block, class Byte, class Shift>
auto get(const Block& block, const BitField<Byte, Shift>& field) {
  return ((block.u8(field.byte) >> field.shift) & field.mask()) << field.place;
}

/// Writes the field's part of `value` over bits that are zero.
inline void put(std::byte* block, const BitField<int, int>& field, int value) {
  block[field.byte] |= static_cast<std::byte>(((value >> field.place) & field.mask()) << field.shift);
}

/// Writes a number over whatever is there.
template <class T>
void put(std::byte* block, int offset, T value) {
  std::memcpy(block + offset, &value, sizeof value);
}

/// The value of each element of the blocks, `count` in all. Each loop runs over 16 elements of known place, so that the compiler finds what
/// they share, such as their scale: two to ten times faster than one loop over the block.
template <class Scheme>
[[gnu::flatten]] void decode_blocks(const std::byte* __restrict blocks, float* __restrict values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += Scheme::values) {
    const BlockBytes block{blocks + i / Scheme::values * Scheme::bytes};
    [&]<int... part>(std::integer_sequence<int, part...>) {
      const auto decode_part = [&](auto first) {
        for (int j = first; j < first + 16; ++j) values[i + j] = Scheme::value(block, j);
      };
      (decode_part(std::integral_constant<int, part * 16>{}), ...);
    }(std::make_integer_sequence<int, Scheme::values / 16>{});
  }
}

}  // namespace rlx::quant
