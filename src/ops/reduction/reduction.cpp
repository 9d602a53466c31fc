// Reductions: reduce and the sums, means and extremes built on it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/extremum.h"
#include "ir/op.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using At = std::vector<Index>;

double combine(ReduceKind kind, double a, double b) {
  switch (kind) {
    case ReduceKind::sum: return a + b;
    case ReduceKind::prod: return a * b;
    case ReduceKind::max: return maximum(a, b);
    case ReduceKind::min: return minimum(a, b);
  }
  return a;
}
template <class T>
T combine_exact(ReduceKind kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), z = static_cast<std::uint64_t>(b);
    if (kind == ReduceKind::sum) return static_cast<T>(x + z);
    if (kind == ReduceKind::prod) return static_cast<T>(x * z);
    return kind == ReduceKind::max ? maximum(a, b) : minimum(a, b);
  } else {
    return kind == ReduceKind::prod ? a * b : a + b;
  }
}

struct Reduce {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "reduce";
  static constexpr std::string_view formula =
      "sum, max, min or prod over `axes`, which disappear; of nothing 0, the least value, the greatest, 1; narrow types accumulate in 32 "
      "bits; NaN wins";
  ReduceKind op = ReduceKind::sum;
  Axes axes;
  static auto fields() { return Fields<&Reduce::op, &Reduce::axes>{}; }

  static bool kept(const Reduce& r, std::int64_t axis) { return !r.axes.contains(axis); }
  static bool is_ordered(const Reduce& r) { return r.op == ReduceKind::max || r.op == ReduceKind::min; }
  static Type infer(const Reduce& r, const Type& x) {
    const bool ordered = is_ordered(r);
    if (ordered && is_complex(x.dtype)) fail("rlx.reduce: {} has no order", x.to_string());
    if (is_bool(x.dtype) && !ordered) fail("rlx.reduce: a sum of bool: cast it first, or use max (any) and min (all)");
    Type result{x.dtype, {}};
    for (int axis = 0; axis < x.rank(); ++axis)
      if (kept(r, axis)) result.shape.push_back(x.dim(axis));
    return result;
  }
  /// An extreme needs no room, and of no elements is an end of its own type: of bool, those of u8 are false and true.
  static DType extreme_type(DType t) { return is_float(t) ? accumulation_type(t) : is_bool(t) ? u8 : t; }
  static Loop loop(const Reduce& r, std::span<const Type> x, const Type&, const At& at, const FreshVariable& fresh) {
    Loop result{r.op, is_ordered(r) ? extreme_type(x[0].dtype) : accumulation_type(x[0].dtype), {}, {}};
    Source source;
    auto next = at.begin();
    for (int axis = 0; axis < x[0].rank(); ++axis) {
      if (kept(r, axis)) {
        source.index.push_back(*next++);
      } else {
        result.variables.push_back(fresh(x[0].dim(axis)));
        source.index.push_back(result.variables.back());
      }
    }
    result.factors = {{source}};
    return result;
  }
  template <class T, class Get, class Set>
  static void accumulate(const Reduce& r, const Array& x, const Array& y, T start, Get get, Set set) {
    std::vector<T> total(static_cast<std::size_t>(y.size()), start);
    std::vector<std::int64_t> at(x.shape().size(), 0);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      std::size_t to = 0;
      for (std::size_t d = 0; d < at.size(); ++d)
        if (kept(r, static_cast<std::int64_t>(d))) to = to * static_cast<std::size_t>(x.shape()[d]) + static_cast<std::size_t>(at[d]);
      if constexpr (std::is_same_v<T, double>) total[to] = combine(r.op, total[to], get(i));
      else total[to] = combine_exact(r.op, total[to], get(i));
      for (std::size_t d = at.size(); d-- > 0 && ++at[d] == x.shape()[d];) at[d] = 0;
    }
    for (std::int64_t i = 0; i < y.size(); ++i) set(i, total[static_cast<std::size_t>(i)]);
  }
  static void evaluate(const Reduce& r, std::span<const Array> in, std::span<Array> out) {
    const Array& x = in[0];
    Array& y = out[0];
    const bool low = r.op == ReduceKind::max, high = r.op == ReduceKind::min;
    const bool one = r.op == ReduceKind::prod;
    const double end = x.dtype() == f8e4m3 ? 448 : INFINITY;  // which has no infinity
    if (is_complex(x.dtype()))
      accumulate<std::complex<double>>(
          r, x, y, one ? 1 : 0, [&](auto i) { return x.get_complex(i); }, [&](auto i, auto v) { y.set_complex(i, v); });
    else if (is_float(x.dtype()))
      accumulate<double>(
          r, x, y,
          low    ? -end
          : high ? end
                 : one,
          [&](auto i) { return x.get_double(i); }, [&](auto i, auto v) { y.set_double(i, v); });
    else if (const auto largest = largest_integer(x.dtype()); is_signed_int(x.dtype()))
      accumulate<std::int64_t>(
          r, x, y,
          low    ? -static_cast<std::int64_t>(largest) - 1
          : high ? static_cast<std::int64_t>(largest)
                 : one,
          [&](auto i) { return x.get_int(i); }, [&](auto i, auto v) { y.set_int(i, v); });
    else
      accumulate<std::uint64_t>(
          r, x, y,
          low    ? 0
          : high ? largest
                 : one,
          [&](auto i) { return x.get_uint(i); }, [&](auto i, auto v) { is_bool(y.dtype()) ? y.set_double(i, v != 0) : y.set_uint(i, v); });
  }
  static Value expand(const Reduce& r, Value reduced, const Dims& shape) {
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
      if (kept(r, axis)) axes.push_back(axis);
    return broadcast(reduced, shape, axes);
  }
  static Values jvp(const Reduce& r, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    if (!dx[0]) return {Value()};
    if (r.op == ReduceKind::sum) return {sum(dx[0], r.axes)};
    if (r.op == ReduceKind::prod) return {prod_jvp(r, x[0], dx[0])};
    // Ties share the derivative evenly.
    Value at_extreme = eq(x[0], expand(r, y[0], x[0].shape()));
    Value ties = sum(cast(at_extreme, dx[0].dtype()), r.axes);
    if (may_be_empty(r, x[0].type())) ties = max(ties, scalar(ties, 1, ties.dtype()));
    return {sum(select(at_extreme, dx[0], zeros_like(dx[0])), r.axes) / ties};
  }
  static bool may_be_empty(const Reduce& r, const Type& x) {
    return std::any_of(r.axes.begin(), r.axes.end(), [&](std::int64_t axis) { return !(x.dim(axis) - 1).known_non_negative(); });
  }
  /// Sum over elements of its tangent times the product of the others, without dividing (elements may be zero).
  static Value prod_jvp(const Reduce& r, Value x, Value dx) {
    std::vector<std::int64_t> perm;
    Dims flat;
    for (int axis = 0; axis < x.rank(); ++axis)
      if (kept(r, axis)) perm.push_back(axis), flat.push_back(x.dim(axis));
    Dim count = 1;
    for (std::int64_t axis : r.axes) perm.push_back(axis), count *= x.dim(axis);
    flat.push_back(count);
    Value rows = reshape(rlx::transpose(x, perm), flat), tangents = reshape(rlx::transpose(dx, perm), flat);
    const int last = rows.rank() - 1;
    Value before = cumprod(rows, last, true, false), after = cumprod(rows, last, true, true);
    return sum(tangents * before * after, {last});
  }
  static Values transpose_sum(const Reduce& r, Value x, Value dy) { return {expand(r, dy, x.shape())}; }
  static Values transpose(const Reduce& r, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    if (r.op != ReduceKind::sum) fail_internal("rlx.reduce: only a sum is linear");
    return transpose_sum(r, x[0], dy[0]);
  }

  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, f16, bf16, i8, i32, u8, i64})
      for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min})
        for (const Axes& axes : {Axes{1}, Axes{0}, Axes{0, 2}, Axes{0, 1, 2}})
          all.push_back({{{{t, {3, 4, 5}}, is_unsigned_int(t) ? 0.0 : -3.0, 3}}, attrs_of(Reduce{kind, axes})});
    all.push_back({{{{f32, {3, 4}}, 0.5, 1.5}}, attrs_of(Reduce{ReduceKind::prod, {1}}), 1e-6});
    all.push_back({{{{boolean, {3, 4}}, 0, 1}}, attrs_of(Reduce{ReduceKind::max, {1}})});
    all.push_back({{{{c64, {3, 4}}}}, attrs_of(Reduce{ReduceKind::sum, {0}})});
    for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min, ReduceKind::prod})
      all.push_back({{{{f32, {3, 0}}}}, attrs_of(Reduce{kind, {1}}), 0, kind == ReduceKind::sum || kind == ReduceKind::prod});
    return all;
  }
};
const Op<Reduce> reduce_op;

