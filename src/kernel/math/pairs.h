#pragma once
#include "kernel/math/math_functions.h"

namespace rlx::math {

/// A number as the sum of two, the second below half a unit in the last place of the first.
struct Pair {
  Term high, low;
};

/// a + b for |a| >= |b| or a = 0, without error (Dekker).
inline Pair fast_sum(const Term& a, const Term& b) {
  const Term sum = a + b;
  return {sum, (a - sum) + b};
}
/// a * b without error.
inline Pair product(const Term& a, const Term& b) {
  const Term high = a * b;
  return {high, fma(a, b, neg(high))};
}

}  // namespace rlx::math
