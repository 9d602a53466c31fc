#pragma once
#include <cstdint>

namespace rlx::cpu {

/// A number in bfloat16 as it lies in memory.
struct Bf16 {
  std::uint16_t bits = 0;
};

/// A number in half precision as it lies in memory: an element of B, for products with floats.
struct F16 {
  std::uint16_t bits = 0;
};

/// A bf16 number as an element of B, for products with floats.
struct Bf16Weight {
  std::uint16_t bits = 0;
};

/// How products of elements T are computed: `group` neighbouring steps of depth lie side by side in one unit of a packed panel, and sums
/// are of another type where the products need it. Products of two bf16 numbers, and of two 8-bit integers, are exact in it. B is of T, and
/// A of `Left`.
template <class T>
struct Format {
  using Left = T;
  using Packed = T;
  using Sum = T;
  static constexpr std::int64_t group = 1;
};
template <>
struct Format<Bf16> {
  using Left = Bf16;
  using Packed = std::uint32_t;
  using Sum = float;
  static constexpr std::int64_t group = 2;
};
template <>
struct Format<F16> {
  using Left = float;
  using Packed = std::uint16_t;
  using Sum = float;
  static constexpr std::int64_t group = 1;
};
template <>
struct Format<Bf16Weight> : Format<F16> {};
template <>
struct Format<std::int8_t> {
  using Left = std::int8_t;
  using Packed = std::uint32_t;
  using Sum = std::int32_t;
  static constexpr std::int64_t group = 4;
};

template <class T>
using Packed = typename Format<T>::Packed;
template <class T>
using Left = typename Format<T>::Left;
template <class T>
using Sum = typename Format<T>::Sum;

/// The units that hold so many steps of depth.
template <class T>
constexpr std::int64_t units_of(std::int64_t depth) {
  return depth / Format<T>::group + (depth % Format<T>::group != 0);
}

}  // namespace rlx::cpu
