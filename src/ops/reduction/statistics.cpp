// Statistics over axes: counts, means, variances, norms, and the tests all and any.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

// x as a float: integers and bool become f32.
Value to_float(Value x) { return is_float(x.dtype()) || is_complex(x.dtype()) ? x : cast(x, f32); }

/// A statistic over several axes of one operand, for the tests: each axis, two of them, all, none kept or all.
template <class Make>
std::vector<Sample> samples_over(Make attrs_for, bool differentiable = true) {
  std::vector<Sample> all;
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{2}, Axes{0, 2}, Axes{0, 1, 2}})
    for (bool keep : {false, true}) all.push_back({{{{f32, {3, 4, 5}}, 0.3, 3}}, attrs_for(axes, keep), 4e-6, differentiable});
  for (DType t : {f64, bf16, f16}) all.push_back({{{{t, {3, 9}}, 0.3, 3}}, attrs_for(Axes{1}, false), 4e-6, differentiable});
  return all;
}

struct Mean {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "mean";
  static constexpr std::string_view formula = "sum over `axes` / count";
  Axes axes;
  bool keep_dims = false;
  static auto fields() { return Fields<&Mean::axes, &Mean::keep_dims>{}; }
  static Value body(const Mean& op, Value x) {
    Value wide = widen(to_float(x));
    return cast(sum(wide, op.axes, op.keep_dims) / size_of(wide, op.axes, wide.dtype()), to_float(x).dtype());
  }
  static std::vector<Sample> samples() {
    auto all = samples_over([](Axes axes, bool keep) { return attrs_of(Mean{axes, keep}); });
    all.push_back({{{{i32, {3, 4}}, -9, 9}}, attrs_of(Mean{{1}, false}), 4e-6, false});
    return all;
  }
};
const Op<Mean> mean_op;

struct Variance {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "var";
  static constexpr std::string_view formula = "sum((x - mean)^2) / (count - correction) over `axes`";
  Axes axes;
  double correction = 1;
  bool keep_dims = false;
  static auto fields() { return Fields<&Variance::axes, &Variance::correction, &Variance::keep_dims>{}; }
  static Value body(const Variance& op, Value x) {
    return in_wide(name, x, [&](Value v) {
      Value centred = v - mean(v, op.axes, true);
      return sum(centred * centred, op.axes, op.keep_dims) / (size_of(v, op.axes, v.dtype()) - op.correction);
    });
  }
  static std::vector<Sample> samples() {
    auto all = samples_over([](Axes axes, bool keep) { return attrs_of(Variance{axes, keep ? 0.0 : 1.0, keep}); });
    all.push_back({{{{f32, {2, 8}}, 999, 1001}}, attrs_of(Variance{{1}, 0, false}), 1e-4});  // a one-pass variance fails here
    return all;
  }
};
const Op<Variance> var_op;

struct Norm {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "norm";
  static constexpr std::string_view formula =
      "(sum |x|^p)^(1/p) over `axes`; p = infinity: max |x|; p = 0: the number of elements that are not 0";
  Axes axes;
  double p = 2;
  bool keep_dims = false;
  static auto fields() { return Fields<&Norm::axes, &Norm::p, &Norm::keep_dims>{}; }

