#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/machine/portable_vectors.h"
#include "base/half.h"
#include "base/small_float.h"
#include "rlx/dtype.h"

// The element types of stored arrays as C++ types, for loops written by hand.

namespace rlx::cpu {
namespace {

struct Half {
  std::uint16_t bits;
  Half() = default;
  explicit Half(double value) : bits(f16_bits(static_cast<float>(value))) {}
  operator float() const { return f16_value(bits); }  // NOLINT(google-explicit-constructor)
};

struct UpperHalf {
  std::uint16_t bits;
  UpperHalf() = default;
  explicit UpperHalf(double value) : bits(bf16_bits(static_cast<float>(value))) {}
  operator float() const { return bf16_value(bits); }  // NOLINT(google-explicit-constructor)
};

template <const SmallFloat& format>
struct Byte {
  std::uint8_t bits;
  Byte() = default;
  explicit Byte(double value) : bits(static_cast<std::uint8_t>(encode(format, value))) {}
  operator float() const { return values()[bits]; }  // NOLINT(google-explicit-constructor)

 private:
  static const std::array<float, 256>& values() {
    static const std::array<float, 256> all = [] {
      std::array<float, 256> each{};
      for (std::uint32_t i = 0; i < 256; ++i) each[i] = static_cast<float>(decode(format, i));
      return each;
    }();
    return all;
  }
};

template <class T>
inline constexpr bool is_narrow_float = std::is_same_v<T, Half> || std::is_same_v<T, UpperHalf> || std::is_same_v<T, Byte<f8e4m3_format>> ||
                                        std::is_same_v<T, Byte<f8e5m2_format>>;
template <class T>
inline constexpr bool is_complex_number = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// The unsigned integer that is as wide.
template <class E>
using BitsOf =
    std::conditional_t<sizeof(E) == 8, std::uint64_t,
                       std::conditional_t<sizeof(E) == 4, std::uint32_t, std::conditional_t<sizeof(E) == 2, std::uint16_t, std::uint8_t>>>;

/// a * b; of integers that wraps, however narrow they are.
template <class T>
T product(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::uint64_t{a} * b);
  else return a * b;
}

/// What sums and products that go on and on are computed in: floats in f64, however many there are.
template <class S>
using Wide = std::conditional_t<std::is_same_v<S, std::complex<float>>, std::complex<double>,
                                std::conditional_t<is_narrow_float<S> || std::is_same_v<S, float>, double, S>>;

/// Calls `run` with a null pointer to the type of the elements, which are floats.
template <class Run>
void with_float(DType dtype, const Run& run) {
  if (dtype == f32) return run(static_cast<float*>(nullptr));
  if (dtype == f64) return run(static_cast<double*>(nullptr));
  if (dtype == f16) return run(static_cast<Half*>(nullptr));
  if (dtype == bf16) return run(static_cast<UpperHalf*>(nullptr));
  if (dtype == f8e4m3) return run(static_cast<Byte<f8e4m3_format>*>(nullptr));
  run(static_cast<Byte<f8e5m2_format>*>(nullptr));
}

/// The same, for elements of any type that has an order and is not packed; bool as u8.
template <class Run>
void with_ordered(DType dtype, const Run& run) {
  if (is_float(dtype)) return with_float(dtype, run);
  const int bits = info(dtype).bits;
  if (is_signed_int(dtype)) {
    if (bits == 8) return run(static_cast<std::int8_t*>(nullptr));
    if (bits == 16) return run(static_cast<std::int16_t*>(nullptr));
    return bits == 32 ? run(static_cast<std::int32_t*>(nullptr)) : run(static_cast<std::int64_t*>(nullptr));
  }
  if (bits == 8) return run(static_cast<std::uint8_t*>(nullptr));
  if (bits == 16) return run(static_cast<std::uint16_t*>(nullptr));
  return bits == 32 ? run(static_cast<std::uint32_t*>(nullptr)) : run(static_cast<std::uint64_t*>(nullptr));
}

/// The same, for sums and products of numbers that are not packed: integers without sign, as they wrap.
template <class Run>
void with_number(DType dtype, const Run& run) {
  if (is_float(dtype)) return with_float(dtype, run);
  if (dtype == c64) return run(static_cast<std::complex<float>*>(nullptr));
  if (dtype == c128) return run(static_cast<std::complex<double>*>(nullptr));
  const int bits = info(dtype).bits;
  if (bits == 8) return run(static_cast<std::uint8_t*>(nullptr));
  if (bits == 16) return run(static_cast<std::uint16_t*>(nullptr));
  return bits == 32 ? run(static_cast<std::uint32_t*>(nullptr)) : run(static_cast<std::uint64_t*>(nullptr));
}

/// The same, for moving elements of any type: only their width counts.
template <class Run>
void with_width(DType dtype, const Run& run) {
  switch (info(dtype).bits) {
    case 128: return run(static_cast<std::array<std::uint64_t, 2>*>(nullptr));
    case 64: return run(static_cast<std::uint64_t*>(nullptr));
    case 32: return run(static_cast<std::uint32_t*>(nullptr));
    case 16: return run(static_cast<std::uint16_t*>(nullptr));
    default: return run(static_cast<std::uint8_t*>(nullptr));
  }
}

/// Numbers side by side as vectors of 128 bits.
template <class T>
struct Side {
  typedef T Vector __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  static constexpr std::int64_t lanes = 16 / sizeof(T);
};

/// Four elements as floats.
template <class S>
Floats32x4 four_floats(const S* from) {
  if constexpr (std::is_same_v<S, UpperHalf>) return widened_upper_halves(from);
  else if constexpr (std::is_same_v<S, Half>) return widened_halves(from);
  else return Floats32x4{float(from[0]), float(from[1]), float(from[2]), float(from[3])};
}

template <class S>
void to_floats(const S* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) *reinterpret_cast<Side<float>::Vector*>(to + i) = four_floats(from + i);
  for (; i < n; ++i) to[i] = from[i];
}

template <class S>
void from_floats(const float* from, S* to, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<S, UpperHalf>)
    for (; i + 4 <= n; i += 4) {
      const auto bits = reinterpret_cast<Units32x4>(Floats32x4(*reinterpret_cast<const Side<float>::Vector*>(from + i)));
      const auto is_nan = reinterpret_cast<Units32x4>(reinterpret_cast<Ints32x4>(bits & 0x7fffffff) > 0x7f800000);
      const Units32x4 rounded = bits + 0x7fff + ((bits >> 16) & 1);
      const Units16x4 upper = __builtin_convertvector(((is_nan & (bits | 0x400000)) | (~is_nan & rounded)) >> 16, Units16x4);
      std::memcpy(to + i, &upper, sizeof upper);
    }
  for (; i < n; ++i) to[i] = S(from[i]);
}

}  // namespace
}  // namespace rlx::cpu
