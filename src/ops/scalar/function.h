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
/// The same for functions of complex numbers, too.
template <class Self>
struct UnaryComplexFunction : UnaryFunction<Self> {
  static std::vector<Sample> samples() {
    auto all = UnaryFunction<Self>::samples();
    for (const Type& type : {Type{c64, {2, 3}}, Type{c128, {5}}}) all.push_back({{{type, Self::low, Self::high}}, {}, 4e-6});
    return all;
  }
};
/// The same for functions of two operands of one type.
template <class Self>
struct BinaryFunction : UnaryFunction<Self> {
  static std::vector<Sample> samples() { return elementwise_samples({}, Self::low, Self::high, true, 2); }
};

/// Runs `by_parts` on z when it is complex, else `in_wide(op, x, body)`; throws Error naming `op` for other types.
template <class ByParts, class Body>
Value in_wide_or_complex(std::string_view op, Value x, ByParts by_parts, Body body) {
  if (is_complex(x.dtype())) return by_parts(x);
  if (!is_float(x.dtype())) fail("rlx.{}: {} is not allowed (allowed: floats, complex)", op, x.type().to_string());
  return in_wide(op, x, body);
}

/// 1 - v^2. Near 1 the square would lose digits, and near 0 the derivative of a product would subtract.
inline Value one_less_square(Value v) { return select(lt(abs(v), like(v, 0.5)), fma(-v, v, like(v, 1)), (1 - v) * (v + 1)); }

/// A tangent times the slope of a function, computed in the accumulation type.
inline Values times(Value dx, Value slope) { return {cast(widen(dx) * slope, dx.dtype())}; }

}  // namespace rlx
