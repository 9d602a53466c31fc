#include "kernel/math/math_wide.h"

namespace rlx::math::wide {
namespace {

/// Bits of the f64 nearest to sqrt(1/2), less those of 1: adding their difference moves the border between two exponents there.
constexpr std::uint64_t to_sqrt_half = 0x3FF0000000000000 - 0x3FE6A09E667F3BCD;
constexpr double one_bits = 0x1p52 * 1023;

/// exponent * ln 2 + log(1 + f) for sqrt(1/2) - 1 <= f <= sqrt(2) - 1, as in fdlibm: log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)).
Term log_of_reduced(const Term& f, const Term& exponent) {
  const Term s = f / (f + 2), z = s * s, half_square = f * f * 0.5;
  const Term curved = z * polynomial(z, {0.6666666666666734, 0.39999999999416386, 0.2857142874201386, 0.222221986108896,
                                         0.18183562401298395, 0.15314098907954637, 0.14795474621964425});
  const Term tail = fma(s, half_square + curved, exponent * ln2_low) - half_square;
  return fma(exponent, ln2_high, f + tail);
}

/// What a logarithm gives where its argument `x` is not a positive finite number, else `y`.
Term with_special_values(const Term& x, const Term& y) {
  return select(x > 0, select(x < infinity, y, x), select(x == 0, x.constant(-infinity), not_a_number));
}

}  // namespace

Term biased_exponent(const Term& bits) {
  // Positive, so a logical shift will do, which AVX2 has for this width.
  return bitcast(bitcast(bits + bits.integer(to_sqrt_half), u64) >> 52, i64);
}

Term small_integer_as_number(const Term& integer) { return bitcast(integer | 0x1p52 * 1075, f64) - 0x1p52; }

Scaled scaled(const Term& x) {
  const Term subnormal = x < std::numeric_limits<double>::min();
  const Term bits = bits_of(select(subnormal, x * 0x1p54, x)), biased = biased_exponent(bits);
  const Term m = bitcast(bits - (biased << 52) + one_bits, f64);
  return {m, small_integer_as_number(biased) - select(subnormal, x.constant(1023 + 54), 1023)};
}

Term log(const Term& x) {
  const Scaled at = scaled(x);
  return with_special_values(x, log_of_reduced(at.m - 1, at.exponent));
}

Term log1p(const Term& x) {
  const Term u = x + 1;
  const Term biased = biased_exponent(bits_of(u));
  // f = (1 + x) / 2^exponent - 1 without the rounding of 1 + x; 4 / 2^exponent, as 2^-1024 is no normal number.
  const Term scale = power_of_two(biased.constant(1023 + 2) - biased);
  const Term f = fma(x * 0.25, scale, fma(scale, 0.25, -1));
  return select(abs(x) < 0x1p-54, x, with_special_values(u, log_of_reduced(f, small_integer_as_number(biased) - 1023)));
}

}  // namespace rlx::math::wide
