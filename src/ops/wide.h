#pragma once
#include <limits>
#include <string_view>

#include "ir/op.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {

// What the bodies of composites share: they compute in the accumulation type, so that f16 and bf16 are rounded once, at the end.

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// No value of the type is below it.
inline double lowest(DType t) {
  if (is_float(t)) return t == f8e4m3 ? -448 : -infinity;  // which has no infinity
  return is_signed_int(t) ? -static_cast<double>(std::uint64_t{1} << (info(t).bits - 1)) : 0;
}

/// x in the type that sums of its elements are kept in.
inline Value widen(Value x) { return cast(x, accumulation_type(x.dtype())); }

/// A scalar of x's dtype; it broadcasts against x.
inline Value like(Value x, double value) { return scalar(x, value, x.dtype()); }

/// Whether x < 0 or x is -0.
inline Value is_negative(Value x) {
  Value zero = like(x, 0);
  return logical_or(lt(x, zero), logical_and(eq(x, zero), lt(1 / x, zero)));
}

/// Throws Error naming `op` when x has no float type.
inline void check_float(std::string_view op, Value x) {
  if (!is_float(x.dtype())) fail("rlx.{}: {} is not allowed (allowed: floats)", op, x.type().to_string());
}

/// body(x) computed in the accumulation type and rounded to x's dtype; throws Error naming `op` when x is no float.
template <class Body>
Value in_wide(std::string_view op, Value x, Body body) {
  check_float(op, x);
  return cast(body(widen(x)), x.dtype());
}

/// x with axes of size 1 put in front until it has `rank` axes.
inline Value with_rank(Value x, int rank) {
  if (x.rank() >= rank) return x;
  Dims shape(static_cast<std::size_t>(rank - x.rank()), 1);
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  return reshape(x, shape);
}

/// Samples of an elementwise op: every float type, ranks 0 to 3, all operands alike.
inline std::vector<Sample> elementwise_samples(const Attrs& attrs, double low, double high, bool differentiable = true,
                                               std::size_t operands = 1) {
  std::vector<Sample> all;
  const std::vector<Type> types{{f32, {}}, {f32, {2, 3, 4}}, {f64, {7}}, {bf16, {2, 5}}, {f16, {2, 5}}};
  // 4e-6: a dozen f32 roundings, for a kernel that computes in f32 what the reference computes in f64.
  for (const Type& type : types) all.push_back({std::vector<Sample::Operand>(operands, {type, low, high}), attrs, 4e-6, differentiable});
  return all;
}
/// The same on both sides of a kink at `at`, where derivatives exist, and across it, where they do not.
inline std::vector<Sample> samples_around(const Attrs& attrs, double low, double at, double high) {
  constexpr double margin = 0.05;
  auto all = elementwise_samples(attrs, low, high, false);
  for (auto [from, to] : {std::pair{low, at - margin}, std::pair{at + margin, high}}) {
    auto side = elementwise_samples(attrs, from, to);
    all.insert(all.end(), side.begin(), side.end());
  }
  return all;
}

}  // namespace rlx
