#pragma once
#include <optional>

#include "ops/scalar/scalar.h"

namespace rlx {

/// A complex number as its real and imaginary part, two values of one real type.
struct ComplexValue {
  Value re, im;
};

/// The op on complex operands, of parts. Each part is within a few roundings of the modulus, and overflows only where the result does.
/// `y` is read by ops of two operands. Nothing for ops without a rule.
std::optional<ComplexValue> complex_rule(ScalarOp op, const ComplexValue& x, const ComplexValue& y);

/// Whether x and y are equal, of parts.
Value complex_equal(const ComplexValue& x, const ComplexValue& y);

}  // namespace rlx