Axes all_axes(Value x) {
  std::vector<std::int64_t> axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Value reduce(std::string_view builder, ReduceKind kind, Value x, Axes axes, bool keep_dims) {
  for (auto& axis : axes.values) axis = normalize_axis(builder, axis, x.type());
  std::sort(axes.values.begin(), axes.values.end());
  if (axes.values.empty()) return x;
  Value result = reduce_op({kind, axes}, x);
  if (!keep_dims) return result;
  Dims shape = x.shape();
  for (std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
  return reshape(result, shape);
}

}  // namespace

/// The sum over `axes`, which disappear, or stay with size 1 (keep_dims). No axes: x itself. Integers keep their type and wrap. Throws
/// Error for bool.
Value sum(Operand x, Axes axes, bool keep_dims /*= false*/) { return reduce("sum", ReduceKind::sum, x, axes, keep_dims); }
/// The sum over all axes, of rank 0.
Value sum_all(Operand x) { return sum(x, all_axes(x)); }
/// The product over `axes`; as sum.
Value prod(Operand x, Axes axes, bool keep_dims /*= false*/) { return reduce("prod", ReduceKind::prod, x, axes, keep_dims); }
/// The largest element over `axes`, which disappear or stay as in sum; NaN wins, ties share the gradient. Of no elements the least value of
/// the type: -infinity (f8e4m3: -448), the least integer, false. Throws Error for complex numbers.
Value reduce_max(Operand x, Axes axes, bool keep_dims /*= false*/) { return reduce("reduce_max", ReduceKind::max, x, axes, keep_dims); }
/// The smallest element over `axes`; as reduce_max, of no elements the greatest value.
Value reduce_min(Operand x, Axes axes, bool keep_dims /*= false*/) { return reduce("reduce_min", ReduceKind::min, x, axes, keep_dims); }

}  // namespace rlx
