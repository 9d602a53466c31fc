#pragma once
#include <array>

#include "kernel/math/math_functions.h"

// What the formulas of f64 share.
namespace rlx::math::wide {

inline constexpr double ln2_high = 0.69314718055994530942;  // nearest f64
inline constexpr double ln2_low = 2.3190468138462995584e-17;

/// x = m * 2^exponent with sqrt(1/2) <= m < sqrt(2), for finite x > 0; subnormal numbers too, unless they count as zeros.
struct Scaled {
  Term m;
  Term exponent;
};
Scaled scaled(const Term& x);

/// The binary exponent in `scaled` of a positive normal number, as an i64, plus 1023.
Term biased_exponent(const Term& bits);
/// An i64 from 0 to 2^52 - 1 as a number, by instructions that every vector unit has.
Term small_integer_as_number(const Term& integer);

/// `polynomial` in two halves, of the even powers and the odd ones: one operation more, and half as many that wait for one another, of
/// which a processor cannot see enough at a time to fill the gaps.
inline Term long_polynomial(const Term& x, std::initializer_list<double> coefficients) {
  const Term square = x * x;
  std::array<std::optional<Term>, 2> sums;
  std::size_t power = coefficients.size();
  for (auto it = std::rbegin(coefficients); it != std::rend(coefficients); ++it) {
    std::optional<Term>& sum = sums[--power % 2];
    sum = sum ? fma(*sum, square, *it) : x.constant(*it);
  }
  return fma(*sums[1], x, *sums[0]);
}

/// e^(x + low) for |low| < 1/4: infinity or 0 where no normal number is near enough; NaN stays.
Term exp_of_sum(const Term& x, const Term& low);

}  // namespace rlx::math::wide
