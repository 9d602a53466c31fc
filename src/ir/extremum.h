#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rlx/dtype.h"

namespace rlx {

/// The largest integer of a type.
inline std::uint64_t largest_integer(DType dtype) {
  return ~std::uint64_t{0} >> (64 - (is_bool(dtype) ? 1 : info(dtype).bits) + (is_signed_int(dtype) ? 1 : 0));
}

/// maximum and minimum of IEEE 754-2019: NaN wins, and -0 is below +0. Of integers: the larger, the smaller.
template <class T>
T maximum(T a, T b) {
  if constexpr (std::numeric_limits<T>::has_quiet_NaN) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? b : a;
  }
  return std::max(a, b);
}
template <class T>
T minimum(T a, T b) {
  if constexpr (std::numeric_limits<T>::has_quiet_NaN) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
  }
  return std::min(a, b);
}

}  // namespace rlx
