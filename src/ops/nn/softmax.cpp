// softmax, log_softmax, logsumexp: shifted by the maximum, so that no exponential overflows.

#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

/// Samples along each axis of a rank-3 value, and in every float type.
template <class Make>
std::vector<Sample> samples_along(Make attrs_for) {
  std::vector<Sample> all;
  for (std::int64_t axis : {0, 1, 2}) all.push_back({{{{f32, {3, 4, 5}}, -4, 4}}, attrs_for(axis), 4e-6});
  for (DType t : {f64, bf16, f16}) all.push_back({{{{t, {3, 9}}, -4, 4}}, attrs_for(1), 4e-6});
  all.push_back({{{{f32, {6, 1}}, -90, 90}}, attrs_for(0), 4e-6, false});
  return all;
}

struct Softmax {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "softmax";
  static constexpr std::string_view formula =
      "e^(x - max) / sum(e^(x - max)) along `axis`; zero_empty: a row of only -infinity gives 0 instead of NaN";
  Axis axis = -1;
  bool zero_empty = false;
  static auto fields() { return Fields<&Softmax::axis, &Softmax::zero_empty>{}; }
  static Value body(const Softmax& op, Value x) {
    return in_wide(name, x, [&](Value v) {
      Value largest = reduce_max(v, {op.axis}, true);
      if (op.zero_empty) largest = select(eq(largest, like(v, -infinity)), like(v, 0), largest);
      Value e = exp(v - largest), total = sum(e, {op.axis}, true);
      if (op.zero_empty) total = select(eq(total, like(v, 0)), like(v, 1), total);
      return e * (1 / total);  // one division for a row, not for each element
    });
  }
  static Values jvp(const Softmax& op, In, In y, In dx) {
    Value p = widen(y[0]), d = widen(dx[0]);
    return {cast(p * (d - sum(p * d, {op.axis}, true)), dx[0].dtype())};
  }
  static std::vector<Sample> samples() {
    auto all = samples_along([](std::int64_t axis) { return attrs_of(Softmax{axis, false}); });
    all.push_back({{{{f32, {3, 8}}, -4, 4}}, attrs_of(Softmax{1, true}), 4e-6});
    return all;
  }
};
const Op<Softmax> softmax_op;

struct LogSoftmax {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "log_softmax";
  static constexpr std::string_view formula = "x - max - log(sum(e^(x - max))) along `axis`";
  Axis axis = -1;
  static auto fields() { return Fields<&LogSoftmax::axis>{}; }
  static Value body(const LogSoftmax& op, Value x) {
    return in_wide(name, x, [&](Value v) {
      Value shifted = v - reduce_max(v, {op.axis}, true);
      return shifted - log(sum(exp(shifted), {op.axis}, true));
    });
  }
  static Values jvp(const LogSoftmax& op, In, In y, In dx) {
    Value d = widen(dx[0]);
    return {cast(d - sum(exp(widen(y[0])) * d, {op.axis}, true), dx[0].dtype())};
  }
  static std::vector<Sample> samples() {
    return samples_along([](std::int64_t axis) { return attrs_of(LogSoftmax{axis}); });
  }
};
const Op<LogSoftmax> log_softmax_op;

struct LogSumExp {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "logsumexp";
  static constexpr std::string_view formula = "log(sum(e^x)) over `axes`; -infinity where every element is";
  Axes axes;
  bool keep_dims = false;
  static auto fields() { return Fields<&LogSumExp::axes, &LogSumExp::keep_dims>{}; }

  /// Infinities replaced by 0: subtracting them would give NaN.
  static Value finite_or_zero(Value v) { return select(is_finite(v), v, like(v, 0)); }
  static Value body(const LogSumExp& op, Value x) {
    return in_wide(name, x, [&](Value v) {
      Value shift = finite_or_zero(reduce_max(v, op.axes, true));
      Value total = log(sum(exp(v - shift), op.axes, true)) + shift;
      return op.keep_dims ? total : reshape(total, sum(v, op.axes).shape());
    });
  }
  // Not e^(x - y): y is rounded, by more than 1 where x is large.
  static Values jvp(const LogSumExp& op, In x, In, In dx) {
    Value v = widen(x[0]), e = exp(v - finite_or_zero(reduce_max(v, op.axes, true))), total = sum(e, op.axes, true);
    Value weights = e / select(eq(total, like(v, 0)), like(v, 1), total);  // of only -infinity: 0
    return {cast(sum(weights * widen(dx[0]), op.axes, op.keep_dims), dx[0].dtype())};
  }
  static std::vector<Sample> samples() {
    auto all = samples_along([](std::int64_t axis) { return attrs_of(LogSumExp{{axis}, axis == 1}); });
    all.push_back({{{{f32, {3, 4, 5}}}}, attrs_of(LogSumExp{{0, 2}, false}), 4e-6});
    all.push_back({{{{f32, {3, 4, 5}}}}, attrs_of(LogSumExp{{0, 1, 2}, true}), 4e-6});
    return all;
  }
};
const Op<LogSumExp> logsumexp_op;

}  // namespace

/// e^x / sum(e^x) along `axis`; the shape stays. A row of only -infinity gives NaN, or zeros with `zero_empty`.
Value softmax(Operand x, Axis axis /*= -1*/, bool zero_empty /*= false*/) { return softmax_op({axis, zero_empty}, x); }
/// log(softmax(x)) along `axis`, accurate where softmax underflows; the shape stays.
Value log_softmax(Operand x, Axis axis /*= -1*/) { return log_softmax_op({axis}, x); }
/// log(sum(e^x)) over `axes`, without overflow; with keep_dims they stay with size 1.
Value logsumexp(Operand x, Axes axes, bool keep_dims /*= false*/) { return logsumexp_op({axes, keep_dims}, x); }

}  // namespace rlx
