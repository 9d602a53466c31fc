#pragma once
#include <array>
#include <initializer_list>
#include <limits>
#include <vector>

#include "kernel/term.h"

// Elementary functions as formulas of basic operations. All polynomials are minimax fits of the error relative to the function, by the
// exchange of Remez; where a scheme of reduction is not our own, its source is named beside it.
namespace rlx::math {

inline constexpr double ln2 = 0.69314718055994530942;
// The same in two, of which the first is an f32.
inline constexpr double ln2_head = 0.693147182464599609375;
inline constexpr double ln2_rest = -1.9046543231482357e-9;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Of f32.
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

/// x * y + z of f16 or bf16 numbers as an f32 that rounds to the narrow type as the exact value does; computed in `wide`, f64 or f32, whose
/// range it must be in.
Term narrow_fma(const Term& x, const Term& y, const Term& z, DType wide);

// Of f32 where a device has no f64, in which others compute.
namespace without_f64 {
Term pow(const Term& x, const Term& y);
Term sin(const Term& x);
Term cos(const Term& x);
}  // namespace without_f64

// Of f64.
namespace wide {
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
}  // namespace wide

/// The integer type as wide as x, and x as it.
inline Term bits_of(const Term& x) { return bitcast(x, x.dtype() == f64 ? i64 : i32); }

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

/// 2^k for an integer k in the low bits of `bits`, an f32 of i32 and an f64 of i64; 2^k must be a normal number. What is above the
/// bits of an exponent and a sign falls out.
inline Term power_of_two(const Term& bits) {
  if (bits.dtype() == i64) return bitcast((bits << 52) + 0x1p52 * 1023, f64);
  return bitcast((bits << 23) + 0x3F800000, f32);
}

/// |magnitude| with the sign of x; magnitude >= 0 or NaN.
inline Term with_sign_of(const Term& magnitude, const Term& x) {
  const double sign_bit = x.dtype() == f64 ? -0x1p63 : -0x1p31;
  return bitcast(bits_of(magnitude) | (bits_of(x) & sign_bit), x.dtype());
}

/// What x^y is but for its magnitude: the sign, and the cases that are 1 or NaN. The magnitude is >= 0.
Term power_with_signs(const Term& x, const Term& y, const Term& magnitude);
/// x^y for constant exponents that are a few plain operations, without error beyond their rounding.
std::optional<Term> simple_power(const Term& x, const Term& y);

/// sin r for |r| <= pi/2, as r (27/32 + p), where p is a polynomial in r^2 - 1. sin r / r is 27/32 in the middle, so that p, which is
/// rounded, stays below 1/4 of it: one polynomial does for a half turn.
inline Term sine_of_half_turn(const Term& r, const Term& p) { return fma(r, 0.84375, r * p); }

/// atan x as u + u^3 p(u^2) for u = |x| up to 1, and behind it as pi/2 - atan(1/|x|): u = -1/|x| and pi/2, in two parts, on top.
inline Term arctangent(const Term& x, double half_pi_high, double half_pi_low, std::initializer_list<double> p) {
  const Term a = abs(x), beyond_one = a > 1;
  const Term u = select(beyond_one, -1 / a, a), z = u * u;
  const Term high = select(beyond_one, u.constant(half_pi_high), 0), low = select(beyond_one, u.constant(half_pi_low), 0);
  const Term curved = polynomial(z, p);
  return with_sign_of((high + u) + fma(u * z, curved, low), x);
}

/// `x`, but at most `limit`; NaN stays.
inline Term at_most(const Term& x, double limit) { return select(x > limit, limit, x); }
inline Term at_least(const Term& x, double limit) { return select(x < limit, limit, x); }

}  // namespace rlx::math
