#pragma once
#include <bit>
#include <cmath>

#include "backends/cpu/gemm/format.h"

namespace rlx::cpu {

/// The elements of attention's operands and result as the f32 numbers that it computes with.
inline float widened(float x) { return x; }
inline float widened(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

/// Rounded to the nearest, ties to even; NaN stays.
inline void assign(float& to, float x) { to = x; }
inline void assign(Bf16& to, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
  to.bits = static_cast<std::uint16_t>(std::isnan(x) ? quiet : rounded);
}

}  // namespace rlx::cpu
