// Products with weights or operands in narrow formats that carry scales: grouped integer codes, 8-bit floats.
#include "ops/wide.h"

namespace rlx {
namespace {

struct DequantMatMul {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "dequant_matmul";
  static constexpr std::string_view formula = "x W^T, W = (codes - zero_point) * scale with a scale for each group along K";
  static auto fields() { return Fields<>{}; }
  static Value body(const DequantMatMul&, Value x, Value codes, Value scale, Value zero_point) {
    check_float(name, x);
    if (codes.rank() != 2 || scale.rank() != 2 || zero_point.rank() != 2)
      fail("rlx.dequant_matmul: codes {}, scale {}, zero point {} (allowed: [N, K], [N, groups], [N, groups])", codes.type().to_string(),
           scale.type().to_string(), zero_point.type().to_string());
    auto group = Dim::exact_div(codes.dim(1), scale.dim(1));
    if (!group)
      fail("rlx.dequant_matmul: {} groups do not divide the {} columns of {}", scale.dim(1).to_string(), codes.dim(1).to_string(),
           codes.type().to_string());
    auto per_group = [](Value v) { return reshape(v, {v.dim(0), v.dim(1), 1}); };
    Value blocks = reshape(codes, {codes.dim(0), scale.dim(1), *group});
    Value weights = reshape(dequantize(blocks, per_group(widen(scale)), per_group(zero_point)), codes.shape());
    return cast(dot(widen(x), weights, {x.rank() - 1}, {1}), x.dtype());
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {i8, u8, i4, u4})
      all.push_back({{{{f32, {3, 8}}}, {{t, {5, 8}}, 0, 7}, {{f32, {5, 2}}, 0.05, 0.5}, {{t, {5, 2}}, 0, 7}}, {}, 4e-6});
    return all;
  }
};
const Op<DequantMatMul> dequant_matmul_op;

struct ScaledMatMul {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "scaled_matmul";
  static constexpr std::string_view formula = "(x W^T) * x_scale * w_scale + bias, summed in f32; x [..., K] and W [N, K] in 8-bit floats";
  DType to = f32;
  static auto fields() { return Fields<&ScaledMatMul::to>{}; }
  static Value body(const ScaledMatMul& op, Value x, Value w, Value x_scale, Value w_scale, Value bias) {
    check_float(name, x);
    check_float(name, w);
    Value product = dot(widen(x), widen(w), {x.rank() - 1}, {1});
    return cast(product * widen(x_scale) * widen(w_scale) + widen(bias), op.to);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f8e4m3, f8e5m2})
      all.push_back({{{{t, {3, 8}}}, {{t, {5, 8}}}, {{f32, {3, 1}}, 0.1, 1}, {{f32, {1, 5}}, 0.1, 1}, {{f32, {1, 5}}}},
                     attrs_of(ScaledMatMul{f32}),
                     4e-6,
                     false});
    return all;
  }
};
const Op<ScaledMatMul> scaled_matmul_op;

}  // namespace

/// x [..., K] times the transpose of the weights (codes - zero_point) * scale, in x's dtype, summed in at least f32. codes [N, K] are
/// i8, u8, i4 or u4; scale and zero point are [N, groups], a column for each K / groups neighbours. A null zero point is 0.
Value dequant_matmul(Operand x, Operand codes, Operand scale, Operand zero_point /*= {}*/) {
  if (!zero_point) zero_point = full(codes, scale.shape(), 0, i32);
  return dequant_matmul_op({}, x, codes, scale, zero_point);
}

/// x in an 8-bit float format with the scales that fill its range: results codes (dtype `to`) and scale, codes * scale = x up to
/// rounding. The scale keeps the reduced `axes` with size 1; where all elements are 0 it is 1.
Values scaled_quantize(Operand x, DType to, Axes axes) {
  if (to != f8e4m3 && to != f8e5m2) fail("rlx.scaled_quantize: {} (allowed: f8e4m3, f8e5m2)", name(to));
  check_float("scaled_quantize", x);
  const double largest = to == f8e4m3 ? 448 : 57344;
  Value wide = widen(x), scale = reduce_max(abs(wide), axes, true) / largest;
  scale = select(gt(scale, like(scale, 0)), scale, like(scale, 1));
  return {cast(clamp(wide / scale, -largest, largest), to), scale};
}

/// (x W^T) * x_scale * w_scale + bias as `to`: x [..., K] and w [N, K] are floats of any width (8 bits in practice), summed in at least
/// f32. Scales and bias broadcast against [..., N]: x_scale [..., 1], w_scale and bias [N], or rank 0. A null bias is 0.
Value scaled_matmul(Operand x, Operand w, Operand x_scale, Operand w_scale, Operand bias /*= {}*/, DType to /*= f32*/) {
  if (!bias) bias = scalar(x_scale, 0, f32);
  auto fit = [&](Value v) { return with_rank(v, x.rank()); };
  return scaled_matmul_op({to}, x, w, fit(x_scale), fit(w_scale), fit(bias));
}

}  // namespace rlx
