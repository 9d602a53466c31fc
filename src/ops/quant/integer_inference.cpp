// Integer layers bit-exact with TFLite and CMSIS-NN: 32-bit sums, scaled by a Q0.31 multiplier and a power of two.
#include <cmath>

#include "ops/wide.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

void check_type(std::string_view op, std::string_view what, Value v, DType wanted) {
  if (v.dtype() != wanted) fail("rlx.{}: {} is {} (allowed: {})", op, what, v.type().to_string(), name(wanted));
}

// a * b / 2^31 rounded to the nearest, ties upwards; saturates in the only case that overflows, -2^31 * -2^31.
Value doubling_high_multiply(Value a, Value b) {
  Value product = cast(a, i64) * cast(b, i64);
  Value high = shr(product + std::ldexp(1.0, 30), like(product, 31));
  return cast(min(high, like(high, 2147483647.0)), i32);
}

// x / 2^exponent rounded to the nearest, ties away from zero.
Value rounding_shift_right(Value x, Value exponent) {
  Value mask = shl(like(x, 1), exponent) - 1;
  Value rest = logical_and(x, mask);
  Value threshold = shr(mask, like(x, 1)) + cast(lt(x, like(x, 0)), i32);
  return shr(x, exponent) + cast(gt(rest, threshold), i32);
}

struct Requantize {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "requantize";
  static constexpr std::string_view formula =
      "limit(x * multiplier * 2^(shift - 31) + zero_point, low, high) as i8, rounded as TFLite does";
  std::int64_t zero_point = 0, low = -128, high = 127;
  static auto fields() { return Fields<&Requantize::zero_point, &Requantize::low, &Requantize::high>{}; }
  static Value body(const Requantize& op, Value x, Value multiplier, Value shift) {
    check_type(name, "the sum", x, i32);
    check_type(name, "the multiplier", multiplier, i32);
    check_type(name, "the shift", shift, i32);
    if (op.low < -128 || op.high > 127 || op.low > op.high)
      fail("rlx.requantize: range {}..{} (allowed: within -128..127)", op.low, op.high);
    Value zero = like(shift, 0);
    Value scaled = rounding_shift_right(doubling_high_multiply(shl(x, max(shift, zero)), multiplier), max(-shift, zero));
    // In 64 bits, so that a zero point cannot wrap the largest sums.
    Value moved = cast(scaled, i64) + static_cast<double>(op.zero_point);
    return cast(min(max(moved, like(moved, static_cast<double>(op.low))), like(moved, static_cast<double>(op.high))), i8);
  }
  static std::vector<Sample> samples() {
    return {{{{{i32, {3, 4}}, -5000, 5000}, {{i32, {1, 4}}, 1 << 30, (1LL << 31) - 1.0}, {{i32, {1, 4}}, -9, 2}},
             attrs_of(Requantize{3, -128, 127}),
             0,
             false}};
  }
};
const Op<Requantize> requantize_op;

Value zero_shifted(Value codes, std::int64_t zero_point) { return cast(codes, i32) - static_cast<double>(zero_point); }

struct QMatMul {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "q_matmul";
  static constexpr std::string_view formula = "requantize((x - x_zero) (w - w_zero) + bias), x [..., M, K] and w [K, N] i8";
  std::int64_t x_zero = 0, w_zero = 0, out_zero = 0, low = -128, high = 127;
  static auto fields() { return Fields<&QMatMul::x_zero, &QMatMul::w_zero, &QMatMul::out_zero, &QMatMul::low, &QMatMul::high>{}; }
  static Value body(const QMatMul& op, Value x, Value w, Value bias, Value multiplier, Value shift) {
    check_type(name, "x", x, i8);
    check_type(name, "w", w, i8);
    check_type(name, "the bias", bias, i32);
    Value total = matmul(zero_shifted(x, op.x_zero), zero_shifted(w, op.w_zero)) + bias;
    return requantize_op({op.out_zero, op.low, op.high}, total, multiplier, shift);
  }
  static std::vector<Sample> samples() {
    return {{{{{i8, {3, 5}}, -99, 99},
              {{i8, {5, 4}}, -99, 99},
              {{i32, {4}}, -999, 999},
              {{i32, {4}}, 1 << 30, (1LL << 31) - 1.0},
              {{i32, {4}}, -9, -5}},
             attrs_of(QMatMul{4, 0, -3, -128, 127}),
             0,
             false}};
  }
};
const Op<QMatMul> q_matmul_op;

