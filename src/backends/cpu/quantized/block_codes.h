#pragma once
#include <cstddef>
#include <cstdint>

// How the codes and the scales of a step are found in a panel (see BlockKernel), for any vectors. A step of 32 values is eight vectors of
// codes: vector j holds the codes 4j to 4j + 3 of the 16 rows of weights. What differs between the block types is found here.
//
// `V`, the vectors of an instruction set, hold `lanes` rows of weights: Fours of codes, by four, Ints and Floats. `raised` says whether
// codes with a sign are raised by 128; the numbers that look_up finds for nibbles are. A panel may be taken in pieces of fewer rows than it
// has: codes from where those of a piece begin, scales by `column`, its first row.

namespace rlx::cpu {
namespace {

template <class T>
T read_as(const std::byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

// -- codes; none is larger than `most`, its sign aside, which it has if `with_sign`

/// 4 bits: the low halves of bytes are the first 16 codes of a step, the high ones the last 16.
template <class V>
struct Nibbles {
  static constexpr std::int64_t step_bytes = 256;
  static constexpr int most = 15;
  static constexpr bool with_sign = false;
  static void unpack(const std::byte* from, typename V::Fours (&codes)[8]) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto both = read_as<typename V::Fours>(from + 64 * j);
      codes[j] = both & 0x0f0f0f0f;
      codes[4 + j] = (both >> 4) & 0x0f0f0f0f;
    }
  }
};

/// 2 bits: two vectors with those of four vectors of codes each.
template <class V>
struct TwoBits {
  static constexpr std::int64_t step_bytes = 128;
  static constexpr int most = 3;
  static constexpr bool with_sign = false;
  static void unpack(const std::byte* from, typename V::Fours (&codes)[8]) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] = (read_as<typename V::Fours>(from + 64 * (j / 4)) >> (2 * (j % 4))) & 0x03030303;
  }
};

/// 3 bits: two bits, and in the byte behind them for each place of a vector the third bits of its eight codes.
template <class V>
struct ThreeBits {
  static constexpr std::int64_t step_bytes = TwoBits<V>::step_bytes + 64;
  static constexpr int most = 7;
  static constexpr bool with_sign = false;
  static void unpack(const std::byte* from, typename V::Fours (&codes)[8]) {
    TwoBits<V>::unpack(from, codes);
    const auto third = read_as<typename V::Fours>(from + TwoBits<V>::step_bytes);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] |= (j < 2 ? third << (2 - j) : third >> (j - 2)) & 0x04040404;
  }
};

/// Codes of up to 4 bits that name one of 16 numbers, none larger than `largest`.
template <class V, class Names, const std::int8_t (&table)[16], int largest>
struct Named {
  static constexpr std::int64_t step_bytes = Names::step_bytes;
  static constexpr int most = largest;
  static constexpr bool with_sign = true;
  static void unpack(const std::byte* from, typename V::Fours (&codes)[8]) {
    Names::unpack(from, codes);
#pragma GCC unroll 8
    for (auto& code : codes) code = V::look_up(table, code);
  }
};

/// 5 bits: nibbles, and in the byte behind them for each place of a vector the fifth bits of its eight codes.
template <class V>
struct FiveBits {
  static constexpr std::int64_t step_bytes = Nibbles<V>::step_bytes + 64;
  static constexpr int most = 31;
  static constexpr bool with_sign = false;
  static void unpack(const std::byte* from, typename V::Fours (&codes)[8]) {
    Nibbles<V>::unpack(from, codes);
    const auto fifth = read_as<typename V::Fours>(from + Nibbles<V>::step_bytes);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] |= (j < 4 ? fifth << (4 - j) : fifth >> (j - 4)) & 0x10101010;
  }
};

/// 6 bits: nibbles, and two vectors with the upper two bits of four vectors of codes each.
template <class V>
struct SixBits {
  static constexpr std::int64_t step_bytes = Nibbles<V>::step_bytes + 128;
  static constexpr int most = 63;
  static constexpr bool with_sign = false;
  static void unpack(const std::byte* from, typename V::Fours (&codes)[8]) {
    Nibbles<V>::unpack(from, codes);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const auto upper = read_as<typename V::Fours>(from + Nibbles<V>::step_bytes + 64 * (j / 4));
      const int up = 4 - 2 * (j % 4);
      codes[j] |= (up >= 0 ? upper << up : upper >> -up) & 0x30303030;
    }
  }
};

