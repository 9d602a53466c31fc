#include "kernel/math/math_functions.h"

namespace rlx::math {

Term narrow_fma(const Term& x, const Term& y, const Term& z, DType wide) {
  // Exact in two parts: the product has at most 22 bits, and `lost` is what the sum rounds off (Knuth's two-sum).
  const Term product = cast(x, wide) * cast(y, wide), addend = cast(z, wide);
  const Term sum = product + addend, other = sum - product, lost = (product - (sum - other)) + (addend - other);
  // Rounded to odd: where f32 does not hold the exact value, the neighbour whose last bit is 1. The narrow type has two bits fewer, so
  // rounding that to it gives what one rounding of the exact value gives (Boldo and Melquiond 2008). NaN fails both comparisons.
  const Term nearest = cast(sum, f32), bits = bitcast(nearest, i32), none = bits.constant(0);
  const Term beyond = ((sum - cast(nearest, wide)) + lost) * cast(nearest, wide);
  const Term step = select(beyond > 0, bits.constant(1), select(beyond < 0, bits.constant(-1), none));
  return bitcast(bits + select((bits & 1) == 0, step, none), f32);
}

}  // namespace rlx::math
