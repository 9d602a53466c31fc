// Running sums, products and extremes along an axis.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "ir/extremum.h"
#include "ir/op.h"
#include "ops/reduction/recurrence.h"
#include "ops/wide.h"

namespace rlx {
namespace {

template <class T>
T combine(ReduceKind kind, T a, T b) {
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    if (kind == ReduceKind::sum) return a + b;
    if (kind == ReduceKind::prod) return a * b;
    return kind == ReduceKind::max ? maximum(a.real(), b.real()) : minimum(a.real(), b.real());
  } else {
    // Sums and products of integers wrap, so they are taken without sign.
    if (kind == ReduceKind::sum) return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    if (kind == ReduceKind::prod) return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    return kind == ReduceKind::max ? maximum(a, b) : minimum(a, b);
  }
}

struct Cumulative {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "cumulative";
  static constexpr std::string_view formula =
      "the running sum, max, min or prod along `axis`; reverse: from the end; exclusive: without the element itself";
  ReduceKind op = ReduceKind::sum;
  Axis axis;
  bool exclusive = false, reverse = false;
  static auto fields() { return Fields<&Cumulative::op, &Cumulative::axis, &Cumulative::exclusive, &Cumulative::reverse>{}; }
  static bool ordered(const Cumulative& op) { return op.op == ReduceKind::max || op.op == ReduceKind::min; }
  static Type infer(const Cumulative& op, const Type& x) {
    if (is_complex(x.dtype) && ordered(op)) fail("rlx.cumulative: {} has no order", x.to_string());
    if (is_bool(x.dtype)) fail("rlx.cumulative: {} is not a number: cast it first", x.to_string());
    return x;
  }