/// 8 bits, raised by 128.
template <class V>
struct WholeBytes {
  static constexpr std::int64_t step_bytes = 512;
  static constexpr int most = 128;
  static constexpr bool with_sign = true;
  static void unpack(const std::byte* from, typename V::Fours (&codes)[8]) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) codes[j] = read_as<typename V::Fours>(from + 64 * j) ^ (V::raised ? 0 : 0x80808080);
  }
};

// -- scales

template <class V>
typename V::Floats unsigned_bytes(const std::byte* from) {
  return __builtin_convertvector(V::unsigned_bytes(from), typename V::Floats);
}
template <class V>
typename V::Floats signed_bytes(const std::byte* from) {
  return __builtin_convertvector(V::signed_bytes(from), typename V::Floats);
}

/// One half-precision scale for a step.
template <class V>
struct HalfScale {
  static constexpr std::int64_t steps = 1, bytes = 32;
  explicit HalfScale(const std::byte* from, int column = 0) : d(V::halves(from + 2 * column)) {}
  typename V::Floats scale(std::int64_t, int) const { return d; }
  typename V::Floats d;
};

/// One scale in single precision for eight steps.
template <class V>
struct WholeScale {
  static constexpr std::int64_t steps = 8, bytes = 64;
  explicit WholeScale(const std::byte* from, int column = 0) : d(read_as<typename V::Floats>(from + 4 * column)) {}
  typename V::Floats scale(std::int64_t, int) const { return d; }
  typename V::Floats d;
};

/// A scale and the number that stands for code 0.
template <class V>
struct HalfScaleAndStart {
  static constexpr std::int64_t steps = 1, bytes = 64;
  explicit HalfScaleAndStart(const std::byte* from, int column = 0)
      : d(V::halves(from + 2 * column)), m(V::halves(from + 32 + 2 * column)) {}
  typename V::Floats scale(std::int64_t, int) const { return d; }
  typename V::Floats minimum(std::int64_t, int) const { return m; }
  typename V::Floats d, m;
};

/// Powers of two: the biased exponent of twice the scale, as the codes are doubled.
template <class V>
struct ExponentScale {
  static constexpr std::int64_t steps = 1, bytes = 16;
  explicit ExponentScale(const std::byte* from, int column = 0) {
    const typename V::Ints e = V::unsigned_bytes(from + column);
    const typename V::Ints normal = (e - 1) << 23, tiny = (e + 1) << 21;  // e of 0 and 1: below the normal floats
    d = reinterpret_cast<typename V::Floats>(e < 2 ? tiny : normal);
  }
  typename V::Floats scale(std::int64_t, int) const { return d; }
  typename V::Floats d;
};

/// Two steps with a half-precision scale for each half.
template <class V>
struct HalfScales {
  static constexpr std::int64_t steps = 2, bytes = 128;
  explicit HalfScales(const std::byte* from, int column = 0) : at(from + 2 * column) {}
  typename V::Floats scale(std::int64_t step, int half) const { return V::halves(at + 32 * (2 * step + half)); }
  const std::byte* at;
};

/// Eight steps whose halves (or wholes) have scales and minima of bytes in units of one half-precision number each.
template <class V, int halves>
struct SuperScaleAndMinimum {
  static constexpr std::int64_t steps = 8, bytes = 64 + 256 * halves;
  explicit SuperScaleAndMinimum(const std::byte* from, int column = 0)
      : at(from + column), d(V::halves(from + 2 * column)), m(typename V::Floats{} - V::halves(from + 32 + 2 * column)) {}
  typename V::Floats scale(std::int64_t step, int half) const { return d * unsigned_bytes<V>(at + 64 + 16 * (step * halves + half)); }
  typename V::Floats minimum(std::int64_t step, int half) const {
    return m * unsigned_bytes<V>(at + 64 + 128 * halves + 16 * (step * halves + half));
  }
  const std::byte* at;
  typename V::Floats d, m;
};

/// Eight steps whose halves (or wholes) have scales of signed bytes in units of one half-precision number over `divisor`, a power of two.
template <class V, int halves, int divisor = 1>
struct SuperScale {
  static constexpr std::int64_t steps = 8, bytes = 32 + 128 * halves;
  explicit SuperScale(const std::byte* from, int column = 0) : at(from + column), d(V::halves(from + 2 * column) * (1.0F / divisor)) {}
  typename V::Floats scale(std::int64_t step, int half) const { return d * signed_bytes<V>(at + 32 + 16 * (step * halves + half)); }
  const std::byte* at;
  typename V::Floats d;
};

}  // namespace
}  // namespace rlx::cpu
