#pragma once
#include <bit>
#include <cstdint>

// The 16-bit floats as bits, without branches or tables, so that loops over them become vector code. Arithmetic is exact also where the
// thread flushes subnormals to zero.

namespace rlx {

/// The exact value of an IEEE half.
constexpr float f16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  const std::uint32_t exponent_shift = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;  // infinities and NaN keep an exponent of ones
  const std::uint32_t normal = (magnitude << 13) + exponent_shift;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>(sign | (magnitude < 0x400u ? subnormal : normal));
}

/// The nearest IEEE half, ties to even; overflow gives infinity, NaN stays NaN.
constexpr std::uint16_t f16_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // A float in [0.5, 1) has units of 2^-24, those of half's subnormals: the addition rounds.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude >= 0x477ff000u ? special : finite));
}

/// The exact value of a bfloat16: the upper half of a float.
constexpr float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// The nearest bfloat16, ties to even; overflow gives infinity, NaN stays NaN.
constexpr std::uint16_t bf16_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>((is_nan ? bits | 0x400000u : rounded) >> 16);
}

}  // namespace rlx
