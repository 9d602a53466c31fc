// Choosing between values element by element: clamp, where, masked_fill, nan_to_num.
#include <limits>
#include <optional>

#include "base/small_float.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

double largest_finite(DType t) {
  switch (t) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f16: return decode(f16_format, 0x7bff);
    case DType::bf16: return decode(bf16_format, 0x7f7f);
    case DType::f8e4m3: return decode(f8e4m3_format, 0x7e);
    case DType::f8e5m2: return decode(f8e5m2_format, 0x7b);
    default: return std::numeric_limits<float>::max();
  }
}

struct Clamp {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "clamp";
  static constexpr std::string_view formula = "min(max(x, low), high); derivative 1 inside and at the ends, 0 outside";
  static auto fields() { return Fields<>{}; }
  static Value body(const Clamp&, Value x, Value low, Value high) { return min(max(x, low), high); }
  static Values jvp(const Clamp&, In x, In, In dx) {
    Value below = lt(x[0], x[1]), above = gt(max(x[0], x[1]), x[2]);
    Value zero = like(x[0], 0);
    Value inner = select(below, dx[1] ? dx[1] : zero, dx[0] ? dx[0] : zero);
    return {select(above, dx[2] ? dx[2] : zero, inner)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, f16, bf16, i32, u8})
      all.push_back({{{{t, {3, 4}}, is_unsigned_int(t) ? 0.0 : -4.0, 4}, {{t, {3, 4}}, 0, 1}, {{t, {3, 4}}, 2, 3}}, {}, 0, false});
    all.push_back({{{{f32, {3, 4}}, 0.2, 0.8}, {{f32, {3, 4}}, -1, 0.1}, {{f32, {3, 4}}, 0.9, 2}}, {}});
    all.push_back({{{{f64, {3, 4}}, 3.1, 5}, {{f64, {3, 4}}, 0, 1}, {{f64, {3, 4}}, 2, 3}}, {}});
    all.push_back({{{{f64, {3, 4}}, -3, -0.1}, {{f64, {3, 4}}, 0, 1}, {{f64, {3, 4}}, 2, 3}}, {}});
    return all;
  }
};
const Op<Clamp> clamp_op;

struct NanToNum {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "nan_to_num";
  static constexpr std::string_view formula = "x with NaN and the infinities replaced by given numbers; derivative 0 there";
  double nan = 0, positive = 0, negative = 0;
  static auto fields() { return Fields<&NanToNum::nan, &NanToNum::positive, &NanToNum::negative>{}; }
  static Value body(const NanToNum& op, Value x) {
    Value numbers = select(ne(x, x), like(x, op.nan), x);
    Value capped = select(eq(x, like(x, std::numeric_limits<double>::infinity())), like(x, op.positive), numbers);
    return select(eq(x, like(x, -std::numeric_limits<double>::infinity())), like(x, op.negative), capped);
  }
  static std::vector<Sample> samples() { return elementwise_samples(attrs_of(NanToNum{0, 9, -9}), -4, 4); }
};
const Op<NanToNum> nan_to_num_op;

}  // namespace

/// `a` where `condition` holds, else `b`; the three broadcast and a and b are promoted. The same as select, under NumPy's name.
Value where(Operand condition, Operand a, Operand b) { return select(condition, a, b); }

/// `value` where `mask` (bool) holds, else x; they broadcast against each other.
Value masked_fill(Operand x, Operand mask, double value) { return select(mask, like(x, value), x); }

/// x limited to low..high, which broadcast against x; where low > high, high wins. The derivative is 1 at the ends. NaN stays NaN.
Value clamp(Operand x, Operand low, Operand high) {
  const DType dtype = promote(x.dtype(), promote(low.dtype(), high.dtype()));
  const Dims shape = broadcast_shapes("clamp", broadcast_shapes("clamp", x.shape(), low.shape()), high.shape());
  auto fit = [&](Value v) { return broadcast_to(cast(v, dtype), shape); };
  return clamp_op({}, fit(x), fit(low), fit(high));
}

/// x limited to low..high.
Value clamp(Operand x, double low, double high) { return clamp(x, like(x, low), like(x, high)); }

/// NaN replaced by `nan`, infinity by `positive`, -infinity by `negative`; by default the largest finite numbers of the dtype.
/// Integers stay as they are.
Value nan_to_num(Operand x, double nan /*= 0*/, std::optional<double> positive /*= {}*/, std::optional<double> negative /*= {}*/) {
  if (!is_float(x.dtype())) return x;
  return nan_to_num_op({nan, positive.value_or(largest_finite(x.dtype())), negative.value_or(-largest_finite(x.dtype()))}, x);
}

}  // namespace rlx
