// Between floats and integer codes: quantize, dequantize, and the fake quantization that training sees.
#include <cmath>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

void check_codes(std::string_view op, DType t) {
  for (DType allowed : {i8, u8, i4, u4, i16, u16, i32})
    if (t == allowed) return;
  fail("rlx.{}: {} codes (allowed: i8, u8, i4, u4, i16, u16, i32)", op, name(t));
}

// A scale or zero point with the rank of x: of rank 0 for the tensor, of rank 1 for the elements of `axis`, else as it is.
Value aligned(std::string_view op, Value v, Value x, std::int64_t axis) {
  if (v.rank() == x.rank()) return v;
  if (v.rank() > 1) fail("rlx.{}: {} beside {} (allowed: rank 0, 1 or {})", op, v.type().to_string(), x.type().to_string(), x.rank());
  if (v.rank() == 0 || v.dim(0) == Dim(1)) return with_rank(reshape(v, {}), x.rank());
  axis = normalize_axis(op, axis, x.type());
  if (!(v.dim(0) == x.dim(axis))) fail("rlx.{}: {} values for axis {} of {}", op, v.dim(0).to_string(), axis, x.type().to_string());
  Dims shape(x.shape().size(), 1);
  shape[static_cast<std::size_t>(axis)] = v.dim(0);
  return reshape(v, shape);
}

Value constant_row(Value near, const std::vector<double>& values, DType dtype) {
  Array row(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) row.set_double(static_cast<std::int64_t>(i), values[i]);
  return make_constant(near.graph(), std::move(row));
}

// What a difference or sum of codes is exact in: two 32-bit codes need 33 bits, which f64 has.
DType exact_type(DType codes, DType otherwise) { return info(codes).bits == 32 ? f64 : otherwise; }

double largest_code(int bits) { return std::ldexp(1.0, bits - 1) - 1; }

struct Quantize {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "quantize";
  static constexpr std::string_view formula = "saturate(round(x / scale) + zero_point), round half to even";
  DType to = i8;
  static auto fields() { return Fields<&Quantize::to>{}; }
  static Value body(const Quantize& op, Value x, Value scale, Value zero_point) {
    check_float(name, x);
    check_codes(name, op.to);
    Value wide = widen(x);
    const DType exact = exact_type(op.to, wide.dtype());
    Value codes = cast(round(wide / cast(scale, wide.dtype())), exact) + cast(zero_point, exact);
    return cast(codes, op.to);  // saturates
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType to : {i8, u8, i4, u4, i16, i32})
      all.push_back({{{{f32, {3, 4}}, -9, 9}, {{f32, {1, 4}}, 0.05, 0.5}, {{to, {1, 4}}, 0, 5}}, attrs_of(Quantize{to}), 0, false});
    return all;
  }
};
const Op<Quantize> quantize_op;

struct Dequantize {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "dequantize";
  static constexpr std::string_view formula = "(codes - zero_point) * scale, in the dtype of the scale";
  static auto fields() { return Fields<>{}; }
  static Value body(const Dequantize&, Value codes, Value scale, Value zero_point) {
    check_codes(name, codes.dtype());
    const DType exact = exact_type(codes.dtype(), i32);
    Value steps = cast(codes, exact) - cast(zero_point, exact);
    const DType wide = exact == f64 ? f64 : accumulation_type(scale.dtype());
    return cast(cast(steps, wide) * cast(scale, wide), scale.dtype());
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType from : {i8, u8, i4, u4, i16, i32})
      all.push_back({{{{from, {3, 4}}, 0, 7}, {{f32, {3, 1}}, 0.05, 0.5}, {{from, {1, 1}}, 0, 5}}, {}, 4e-6});
    return all;
  }
};
const Op<Dequantize> dequantize_op;

// round(ratio) limited to the codes of a symmetric format.
Value limited_codes(Value ratio, double limit) { return max(min(round(ratio), like(ratio, limit)), like(ratio, -limit)); }

