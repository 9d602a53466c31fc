#pragma once
#include <array>
#include <cmath>
#include <span>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {

// Numbers of twice the digits, for what cancels (Dekker 1971): the sum of two of which the second is below the first one's last digit.

struct Twofold {
  Value high, low;
};

/// a + b without error; of exact_sum_of_ordered where |a| >= |b|.
inline Twofold exact_sum_of_ordered(Value a, Value b) {
  Value sum = a + b;
  return {sum, b - (sum - a)};
}
inline Twofold exact_sum(Value a, Value b) {
  Value sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
/// a * b without error.
inline Twofold exact_product(Value a, Value b) {
  Value product = a * b;
  return {product, fma(a, b, -product)};
}

inline Twofold operator-(Twofold a) { return {-a.high, -a.low}; }
inline Twofold operator+(Twofold a, Twofold b) {
  const Twofold sum = exact_sum(a.high, b.high);
  return exact_sum_of_ordered(sum.high, sum.low + (a.low + b.low));
}
inline Twofold operator*(Twofold a, Twofold b) {
  const Twofold product = exact_product(a.high, b.high);
  return exact_sum_of_ordered(product.high, fma(a.high, b.low, fma(a.low, b.high, product.low)));
}
inline Twofold operator/(Twofold a, Twofold b) {
  Value quotient = a.high / b.high;
  const Twofold product = exact_product(quotient, b.high);
  return exact_sum_of_ordered(quotient, ((a.high - product.high) - product.low + fma(-quotient, b.low, a.low)) / b.high);
}

/// A row of the table for each element; those beyond it take its ends.
inline Twofold twofold_row(Value row, std::span<const std::array<double, 2>> table) {
  const auto column = [&](std::size_t part) {
    Array numbers(f64, {std::ssize(table)});
    for (std::size_t i = 0; i < table.size(); ++i) numbers.set_double(static_cast<std::int64_t>(i), table[i][part]);
    return take(make_constant(row.graph(), numbers), row, 0, IndexMode::clip);
  };
  return {column(0), column(1)};
}

/// numerator / denominator of whole numbers, as two that broadcast against x.
inline Twofold twofold_ratio(Value x, double numerator, double denominator) {
  const double high = numerator / denominator;
  return {like(x, high), like(x, -std::fma(high, denominator, -numerator) / denominator)};
}

}  // namespace rlx
