#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace rlx {

/// A floating-point format of at most 16 bits: sign, exponent, mantissa. `finite_only` formats (f8e4m3fn) have no infinity and
/// one NaN pattern (all ones); the others follow IEEE 754.
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  bool finite_only;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t exponent_mask() const { return (1u << exponent_bits) - 1; }
  constexpr std::uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
};

inline constexpr SmallFloat f16_format{5, 10, false}, bf16_format{8, 7, false}, f8e4m3_format{4, 3, true}, f8e5m2_format{5, 2, false};

/// The exact value of the bit pattern.
inline double decode(const SmallFloat& format, std::uint32_t bits) {
  const std::uint32_t exponent = (bits >> format.mantissa_bits) & format.exponent_mask();
  const std::uint32_t mantissa = bits & format.mantissa_mask();
  const bool negative = (bits >> (format.exponent_bits + format.mantissa_bits)) & 1;
  double magnitude = 0;
  const bool top = exponent == format.exponent_mask();
  if (top && format.finite_only && mantissa == format.mantissa_mask()) magnitude = std::numeric_limits<double>::quiet_NaN();
  else if (top && !format.finite_only)
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0) magnitude = std::ldexp(static_cast<double>(mantissa), 1 - format.bias() - format.mantissa_bits);
  else
    magnitude = std::ldexp(static_cast<double>(mantissa + (1u << format.mantissa_bits)),
                           static_cast<int>(exponent) - format.bias() - format.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

/// The nearest bit pattern, ties to even; overflow gives infinity, or NaN where the format has none.
inline std::uint32_t encode(const SmallFloat& format, double value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(std::signbit(value)) << (format.exponent_bits + format.mantissa_bits);
  const std::uint32_t all_ones = (format.exponent_mask() << format.mantissa_bits) | format.mantissa_mask();
  const std::uint32_t infinity = format.exponent_mask() << format.mantissa_bits;
  const std::uint32_t overflow = format.finite_only ? all_ones : infinity;
  if (std::isnan(value)) return sign | (format.finite_only ? all_ones : infinity | (1u << (format.mantissa_bits - 1)));
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | overflow;
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int lowest = 1 - format.bias();
  const int scale = std::max(exponent - 1, lowest) - format.mantissa_bits;  // weight of one unit in the last place
  const double rounded =
      std::nearbyint(std::ldexp(magnitude, -scale));  // below 2^(mantissa_bits + 1), so exact; default rounding is half-even
  const auto units = static_cast<std::uint32_t>(rounded);
  // `units` carries the hidden bit: adding it to the exponent field makes a carry move to the next exponent by itself.
  const std::uint32_t bits = (static_cast<std::uint32_t>(scale + format.mantissa_bits - lowest) << format.mantissa_bits) + units;
  const std::uint32_t largest = format.finite_only ? all_ones - 1 : infinity - 1;
  return sign | (bits > largest ? overflow : bits);
}

}  // namespace rlx