  /// x^power of a value that is not negative, with derivative 0 at 0 instead of infinity.
  static Value root(Value v, double power) {
    Value zero = eq(v, like(v, 0)), safe = select(zero, like(v, 1), v);
    return select(zero, like(v, 0), power == 0.5 ? sqrt(safe) : pow(safe, like(v, power)));
  }
  /// The maximum of no sizes is 0.
  static Value not_negative(Value v) { return select(lt(v, like(v, 0)), like(v, 0), v); }
  static Value body(const Norm& op, Value x) {
    return in_wide(name, x, [&](Value v) {
      Value a = abs(v);
      if (op.p == INFINITY) return not_negative(reduce_max(a, op.axes, op.keep_dims));
      if (op.p == -INFINITY) return reduce_min(a, op.axes, op.keep_dims);
      if (op.p == 0) return sum(cast(ne(v, like(v, 0)), v.dtype()), op.axes, op.keep_dims);
      if (op.p == 1) return sum(a, op.axes, op.keep_dims);
      if (op.p == 2) return root(sum(v * v, op.axes, op.keep_dims), 0.5);
      return root(sum(root(a, op.p), op.axes, op.keep_dims), 1 / op.p);
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (double p : {0.0, 1.0, 2.0, 3.0, 0.5, double(INFINITY), double(-INFINITY)}) {
      auto some = samples_over([p](Axes axes, bool keep) { return attrs_of(Norm{axes, p, keep}); }, p != 0);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
};
const Op<Norm> norm_op;

struct All {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "all";
  static constexpr std::string_view formula = "true where every element over `axes` is true (not 0)";
  Axes axes;
  bool keep_dims = false;
  static auto fields() { return Fields<&All::axes, &All::keep_dims>{}; }
  static Value body(const All& op, Value x) { return reduce_min(cast(x, boolean), op.axes, op.keep_dims); }
  static std::vector<Sample> samples() {
    return {{{{{boolean, {3, 4}}, 0, 1}}, attrs_of(All{{1}, false}), 0, false},
            {{{{i32, {3, 4}}, 0, 9}}, attrs_of(All{{0, 1}, true}), 0, false}};
  }
};
const Op<All> all_op;

struct Any {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "any";
  static constexpr std::string_view formula = "true where an element over `axes` is true (not 0)";
  Axes axes;
  bool keep_dims = false;
  static auto fields() { return Fields<&Any::axes, &Any::keep_dims>{}; }
  static Value body(const Any& op, Value x) { return reduce_max(cast(x, boolean), op.axes, op.keep_dims); }
  static std::vector<Sample> samples() {
    return {{{{{boolean, {3, 4}}, 0, 1}}, attrs_of(Any{{1}, false}), 0, false},
            {{{{i32, {3, 4}}, 0, 1}}, attrs_of(Any{{0, 1}, true}), 0, false}};
  }
};
const Op<Any> any_op;

struct CountNonzero {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "count_nonzero";
  static constexpr std::string_view formula = "the number of elements over `axes` that are not 0, as i32";
  Axes axes;
  bool keep_dims = false;
  static auto fields() { return Fields<&CountNonzero::axes, &CountNonzero::keep_dims>{}; }
  static Value body(const CountNonzero& op, Value x) { return sum(cast(cast(x, boolean), i32), op.axes, op.keep_dims); }
  static std::vector<Sample> samples() {
    return {{{{{i32, {3, 4}}, -1, 1}}, attrs_of(CountNonzero{{1}, false}), 0, false},
            {{{{f32, {3, 4}}}}, attrs_of(CountNonzero{{0, 1}, true}), 0, false}};
  }
};
const Op<CountNonzero> count_nonzero_op;

}  // namespace

/// The number of elements of x over `axes` as a scalar of `dtype`: a constant where the sizes are, else computed from them at run time.
Value size_of(Operand x, Axes axes, DType dtype) {
  Dims sizes;
  for (std::int64_t axis : axes) sizes.push_back(x.dim(normalize_axis("size_of", axis, x.type())));
  const Dim count = product(sizes);
  if (count.is_static()) return scalar(x, static_cast<double>(count.value()), dtype);
  return cast(dim_value(x, count, i64), dtype);
}
/// The mean over `axes`, which disappear, or stay with size 1 (keep_dims). Integers and bool give f32. No elements: NaN.
Value mean(Operand x, Axes axes, bool keep_dims /*= false*/) { return mean_op({axes, keep_dims}, x); }
/// The mean of all elements, of rank 0.
Value mean_all(Operand x) {
  std::vector<std::int64_t> axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  return mean(x, axes);
}
/// The variance over `axes`, in two passes, divided by count - correction (1: unbiased, 0: of the population). Shape and types as in mean.
Value var(Operand x, Axes axes, double correction /*= 1*/, bool keep_dims /*= false*/) { return var_op({axes, correction, keep_dims}, x); }
/// The standard deviation, the square root of var; arguments as in var.
Value std_dev(Operand x, Axes axes, double correction /*= 1*/, bool keep_dims /*= false*/) {
  return sqrt(var(x, axes, correction, keep_dims));
}
/// The p-norm over `axes`: p = 1, 2, any number, infinity (largest magnitude), -infinity (smallest), 0 (count). Derivative 0 at 0. Shape
/// as in mean.
Value norm(Operand x, Axes axes, double p /*= 2*/, bool keep_dims /*= false*/) { return norm_op({axes, p, keep_dims}, x); }
/// True where every element over `axes` is true (not 0): bool, shape as in mean.
Value all(Operand x, Axes axes, bool keep_dims /*= false*/) { return all_op({axes, keep_dims}, x); }
/// True where at least one element over `axes` is true (not 0): bool, shape as in mean.
Value any(Operand x, Axes axes, bool keep_dims /*= false*/) { return any_op({axes, keep_dims}, x); }
/// The number of elements over `axes` that are not 0, as i32; shape as in mean.
Value count_nonzero(Operand x, Axes axes, bool keep_dims /*= false*/) { return count_nonzero_op({axes, keep_dims}, x); }

}  // namespace rlx
