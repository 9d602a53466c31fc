#pragma once
#include <limits>

#include "kernel/term.h"

// Elementary functions as formulas of basic operations on f32. All polynomials are minimax fits of the error relative to the function.
namespace rlx::math {

inline constexpr double ln2 = 0.69314718055994530942;
inline constexpr double ln2_high = 0.693147182464599609375;  // nearest f32
inline constexpr double ln2_low = -1.9046543231482357e-9;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double smallest_normal = 1.17549435082228750797e-38;

Term exp(const Term& x);
Term expm1(const Term& x);
Term tanh(const Term& x);
Term erf(const Term& x);
Term log(const Term& x);
Term log1p(const Term& x);
Term pow(const Term& x, const Term& y);
Term sin(const Term& x);
Term cos(const Term& x);
Term atan(const Term& x);

/// The integer nearest to x * scale: as a number, and in the low bits of an integer of the same width whose other bits are
/// those of `offset`. Adding 1.5 * 2^mantissa_bits leaves no room for a fraction, which is cheaper than rounding and converting.
/// |x * scale| < 2^22 (f32) or 2^51 (f64).
struct Nearest {
  Term number;
  Term bits;
};
inline Nearest nearest(const Term& x, const TermOrNumber& scale) {
  const bool wide = x.dtype() == f64;
  const double magic = wide ? 6755399441055744.0 : 12582912.0;
  const Term shifted = fma(x, scale, magic);
  return {shifted - magic, bitcast(shifted, wide ? i64 : i32)};
}

/// The f32 2^k for an integer k in the low bits of `bits`, -126 <= k <= 127; what is above the lowest 9 bits falls out.
inline Term power_of_two(const Term& bits) { return bitcast((bits << 23) + 0x3F800000, f32); }

/// |magnitude| with the sign of x; magnitude >= 0 or NaN.
inline Term with_sign_of(const Term& magnitude, const Term& x) {
  constexpr double sign_bit = -2147483648.0;
  return bitcast(bitcast(magnitude, i32) | (bitcast(x, i32) & sign_bit), f32);
}

/// sin r for |r| <= pi/2, as r (27/32 + P(r^2 - 1)). sin r / r is 27/32 in the middle, so that P, which is rounded, stays below 1/4 of
/// it: one polynomial does for a half turn.
inline Term sine_of_half_turn(const Term& r, std::initializer_list<double> coefficients) {
  return fma(r, 0.84375, r * polynomial(fma(r, r, -1), coefficients));
}

/// `x`, but at most `limit`; NaN stays.
inline Term at_most(const Term& x, double limit) { return select(x > limit, limit, x); }
inline Term at_least(const Term& x, double limit) { return select(x < limit, limit, x); }

}  // namespace rlx::math
