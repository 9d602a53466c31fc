#pragma once
#include <array>
#include <string_view>

#include "backends/mlx/library/arrays.h"
#include "quant/block.h"

// The reader of blocks with which MLX decodes the schemes of src/quant, and its numbers: see quant/block.h. Each is an array over (blocks,
// values of one), or what is broadcast to that.

namespace rlx::mlx {

/// Integers of 32 bits, numbers of f32, or conditions.
struct Numbers {
  Numbers(int one) : all(one) {}    // NOLINT(google-explicit-constructor): layouts mix both
  Numbers(float one) : all(one) {}  // NOLINT(google-explicit-constructor)
  explicit Numbers(mx::array given) : all(std::move(given)) {}
  mx::array all;
};

inline Numbers operator+(const Numbers& a, const Numbers& b) { return Numbers(mx::add(a.all, b.all)); }
inline Numbers operator-(const Numbers& a, const Numbers& b) { return Numbers(mx::subtract(a.all, b.all)); }
inline Numbers operator-(const Numbers& a) { return Numbers(mx::negative(a.all)); }
inline Numbers operator*(const Numbers& a, const Numbers& b) { return Numbers(mx::multiply(a.all, b.all)); }
inline Numbers operator/(const Numbers& a, int b) { return Numbers(mx::floor_divide(a.all, mx::array(b))); }
inline Numbers operator%(const Numbers& a, int b) { return Numbers(mx::remainder(a.all, mx::array(b))); }
inline Numbers operator&(const Numbers& a, const Numbers& b) { return Numbers(mx::bitwise_and(a.all, b.all)); }
inline Numbers operator|(const Numbers& a, const Numbers& b) { return Numbers(mx::bitwise_or(a.all, b.all)); }
inline Numbers operator<<(const Numbers& a, const Numbers& b) { return Numbers(mx::left_shift(a.all, b.all)); }
inline Numbers operator>>(const Numbers& a, const Numbers& b) { return Numbers(mx::right_shift(a.all, b.all)); }
inline Numbers operator<(const Numbers& a, int b) { return Numbers(mx::less(a.all, mx::array(b))); }
inline Numbers operator==(const Numbers& a, int b) { return Numbers(mx::equal(a.all, mx::array(b))); }
inline Numbers operator!=(const Numbers& a, int b) { return Numbers(mx::not_equal(a.all, mx::array(b))); }
inline Numbers real(const Numbers& a) { return Numbers(mx::astype(a.all, mx::float32)); }
inline Numbers float_of_bits(const Numbers& bits) { return Numbers(mx::view(bits.all, mx::float32)); }
inline Numbers half_of_bits(const Numbers& bits) { return real(Numbers(mx::view(mx::astype(bits.all, mx::uint16), mx::float16))); }
inline Numbers select(const Numbers& condition, const Numbers& yes, const Numbers& no) {
  return Numbers(mx::where(condition.all, yes.all, no.all));
}
template <class Entry, std::size_t size>
Numbers look_up(const std::array<Entry, size>& table, const Numbers& at) {
  return Numbers(mx::take(mx::astype(mx::array(table.begin(), {static_cast<int>(size)}), mx::int32), at.all));
}

/// Blocks side by side: bytes (blocks, bytes of one).
struct Blocks {
  mx::array bytes;

  Numbers u8(const Numbers& offset) const {
    const mx::array line = offset.all.ndim() == 0 ? mx::reshape(offset.all, {1}) : offset.all;
    return Numbers(mx::astype(mx::take(bytes, line, 1), mx::int32));
  }
  Numbers i8(const Numbers& offset) const { return u8(offset) << 24 >> 24; }
  Numbers u16(const Numbers& offset) const { return u8(offset) | u8(offset + 1) << 8; }
  Numbers i32(const Numbers& offset) const { return u16(offset) | u16(offset + 2) << 16; }
  Numbers f16(const Numbers& offset) const { return half_of_bits(u16(offset)); }
  Numbers f32(const Numbers& offset) const { return float_of_bits(i32(offset)); }
};

/// The f32 values of blocks of a GGUF type, bytes (..., bytes) as (..., values).
mx::array decoded(std::string_view type, const mx::array& blocks);

}  // namespace rlx::mlx