  template <class T, class Get, class Set>
  static void run(const Cumulative& op, const Array& x, T start, Get get, Set set) {
    const auto axis = static_cast<std::size_t>(op.axis.value);
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < x.shape().size(); ++d) inner *= x.shape()[d];
    const std::int64_t n = x.shape()[axis], rows = x.size() == 0 ? 0 : x.size() / (n * inner);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t c = 0; c < inner; ++c) {
        T total = start;
        for (std::int64_t k = 0; k < n; ++k) {
          const std::int64_t i = (row * n + (op.reverse ? n - 1 - k : k)) * inner + c;
          const T next = combine(op.op, total, get(i));
          set(i, op.exclusive ? total : next);
          total = next;
        }
      }
  }
  static void evaluate(const Cumulative& op, std::span<const Array> in, std::span<Array> out) {
    const Array& x = in[0];
    Array& y = out[0];
    const bool max = op.op == ReduceKind::max, min = op.op == ReduceKind::min, prod = op.op == ReduceKind::prod;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (is_signed_int(x.dtype()))
      run<std::int64_t>(
          op, x,
          max   ? -static_cast<std::int64_t>(largest_integer(x.dtype())) - 1
          : min ? static_cast<std::int64_t>(largest_integer(x.dtype()))
                : prod,
          [&](auto i) { return x.get_int(i); }, [&](auto i, auto v) { y.set_int(i, v); });
    else if (is_unsigned_int(x.dtype()))
      run<std::uint64_t>(
          op, x, min ? largest_integer(x.dtype()) : prod, [&](auto i) { return x.get_uint(i); }, [&](auto i, auto v) { y.set_uint(i, v); });
    else
      run<std::complex<double>>(
          op, x,
          max   ? -infinity
          : min ? infinity
                : prod,
          [&](auto i) { return x.get_complex(i); }, [&](auto i, auto v) { y.set_complex(i, v); });
  }

  static Value joined(ReduceKind kind, Value a, Value b) {
    switch (kind) {
      case ReduceKind::sum: return a + b;
      case ReduceKind::prod: return a * b;
      case ReduceKind::max: return max(a, b);
      case ReduceKind::min: return min(a, b);
    }
    return a;
  }
  /// After each step an element has what twice as many before it make.
  static Value expansion(const Cumulative& op, Value x) {
    const DType type = x.dtype();
    if (op.op == ReduceKind::min && is_integer(type))
      return logical_not(expansion({ReduceKind::max, op.axis, op.exclusive, op.reverse}, logical_not(x)));
    if (is_float(type)) x = widen(x);
    const double end = op.op == ReduceKind::max ? lowest(x.dtype()) : infinity;
    const double neutral = op.op == ReduceKind::sum ? 0 : op.op == ReduceKind::prod ? 1 : end;
    for (std::int64_t places = 1; places < x.dim(op.axis).upper(); places *= 2)
      x = joined(op.op, moved(x, places, op.axis, op.reverse, neutral), x);
    return cast(op.exclusive ? moved_by_one(x, op.axis, op.reverse, neutral) : x, type);
  }

  static Values jvp(const Cumulative& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    if (!dx[0]) return {Value()};
    if (op.op == ReduceKind::sum) return {cumsum(dx[0], op.axis, op.exclusive, op.reverse)};
    const auto without_last = [&](Value v, double first) { return moved_by_one(v, op.axis, op.reverse, first); };
    Value tangent;
    if (op.op == ReduceKind::prod) {
      const Value before = op.exclusive ? y[0] : without_last(y[0], 1);  // each element: x_k times what came before it
      tangent = linear_recurrence(x[0], before * dx[0], op.axis, op.reverse);
    } else {
      tangent = running_extremum_tangent(x[0], dx[0], op.op, op.axis, op.reverse);
    }
    return {op.exclusive ? without_last(tangent, 0) : tangent};
  }
  static Values transpose(const Cumulative& op, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    if (op.op != ReduceKind::sum) fail_internal("rlx.cumulative: only a sum is linear");
    return {cumsum(dy[0], op.axis, op.exclusive, !op.reverse)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, u8, i64})
      for (ReduceKind kind : {ReduceKind::sum, ReduceKind::max, ReduceKind::min})
        for (bool reverse : {false, true})
          all.push_back({{{{t, {3, 5, 2}}, is_unsigned_int(t) ? 0.0 : -3.0, 3}}, attrs_of(Cumulative{kind, 1, false, reverse}), 1e-6});
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true}) {
        all.push_back({{{{f32, {2, 7}}, 0.5, 1.5}}, attrs_of(Cumulative{ReduceKind::prod, -1, exclusive, reverse}), 1e-6});
        all.push_back({{{{f32, {4, 3}}}}, attrs_of(Cumulative{ReduceKind::sum, 0, exclusive, reverse}), 1e-6});
      }
    all.push_back({{{{c64, {4}}}}, attrs_of(Cumulative{ReduceKind::sum, 0, false, false}), 1e-6});
    return all;
  }
};
const Op<Cumulative> cumulative_op;

}  // namespace

/// The sum of the elements up to each one along `axis`; exclusive leaves the element itself out, reverse starts at the end. The shape
/// stays, and so it does for the three below; integers keep their type and wrap. Throws Error for bool.
Value cumsum(Operand x, std::int64_t axis, bool exclusive /*= false*/, bool reverse /*= false*/) {
  return cumulative_op({ReduceKind::sum, axis, exclusive, reverse}, x);
}
/// The running product; its derivative needs no division, so elements may be 0.
Value cumprod(Operand x, std::int64_t axis, bool exclusive /*= false*/, bool reverse /*= false*/) {
  return cumulative_op({ReduceKind::prod, axis, exclusive, reverse}, x);
}
/// The largest element so far; NaN stays. Ties split the derivative pair by pair, as in JAX.
Value cummax(Operand x, std::int64_t axis, bool reverse /*= false*/) { return cumulative_op({ReduceKind::max, axis, false, reverse}, x); }
/// The smallest element so far; as cummax.
Value cummin(Operand x, std::int64_t axis, bool reverse /*= false*/) { return cumulative_op({ReduceKind::min, axis, false, reverse}, x); }

}  // namespace rlx