struct FakeQuantize {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "fake_quantize";
  static constexpr std::string_view formula =
      "limit(round(x / scale), -q, q) * scale, q = 2^(bits - 1) - 1; straight-through derivative by x, none by the scale";
  std::int64_t bits = 8;
  StraightThrough derivative = StraightThrough::identity;
  static auto fields() { return Fields<&FakeQuantize::bits, &FakeQuantize::derivative>{}; }
  static Value body(const FakeQuantize& op, Value x, Value scale) {
    check_float(name, x);
    if (op.bits != 2 && op.bits != 4 && op.bits != 8) fail("rlx.fake_quantize: {} bits (allowed: 2, 4, 8)", op.bits);
    Value wide = widen(x), step = cast(scale, wide.dtype());
    return cast(limited_codes(wide / step, largest_code(static_cast<int>(op.bits))) * step, x.dtype());
  }
  static Values jvp(const FakeQuantize& op, In x, In, In dx) {
    if (!dx[0] || op.derivative == StraightThrough::identity) return {dx[0]};
    Value ratio = widen(x[0]) / cast(x[1], accumulation_type(x[0].dtype())), slope = like(ratio, 1);
    const double limit = largest_code(static_cast<int>(op.bits));
    if (op.derivative == StraightThrough::clipped) slope = select(le(abs(ratio), like(ratio, limit)), slope, like(ratio, 0));
    else if (op.derivative == StraightThrough::hardtanh) slope = max(1 - abs(ratio) / limit, like(ratio, 0));
    else slope = 1 - tanh(ratio) * tanh(ratio);
    return {cast(widen(dx[0]) * slope, dx[0].dtype())};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (std::int64_t bits : {2, 4, 8})
      all.push_back(
          {{{{f32, {3, 4}}, -3, 3}, {{f32, {1, 4}}, 0.1, 0.5}}, attrs_of(FakeQuantize{bits, StraightThrough::clipped}), 4e-6, false});
    all.push_back({{{{bf16, {3, 4}}, -3, 3}, {{f32, {1, 1}}, 0.1, 0.5}}, attrs_of(FakeQuantize{8, StraightThrough::tanh}), 4e-6, false});
    return all;
  }
};
const Op<FakeQuantize> fake_quantize_op;

struct FakeQuantizeLsq {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "fake_quantize_lsq";
  static constexpr std::string_view formula =
      "limit(round(x / scale), -q, q) * scale; derivative by x 1 inside, by the scale (round(r) - r inside, else +-q) / sqrt(n q), r = x / "
      "scale";
  std::int64_t bits = 8;
  static auto fields() { return Fields<&FakeQuantizeLsq::bits>{}; }
  static Value body(const FakeQuantizeLsq& op, Value x, Value scale) {
    return FakeQuantize::body({op.bits, StraightThrough::clipped}, x, scale);
  }

  // 1 / sqrt(n * q) with the number n of elements that share a scale (Esser et al. 2020, section 2.2).
  static Value gradient_scale(Value x, Value scale, double limit) {
    Axes shared;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (!(scale.dim(axis) == x.dim(axis))) shared.values.push_back(axis);
    Value count = sum(ones_like(x), shared, true);
    return rsqrt(count * limit);
  }
  static Values jvp(const FakeQuantizeLsq& op, In x, In, In dx) {
    const double limit = largest_code(static_cast<int>(op.bits));
    Value wide = widen(x[0]), ratio = wide / cast(x[1], wide.dtype()), zero = like(ratio, 0);
    Value inside = le(abs(ratio), like(ratio, limit));
    Value total = dx[0] ? select(inside, widen(dx[0]), zero) : Value();
    if (dx[1]) {
      Value slope = select(inside, round(ratio) - ratio, sign(ratio) * limit) * gradient_scale(wide, x[1], limit);
      Value term = slope * cast(dx[1], wide.dtype());
      total = total ? total + term : term;
    }
    return {total ? cast(total, x[0].dtype()) : Value()};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {3, 4}}, -3, 3}, {{f32, {3, 1}}, 0.1, 0.5}}, attrs_of(FakeQuantizeLsq{4}), 4e-6, false}};
  }
};
const Op<FakeQuantizeLsq> fake_quantize_lsq_op;

