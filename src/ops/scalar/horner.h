#pragma once
#include <span>

#include "ops/wide.h"

namespace rlx {

// coefficients[0] + coefficients[1] x + ..., by Horner's rule, one rounding for each power.
inline Value horner(Value x, std::span<const double> coefficients) {
  Value sum = like(x, coefficients.back());
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, like(x, coefficients[i]));
  return sum;
}

// The same sum in pairs of powers: a third fewer operations wait for one another.
inline Value paired_horner(Value x, std::span<const double> coefficients) {
  const Value square = x * x;
  const std::size_t last = coefficients.size() - 1;
  const auto pair = [&](std::size_t i) {
    return i == last ? like(x, coefficients[i]) : fma(x, like(x, coefficients[i + 1]), like(x, coefficients[i]));
  };
  std::size_t i = last / 2 * 2;
  Value sum = pair(i);
  while (i > 0) i -= 2, sum = fma(square, sum, pair(i));
  return sum;
}

// The same as `horner` with 1 as the coefficient of the highest power, which is left out of the list.
inline Value monic_horner(Value x, std::span<const double> coefficients) {
  Value sum = x + coefficients.back();
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, like(x, coefficients[i]));
  return sum;
}

}  // namespace rlx
