#pragma once
#include <concepts>
#include <optional>

namespace rlx {

/// Arithmetic on sizes that a file or a caller gave: nothing when the exact result does not fit the type.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_sub(T a, T b) {
  T result{};
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// The product of all sizes (1 when there is none), or nothing when any partial product overflows, even if a later size is 0.
template <class Range>
[[nodiscard]] constexpr auto checked_product(const Range& sizes) {
  using T = std::remove_cvref_t<decltype(*std::begin(sizes))>;
  std::optional<T> product = T{1};
  for (T size : sizes) {
    product = checked_mul(*product, size);
    if (!product) break;
  }
  return product;
}

}  // namespace rlx