// The largest magnitude over the largest code; 1 where all elements are 0.
Value batch_scale(Value x, const FakeQuantizeOptions& options) {
  Axes shared;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!options.axis || normalize_axis("fake_quantize", *options.axis, x.type()) != axis) shared.values.push_back(axis);
  Value scale = reduce_max(abs(widen(x)), shared) / largest_code(options.bits);
  return select(gt(scale, like(scale, 0)), scale, like(scale, 1));
}

}  // namespace

/// saturate(round(x / scale) + zero_point) as i8, u8, i4, u4, i16, u16 or i32. A scale of rank 0 is for the whole tensor, of rank 1
/// for the elements of `axis`; with the rank of x it broadcasts (blocks). A null zero point is 0. NaN gives code 0.
Value quantize(Operand x, Operand scale, Operand zero_point, DType to /*= i8*/, std::int64_t axis /*= -1*/) {
  if (!zero_point) zero_point = scalar(x, 0, to);
  return quantize_op({to}, x, aligned("quantize", scale, x, axis), aligned("quantize", zero_point, x, axis));
}

/// The same with scales and zero points known now: one of each, or one for each element of `axis`; no zero points are zeros.
Value quantize(Operand x, std::vector<double> scales, std::vector<double> zero_points /*= {}*/, DType to /*= i8*/,
               std::int64_t axis /*= -1*/) {
  return quantize(x, constant_row(x, scales, f32), zero_points.empty() ? Value() : constant_row(x, zero_points, i32), to, axis);
}

/// (codes - zero_point) * scale in the dtype of the scale; scale and zero point as in quantize.
Value dequantize(Operand codes, Operand scale, Operand zero_point, std::int64_t axis /*= -1*/) {
  if (!zero_point) zero_point = scalar(codes, 0, i32);
  return dequantize_op({}, codes, aligned("dequantize", scale, codes, axis), aligned("dequantize", zero_point, codes, axis));
}

/// The same with scales and zero points known now.
Value dequantize(Operand codes, std::vector<double> scales, std::vector<double> zero_points /*= {}*/, std::int64_t axis /*= -1*/) {
  return dequantize(codes, constant_row(codes, scales, f32), zero_points.empty() ? Value() : constant_row(codes, zero_points, i32), axis);
}

/// Quantization as training sees it: limit(round(x / scale), -q, q) * scale with q = 1, 7, 127 for 2, 4, 8 bits, and a straight-through
/// derivative by x. Results: y, and the scale used (the new state). scale_mode per_batch takes max|x| / q and no state; ema takes
/// decay * state + (1 - decay) * max|x| / q; fixed the state itself. `state` is a positive float of rank 0, or [size of axis].
Values fake_quantize(Operand x, FakeQuantizeOptions options /*= {}*/, Operand state /*= {}*/) {
  if ((options.scale_mode == ScaleMode::per_batch) == static_cast<bool>(state))
    fail("rlx.fake_quantize: scale mode '{}' {}", enum_words(options.scale_mode)[static_cast<std::size_t>(options.scale_mode)],
         state ? "takes no state" : "needs a state");
  Value scale = options.scale_mode == ScaleMode::fixed ? state : batch_scale(x, options);
  if (options.scale_mode == ScaleMode::ema) scale = cast(widen(state) * options.decay + scale * (1 - options.decay), state.dtype());
  return {fake_quantize_op({options.bits, options.derivative}, x, aligned("fake_quantize", scale, x, options.axis.value_or(0))), scale};
}

/// fake_quantize with a learned scale (LSQ, Esser et al. 2020): rank 0, or one for each element of `axis`. Its derivative by the scale
/// is multiplied by 1 / sqrt(n * q), n the number of elements that share the scale.
Value fake_quantize_lsq(Operand x, Operand scale, int bits /*= 8*/, std::int64_t axis /*= 0*/) {
  return fake_quantize_lsq_op({bits}, x, aligned("fake_quantize_lsq", scale, x, axis));
}

}  // namespace rlx
