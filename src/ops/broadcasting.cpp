#include "ops/broadcasting.h"

#include <numeric>

#include "ir/sources.h"
#include "rlx/ops.h"

namespace rlx {

Dims broadcast_shapes(std::string_view op, const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[offset + i], &y = shorter[i];
    if (x == y || y == Dim(1)) continue;
    if (!(x == Dim(1)))
      fail("rlx.{}: shapes {} and {} do not broadcast: {} against {}", op, to_string(a), to_string(b), x.to_string(), y.to_string());
    result[offset + i] = y;
  }
  return result;
}

std::pair<Value, Value> match(std::string_view op, Value a, Value b) {
  const DType dtype = promote(a.dtype(), b.dtype());
  Dims shape = broadcast_shapes(op, a.shape(), b.shape());
  return {broadcast_to(cast(a, dtype), shape), broadcast_to(cast(b, dtype), shape)};
}

DType accumulation_type(DType t) {
  if (is_float(t)) return info(t).bits < 32 ? f32 : t;
  if (is_bool(t)) return i32;
  if (is_signed_int(t)) return info(t).bits < 32 ? i32 : t;
  if (is_unsigned_int(t)) return info(t).bits < 32 ? u32 : t;
  return t;
}

Value scalar(Operand near, double value, DType dtype) {
  Array array(dtype, {});
  array.set_double(0, value);
  return constant(near, std::move(array));
}

Value constant(Operand near, Array value) { return make_constant(near.graph(), std::move(value)); }

/// x repeated up to `shape` by NumPy's rule: new axes come in front, and axes of size 1 stretch. The other sizes must be equal, else Error;
/// sizes may be symbols. The result has the dtype of x.
Value broadcast_to(Operand x, Dims shape) {
  if (x.shape() == shape) return x;
  if (!(broadcast_shapes("broadcast_to", x.shape(), shape) == shape))
    fail("rlx.broadcast_to: {} does not broadcast to {}", x.type().to_string(), to_string(shape));
  std::vector<std::int64_t> axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(shape.size() - x.shape().size()));
  return broadcast(x, std::move(shape), axes);
}

/// A value of the given shape and dtype whose elements are all `value`: integers saturate, and NaN is 0 in them. `near` is any value of
/// the graph that it belongs to. Sizes may be symbols.
Value full(Operand near, Dims shape, double value, DType dtype /*= f32*/) {
  return broadcast_to(scalar(near, value, dtype), std::move(shape));
}

/// A value with the shape and dtype of x whose elements are all `value`; see full.
Value full_like(Operand x, double value) { return full(x, x.shape(), value, x.dtype()); }

/// Zeros with the shape and dtype of x.
Value zeros_like(Operand x) { return full_like(x, 0); }

/// Ones with the shape and dtype of x.
Value ones_like(Operand x) { return full_like(x, 1); }

Value literal(std::string_view op, Value x, double value) {
  if (is_integer(x.dtype()) || is_bool(x.dtype())) {
    Array converted(x.dtype(), {});
    converted.set_double(0, value);
    if (converted.get_double(0) != value)
      fail("rlx.{}: {} is not a number of {} (allowed: one that it holds; or cast the {} operand to a float first)", op, value,
           name(x.dtype()), name(x.dtype()));
  }
  return scalar(x, value, x.dtype());
}

Value operator+(Operand a, Operand b) { return add(a, b); }
Value operator-(Operand a, Operand b) { return sub(a, b); }
Value operator*(Operand a, Operand b) { return mul(a, b); }
Value operator/(Operand a, Operand b) { return div(a, b); }
Value operator-(Operand a) { return neg(a); }
Value operator+(Operand a, double b) { return add(a, literal("add", a, b)); }
Value operator-(Operand a, double b) { return sub(a, literal("sub", a, b)); }
Value operator*(Operand a, double b) { return mul(a, literal("mul", a, b)); }
Value operator/(Operand a, double b) { return div(a, literal("div", a, b)); }
Value operator+(double a, Operand b) { return add(literal("add", b, a), b); }
Value operator-(double a, Operand b) { return sub(literal("sub", b, a), b); }
Value operator*(double a, Operand b) { return mul(literal("mul", b, a), b); }
Value operator/(double a, Operand b) { return div(literal("div", b, a), b); }

}  // namespace rlx
