// Linear recurrences along an axis, and the derivatives of running extremes: what the derivatives of running products, maxima and minima
// are made of, in linear time and memory.
#include "ops/reduction/recurrence.h"

#include <algorithm>
#include <complex>

#include "ops/axis_lines.h"
#include "ops/reduction/recurrence_steps.h"
#include "ops/wide.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

struct LinearRecurrence {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "linear_recurrence";
  static constexpr std::string_view formula = "y_k = a_k * y_(k-1) + b_k along `axis`, from 0; reverse: from the end";
  Axis axis;
  bool reverse = false;
  static auto fields() { return Fields<&LinearRecurrence::axis, &LinearRecurrence::reverse>{}; }
  static Type infer(const LinearRecurrence& op, const Type& a, const Type& b) {
    if (!(a == b)) fail("rlx.linear_recurrence: operands differ: {} and {}", a.to_string(), b.to_string());
    if (!is_float(a.dtype) && !is_complex(a.dtype)) fail("rlx.linear_recurrence: {} is neither float nor complex", a.to_string());
    a.dim(op.axis);  // it is one
    return a;
  }
  static void evaluate(const LinearRecurrence& op, std::span<const Array> in, std::span<Array> out) {
    if (is_complex(out[0].dtype()))
      run<std::complex<double>>(
          op, out[0], [&](auto i) { return in[0].get_complex(i); }, [&](auto i) { return in[1].get_complex(i); },
          [&](auto i, auto y) { out[0].set_complex(i, y); });
    else
      run<double>(
          op, out[0], [&](auto i) { return in[0].get_double(i); }, [&](auto i) { return in[1].get_double(i); },
          [&](auto i, auto y) { out[0].set_double(i, y); });
  }
  template <class T, class A, class B, class Set>
  static void run(const LinearRecurrence& op, const Array& result, A a, B b, Set set) {
    const AxisLines lines(result.shape(), op.axis);
    for (std::int64_t line = 0; line < lines.count; ++line) {
      T y{};
      for (std::int64_t k = 0; k < lines.length; ++k) {
        const std::int64_t i = lines.begin(line) + (op.reverse ? lines.length - 1 - k : k) * lines.stride;
        y = k == 0 ? b(i) : a(i) * y + b(i);  // before the first element nothing is multiplied, be the factor infinite
        set(i, y);
      }
    }
  }
  static Value expansion(const LinearRecurrence& op, Value a, Value b) { return linear_recurrence_in_steps(a, b, op.axis, op.reverse); }
  static Values jvp(const LinearRecurrence& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    const Value by_a = dx[0] ? dx[0] * moved_by_one(y[0], op.axis, op.reverse, 0) : Value();
    const Value total = by_a && dx[1] ? by_a + dx[1] : by_a ? by_a : dx[1];
    return {total ? linear_recurrence(x[0], total, op.axis, op.reverse) : Value()};
  }
  /// Linear in b: the recurrence backwards, with the factor that leads from each element to the next.
  static Values transpose(const LinearRecurrence& op, std::span<const Value> x, const std::vector<bool>& linear,
                          std::span<const Value> dy) {
    if (linear[0]) fail_internal("rlx.linear_recurrence: it is not linear in a");
    return {Value(), linear_recurrence(moved_by_one(x[0], op.axis, !op.reverse, 0), dy[0], op.axis, !op.reverse)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, c64})
      for (bool reverse : {false, true})
        all.push_back({{{{t, {3, 5, 2}}, -1.2, 1.2}, {{t, {3, 5, 2}}}}, attrs_of(LinearRecurrence{1, reverse}), 1e-6});
    all.push_back({{{{f32, {4, 7}}, -1.2, 1.2}, {{f32, {4, 7}}}}, attrs_of(LinearRecurrence{-1, false}), 1e-6});
    return all;
  }
};
const Op<LinearRecurrence> linear_recurrence_op;

