#include "kernel/math/math_functions.h"

namespace rlx::math {
namespace {

/// Bits of the f32 nearest to sqrt(1/2): subtracting them moves the border between two exponents there.
constexpr double sqrt_half_bits = 0x3F3504F3;

constexpr double smallest_normal = 1.17549435082228750797e-38;

/// exponent * ln 2 + log(1 + f) for sqrt(1/2) - 1 <= f <= sqrt(2) - 1.
Term log_of_reduced(const Term& f, const Term& exponent) {
  const Term z = f * f;
  const Term curved =
      polynomial(f, {0.333333313, -0.250008225, 0.200012609, -0.166233301, 0.142009586, -0.131576732, 0.127634376, -0.076457426});
  const Term tail = fma(z, -0.5, fma(f * z, curved, exponent * ln2_rest));
  return fma(exponent, ln2_head, f + tail);
}

/// What a logarithm gives where its argument `x` is not a positive finite number, else `y`.
Term with_special_values(const Term& x, const Term& y) {
  const Term not_positive = select(x == 0, x.constant(-infinity), not_a_number);
  return select(x > 0, select(x < infinity, y, x), select(x <= 0, not_positive, x));
}

}  // namespace

Term log(const Term& x) {
  const Term subnormal = x < smallest_normal;
  const Term normal = select(subnormal, x * 0x1p23, x);
  const Term bits = bitcast(normal, i32), exponent = (bits - sqrt_half_bits) >> 23;
  const Term f = bitcast(bits - (exponent << 23), f32) - 1;
  return with_special_values(x, log_of_reduced(f, cast(exponent, f32) + select(subnormal, x.constant(-23), 0)));
}

Term log1p(const Term& x) {
  const Term u = x + 1;
  const Term exponent = (bitcast(u, i32) - sqrt_half_bits) >> 23;
  // f = (1 + x) / 2^exponent - 1 without the rounding of 1 + x; 4 / 2^exponent, as 2^-128 is no normal number.
  const Term scale = power_of_two(2 - exponent);
  const Term f = fma(x * 0.25, scale, fma(scale, 0.25, -1));
  return select(abs(x) < 0x1p-25, x, with_special_values(u, log_of_reduced(f, cast(exponent, f32))));
}

namespace {

/// log2 of x > 0 in f64; relative error 1e-12, also next to 1.
Term log2_wide(const Term& x) {
  constexpr std::uint64_t to_sqrt_half = 0x3FF0000000000000 - 0x3FE6A09E667F3BCD;
  const Term bits = bitcast(x, i64);
  // The biased exponent: positive for every f32, so a logical shift will do, and its number is made without a conversion.
  const Term shifted = bits + bits.integer(to_sqrt_half);
  const Term biased = bitcast(bitcast(shifted, u64) >> 52, i64);
  const Term exponent = bitcast(biased | 0x1p52 * 1075, f64) - (0x1p52 + 1023);
  const Term m = bitcast(bits - (biased << 52) + 0x1p52 * 1023, f64);
  const Term s = (m - 1) / (m + 1), z = s * s;
  return fma(s, polynomial(z, {2.8853900817907761, 0.96179667242963984, 0.57708376735685951, 0.4116613262719766, 0.34094849919988407}),
             exponent);
}

/// 2^z rounded to f32; overflow gives infinity.
Term exp2_to_f32(const Term& z) {
  const Term clamped = at_least(at_most(z, 200), -200);
  const Nearest n = nearest(clamped, 1);
  const Term r = clamped - n.number;
  const Term p = polynomial(r, {1, 0.69314718052675217, 0.24022651084283708, 0.055504110340006504, 0.0096180355594785317,
                                0.0013333357710871474, 0.00015467572690728711, 1.5335027949841492e-05});
  return cast(p * bitcast((n.bits << 52) + bitcast(z.constant(1), i64), f64), f32);
}

}  // namespace

Term pow(const Term& x, const Term& y) {
  if (const auto simple = simple_power(x, y)) return *simple;
  const Term a = abs(x);
  Term exponent = log2_wide(cast(a, f64));
  exponent = select(a == 0, -infinity, select(a == infinity, infinity, exponent));
  return power_with_signs(x, y, exp2_to_f32(exponent * cast(y, f64)));
}

}  // namespace rlx::math
