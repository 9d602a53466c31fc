#pragma once
#include <cstring>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

// Numbers of several groups of values side by side: encoders search for all of them at once, and no lane ever meets another.

namespace rlx::quant {

inline constexpr int lanes = 4;
using Lanes = float __attribute__((vector_size(lanes * sizeof(float))));

inline Lanes load(const float* from) {
  Lanes value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store(float* to, const Lanes& value) { std::memcpy(to, &value, sizeof value); }
inline Lanes all(float value) { return Lanes{} + value; }

#if defined(__SSE__)
inline Lanes smaller(Lanes a, Lanes b) { return _mm_min_ps(a, b); }  // GCC makes four instructions of the expressions below
inline Lanes larger(Lanes a, Lanes b) { return _mm_max_ps(a, b); }
#else
inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
#endif
inline Lanes magnitude(Lanes a) { return larger(a, -a); }

/// The nearest integer, ties to even, of what lies within 2^22.
inline Lanes nearest(Lanes value) {
  constexpr float shift = 0x1.8p23f;
  return (value + shift) - shift;
}

/// 1 / value, or 0 where that is 0.
inline Lanes inverse(Lanes value) { return value == 0.0f ? Lanes{} : 1.0f / value; }

/// a / b, or 0 where b is not positive.
inline Lanes ratio(Lanes a, Lanes b) { return b > 0.0f ? a / b : Lanes{}; }

}  // namespace rlx::quant
