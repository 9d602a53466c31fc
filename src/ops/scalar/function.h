#pragma once
#include <span>
#include <vector>

#include "ops/wide.h"

namespace rlx {

// What the mathematical functions of elements share.

/// What functions of one operand share.
template <class Self>
struct UnaryFunction {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr double low = -3, high = 3;
  static auto fields() { return Fields<>{}; }
  static std::vector<Sample> samples() { return elementwise_samples({}, Self::low, Self::high); }
};
/// The same for functions of two operands of one type.
template <class Self>
struct BinaryFunction : UnaryFunction<Self> {
  static std::vector<Sample> samples() { return elementwise_samples({}, Self::low, Self::high, true, 2); }
};

/// A tangent times the slope of a function, computed in the accumulation type.
inline Values times(Value dx, Value slope) { return {cast(widen(dx) * slope, dx.dtype())}; }

}  // namespace rlx