// The tree of ExtremumTree in steps, of the axis `axis` of static size.
class ExtremumSteps {
 public:
  explicit ExtremumSteps(std::int64_t axis) : axis_(axis) {}

  Value push(Value x, Value t) const {
    const auto join = [](const Values& a, const Values& b) {
      Value w = share(a[0], b[0]), mixed = w * a[1] + (1 - w) * b[1];
      return Values{max(a[0], b[0]), select(eq(w, 1), a[1], select(eq(w, 0), b[1], mixed))};
    };
    return associative_scan(join, {x, t}, axis_)[1];
  }

  /// running: the running maximum of x. What is at odd places comes from pairs, what is behind them at even ones from them and itself.
  Value pull(Value x, Value running, Value dy) const {
    const std::int64_t n = x.dim(axis_).value(), half = n / 2, behind = (n - 1) / 2;
    if (n < 2) return dy;
    Value odd = every_other(running, 1, n), d_odd = every_other(dy, 1, n), d_even = slice_axis(dy, axis_, 0, 1);
    if (behind > 0) {
      Value w = share(slice_axis(odd, axis_, 0, behind), every_other(x, 2, n)), d = every_other(dy, 2, n);
      d_odd = d_odd + lengthened(part(w, d), half);
      d_even = concat({d_even, part(1 - w, d)}, axis_);
    }
    Value left = every_other(x, 0, 2 * half), right = every_other(x, 1, n), w = share(left, right);
    Value d = pull(max(left, right), odd, d_odd);
    d_even = d_even + lengthened(part(w, d), n - half);
    return interleaved(d_even, part(1 - w, d), n);
  }

 private:
  static Value share(Value a, Value b) { return cast(gt(a, b), a.dtype()) + cast(eq(a, b), a.dtype()) * 0.5; }
  /// Nothing of what counts for nothing, be it infinite.
  static Value part(Value w, Value d) { return select(eq(w, 0), zeros_like(d), w * d); }
  Value every_other(Value v, std::int64_t begin, std::int64_t end) const { return slice_axis(v, axis_, begin, end, 2); }
  Value lengthened(Value v, std::int64_t n) const {
    Dims none(v.shape().size(), 0), more = none;
    more[static_cast<std::size_t>(axis_)] = n - v.dim(axis_);
    return pad(v, none, more);
  }
  Value interleaved(Value even, Value odd, std::int64_t n) const {
    const std::int64_t pairs = even.dim(axis_).value();
    Dims shape = even.shape();
    shape[static_cast<std::size_t>(axis_)] = 2 * pairs;
    return slice_axis(reshape(stack({even, lengthened(odd, pairs)}, axis_ + 1), shape), axis_, 0, n);
  }

  std::int64_t axis_;
};

