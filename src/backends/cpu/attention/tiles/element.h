#pragma once
#include <cstdint>

#include "backends/cpu/gemm/micro_kernels/panel_format.h"

namespace rlx::cpu {

// Inlined everywhere, as files for different instruction sets use them: the linker would keep one copy for all.

/// The elements of attention's operands and result, as the f32 numbers that it computes with.
[[gnu::always_inline]] inline float widened(float x) { return x; }
[[gnu::always_inline]] inline float widened(Bf16 x) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16); }

[[gnu::always_inline]] inline float widened(F16 x) {
  const std::uint32_t sign = (x.bits & 0x8000U) << 16, rest = (x.bits & 0x7fffU) << 13;
  constexpr std::uint32_t rebiased = 112U << 23, least_normal = 1U << 23, infinite = 31U << 23, smallest = 113U << 23;  // smallest: 2^-14
  // Not by a product with 2^112: numbers below 2^-14 would be denormal on the way.
  const std::uint32_t size = rest >= infinite ? rest | 0x7f800000U
                             : rest >= least_normal
                                 ? rest + rebiased
                                 : __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, rest + smallest) - 0x1p-14f);
  return __builtin_bit_cast(float, sign | size);
}

/// The nearest number, ties to even; NaN stays.
[[gnu::always_inline]] inline void assign(float& to, float x) { to = x; }
[[gnu::always_inline]] inline void assign(Bf16& to, float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
  to.bits = static_cast<std::uint16_t>(x != x ? quiet : rounded);
}

}  // namespace rlx::cpu
