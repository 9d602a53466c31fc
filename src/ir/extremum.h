#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace rlx {

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