struct RunningExtremumTangent {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "running_extremum_tangent";
  static constexpr std::string_view formula =
      "the derivative of the running max or min of x along `axis`, in the direction t: the tangent of the element that is it, of ties "
      "shares by pairs; transposed: from cotangents";
  ReduceKind op = ReduceKind::max;
  Axis axis;
  bool reverse = false, transposed = false;
  static auto fields() {
    return Fields<&RunningExtremumTangent::op, &RunningExtremumTangent::axis, &RunningExtremumTangent::reverse,
                  &RunningExtremumTangent::transposed>{};
  }
  static Type infer(const RunningExtremumTangent& op, const Type& x, const Type& t) {
    if (op.op != ReduceKind::max && op.op != ReduceKind::min) fail("rlx.running_extremum_tangent: op is neither max nor min");
    if (!(x == t) || !is_float(x.dtype))
      fail("rlx.running_extremum_tangent: operands are {} and {} (allowed: floats of one type and shape)", x.to_string(), t.to_string());
    x.dim(op.axis);
    return x;
  }
  static void evaluate(const RunningExtremumTangent& op, std::span<const Array> in, std::span<Array> out) {
    const AxisLines lines(out[0].shape(), op.axis);
    const auto n = static_cast<std::size_t>(lines.length);
    const double sign = op.op == ReduceKind::max ? 1 : -1;
    std::vector<double> x(n), t(n), block(n), running(n), of_block(n);
    for (std::int64_t line = 0; line < lines.count; ++line) {
      const auto place = [&](std::size_t k) {
        return lines.begin(line) + static_cast<std::int64_t>(op.reverse ? n - 1 - k : k) * lines.stride;
      };
      for (std::size_t k = 0; k < n; ++k) x[k] = sign * in[0].get_double(place(k)), t[k] = in[1].get_double(place(k));
      const ExtremumTree tree(x.data(), lines.length, block.data(), running.data());
      std::fill(of_block.begin(), of_block.end(), 0);
      if (op.transposed) tree.pull(t.data(), of_block.data(), t.data());
      else tree.push(t.data(), of_block.data(), t.data());
      for (std::size_t k = 0; k < n; ++k) out[0].set_double(place(k), t[k]);
    }
  }
  /// At the bound of the axis: what is behind the end changes nothing in front of it.
  static Value expansion(const RunningExtremumTangent& op, Value x, Value t) {
    const Dim& n = x.dim(op.axis);
    const auto in_order = [&](Value v) { return op.reverse ? flip(v, {op.axis}) : v; };
    const auto prepared = [&](Value v) {
      Dims none(v.shape().size(), 0), more = none;
      more[static_cast<std::size_t>(op.axis.value)] = n.upper() - n;
      return pad(widen(in_order(v)), none, more);
    };
    if (n == Dim(0)) return t;
    const Value line = prepared(op.op == ReduceKind::max ? x : -x), tangents = prepared(t);
    const ExtremumSteps steps(op.axis);
    Value y = op.transposed ? steps.pull(line, cummax(line, op.axis), tangents) : steps.push(line, tangents);
    return cast(in_order(slice_axis(y, op.axis, 0, n)), x.dtype());
  }
  static Value again(const RunningExtremumTangent& op, Value x, Value t, bool transposed) {
    return running_extremum_tangent(x, t, op.op, op.axis, op.reverse, transposed);
  }
  /// By x it is constant wherever it has a derivative.
  static Values jvp(const RunningExtremumTangent& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    return {dx[1] ? again(op, x[0], dx[1], op.transposed) : Value()};
  }
  static Values transpose(const RunningExtremumTangent& op, std::span<const Value> x, const std::vector<bool>& linear,
                          std::span<const Value> dy) {
    if (linear[0]) fail_internal("rlx.running_extremum_tangent: it is not linear in x");
    return {Value(), again(op, x[0], dy[0], !op.transposed)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16})
      for (ReduceKind kind : {ReduceKind::max, ReduceKind::min})
        for (bool reverse : {false, true})
          for (bool transposed : {false, true})
            all.push_back(
                {{{{t, {3, 6, 2}}, -3, 3}, {{t, {3, 6, 2}}}}, attrs_of(RunningExtremumTangent{kind, 1, reverse, transposed}), 1e-6});
    return all;
  }
};
const Op<RunningExtremumTangent> running_extremum_tangent_op;

}  // namespace

Value moved(Value x, std::int64_t places, std::int64_t axis, bool reverse, double fill) {
  Dims lo(x.shape().size(), 0), hi = lo;
  lo[static_cast<std::size_t>(axis)] = reverse ? -places : places;
  hi[static_cast<std::size_t>(axis)] = reverse ? places : -places;
  return pad(x, lo, hi, {}, fill);
}

Value linear_recurrence(Value a, Value b, std::int64_t axis, bool reverse) { return linear_recurrence_op({axis, reverse}, a, b); }

Value running_extremum_tangent(Value x, Value t, ReduceKind kind, std::int64_t axis, bool reverse, bool transposed) {
  return running_extremum_tangent_op({kind, axis, reverse, transposed}, x, t);
}

}  // namespace rlx