struct QConv {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "q_conv";
  static constexpr std::string_view formula = "requantize(conv(x - x_zero, w - w_zero) + bias), x and w i8; padding counts as x_zero";
  Ints lhs_spec = {}, rhs_spec = {}, out_spec = {}, strides = {}, padding_lo = {}, padding_hi = {}, dilation = {};
  std::int64_t groups = 1, x_zero = 0, w_zero = 0, out_zero = 0, low = -128, high = 127;
  static auto fields() {
    return Fields<&QConv::lhs_spec, &QConv::rhs_spec, &QConv::out_spec, &QConv::strides, &QConv::padding_lo, &QConv::padding_hi,
                  &QConv::dilation, &QConv::groups, &QConv::x_zero, &QConv::w_zero, &QConv::out_zero, &QConv::low, &QConv::high>{};
  }
  // bias, multiplier and shift for the feature axis of the result.
  static Value per_channel(const QConv& op, Value v, int rank) {
    if (v.rank() == 0) return with_rank(v, rank);
    if (v.rank() != 1) fail("rlx.q_conv: {} for the channels (allowed: rank 0 or 1)", v.type().to_string());
    Dims shape(static_cast<std::size_t>(rank), 1);
    shape[op.out_spec.empty() ? 1 : static_cast<std::size_t>(op.out_spec[1])] = v.dim(0);
    return reshape(v, shape);
  }
  static Value body(const QConv& op, Value x, Value w, Value bias, Value multiplier, Value shift) {
    check_type(name, "x", x, i8);
    check_type(name, "w", w, i8);
    check_type(name, "the bias", bias, i32);
    const ConvOptions options{op.lhs_spec,   op.rhs_spec, op.out_spec, op.strides, op.padding_lo,
                              op.padding_hi, {},          op.dilation, op.groups,  1};
    Value total = conv_general(zero_shifted(x, op.x_zero), zero_shifted(w, op.w_zero), options);
    auto fit = [&](Value v) { return per_channel(op, v, total.rank()); };
    return requantize_op({op.out_zero, op.low, op.high}, total + fit(bias), fit(multiplier), fit(shift));
  }
  static std::vector<Sample> samples() {
    const Sample::Operand bias{{i32, {4}}, -999, 999}, multiplier{{i32, {4}}, 1 << 30, (1LL << 31) - 1.0}, shift{{i32, {4}}, -9, -5};
    QConv padded{.strides = {2, 1}, .padding_lo = {1, 0}, .padding_hi = {1, 1}, .x_zero = 4, .out_zero = -3};
    QConv depthwise{.lhs_spec = {0, 3, 1, 2}, .rhs_spec = {0, 3, 1, 2}, .out_spec = {0, 3, 1, 2}, .groups = 4};
    return {{{{{i8, {2, 3, 5, 4}}, -99, 99}, {{i8, {4, 3, 3, 2}}, -99, 99}, bias, multiplier, shift}, attrs_of(padded), 0, false},
            {{{{i8, {1, 4, 4, 4}}, -99, 99}, {{i8, {4, 3, 3, 1}}, -99, 99}, bias, multiplier, shift}, attrs_of(depthwise), 0, false}};
  }
};
const Op<QConv> q_conv_op;

}  // namespace

/// Real factors as TFLite stores them: factor = multiplier * 2^(shift - 31), multipliers (i32) in 2^30..2^31 - 1 and shifts (i32).
/// Factors are finite and not negative; those below 2^-32 become 0.
std::pair<Array, Array> fixed_point_factors(const std::vector<double>& factors) {
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(factors.size())};
  Array multipliers(i32, shape), shifts(i32, shape);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(factors[i] >= 0) || std::isinf(factors[i]))
      fail("rlx.fixed_point_factors: factor {} is {} (allowed: finite, >= 0)", i, factors[i]);
    int shift = 0;
    auto multiplier = static_cast<std::int64_t>(std::round(std::ldexp(std::frexp(factors[i], &shift), 31)));
    if (multiplier == std::int64_t{1} << 31) multiplier /= 2, ++shift;
    if (shift < -31) multiplier = shift = 0;
    if (shift > 30) multiplier = INT32_MAX, shift = 30;
    multipliers.set_int(static_cast<std::int64_t>(i), multiplier);
    shifts.set_int(static_cast<std::int64_t>(i), shift);
  }
  return {multipliers, shifts};
}

/// i32 sums as i8 codes: x * 2^shift is multiplied by multiplier / 2^31 (saturating rounding doubling high multiply), shifted right by
/// -shift with rounding where shift < 0, moved by the zero point and limited to low..high. multiplier and shift (i32) broadcast.
Value requantize(Operand x, Operand multiplier, Operand shift, IntegerLayer layer /*= {}*/) {
  const int rank = x.rank();
  return requantize_op({layer.out_zero, layer.low, layer.high}, x, with_rank(multiplier, rank), with_rank(shift, rank));
}

/// x [..., M, K] i8 times w [K, N] i8 plus bias [N] i32, as i8 codes: TFLite's fully connected layer. multiplier and shift are i32 of
/// shape [N] (a scale for each output) or []. Throws Error for other dtypes.
Value q_matmul(Operand x, Operand w, Operand bias, Operand multiplier, Operand shift, IntegerLayer layer /*= {}*/) {
  return q_matmul_op({layer.x_zero, layer.w_zero, layer.out_zero, layer.low, layer.high}, x, w, bias, with_rank(multiplier, 1),
                     with_rank(shift, 1));
}

/// The convolution of conv_general on i8 codes, as i8 codes: TFLite's conv and depthwise conv. Padding counts as the zero point of x.
/// bias, multiplier and shift are i32 of shape [output channels] or []. Throws Error for other dtypes, for dilated x and batch groups.
Value q_conv(Operand x, Operand w, Operand bias, Operand multiplier, Operand shift, ConvOptions options /*= {}*/,
             IntegerLayer layer /*= {}*/) {
  if (!options.lhs_dilation.empty() || options.batch_group_count != 1) fail("rlx.q_conv: dilated x or batch groups (allowed: neither)");
  const QConv op{options.lhs_spec,   options.rhs_spec,   options.out_spec,     options.strides,
                 options.padding_lo, options.padding_hi, options.rhs_dilation, options.feature_group_count,
                 layer.x_zero,       layer.w_zero,       layer.out_zero,       layer.low,
                 layer.high};
  return q_conv_op(op, x, w, bias, multiplier, shift);
}

}  // namespace rlx
