// Running sums, products and extremes along an axis.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "ir/extremum.h"
#include "ir/op.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

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

// A running value with its tangent.
struct Dual {
  Value value, tangent;
};

Dual combine(ReduceKind kind, const Dual& a, const Dual& b) {
  if (kind == ReduceKind::prod) return {a.value * b.value, a.tangent * b.value + a.value * b.tangent};
  // Ties split the derivative, pair by pair as in JAX.
  Value tie = cast(eq(a.value, b.value), a.tangent.dtype()) * 0.5;
  Value first = cast(kind == ReduceKind::max ? gt(a.value, b.value) : lt(a.value, b.value), a.tangent.dtype()) + tie;
  Value value = kind == ReduceKind::max ? max(a.value, b.value) : min(a.value, b.value);
  return {value, a.tangent * first + b.tangent * (1 - first)};
}

// Elements begin, begin + stride, ... below end along the axis.
Dual part(const Dual& x, std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t stride = 1) {
  return {slice_axis(x.value, axis, begin, end, stride), slice_axis(x.tangent, axis, begin, end, stride)};
}

// a0 b0 a1 b1 ...; a may have one element more.
Value interleave(Value a, Value b, std::int64_t axis) {
  const std::int64_t length = a.dim(axis).value() + b.dim(axis).value();
  const std::size_t rank = a.shape().size(), at = static_cast<std::size_t>(axis);
  std::vector<std::int64_t> interior(rank, 0);
  interior[at] = 1;
  auto spread = [&](Value x, std::int64_t first) {
    Dims lo(rank, 0), hi(rank, 0);
    lo[at] = first;
    hi[at] = length - first - (2 * x.dim(axis).value() - 1);
    return pad(x, lo, hi, interior, 0);
  };
  return spread(a, 0) + spread(b, 1);
}

// The inclusive scan by pairs (Blelloch), logarithmic depth, as JAX's associative_scan orders it.
Dual scan(ReduceKind kind, const Dual& x, std::int64_t axis) {
  const std::int64_t n = x.value.dim(axis).value();
  if (n < 2) return x;
  const Dual odd = scan(kind, combine(kind, part(x, axis, 0, n / 2 * 2, 2), part(x, axis, 1, n, 2)), axis);
  if (n == 2) return {concat({part(x, axis, 0, 1).value, odd.value}, axis), concat({part(x, axis, 0, 1).tangent, odd.tangent}, axis)};
  const Dual even = combine(kind, part(odd, axis, 0, (n - 1) / 2), part(x, axis, 2, n, 2)), first = part(x, axis, 0, 1);
  return {interleave(concat({first.value, even.value}, axis), odd.value, axis),
          interleave(concat({first.tangent, even.tangent}, axis), odd.tangent, axis)};
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
    const int bits = info(x.dtype()).bits;
    const auto greatest = static_cast<std::int64_t>(~0ull >> (65 - bits));
    if (is_signed_int(x.dtype()))
      run<std::int64_t>(
          op, x,
          max   ? -greatest - 1
          : min ? greatest
                : prod,
          [&](auto i) { return x.get_int(i); }, [&](auto i, auto v) { y.set_int(i, v); });
    else if (is_unsigned_int(x.dtype()))
      run<std::uint64_t>(
          op, x, min ? ~0ull >> (64 - bits) : prod, [&](auto i) { return x.get_uint(i); }, [&](auto i, auto v) { y.set_uint(i, v); });
    else
      run<std::complex<double>>(
          op, x,
          max   ? -infinity
          : min ? infinity
                : prod,
          [&](auto i) { return x.get_complex(i); }, [&](auto i, auto v) { y.set_complex(i, v); });
  }

  // Moves the elements by one towards the end; 0 comes in.
  static Value shifted(Value x, std::int64_t axis) {
    Dims lo(x.shape().size(), 0), hi = lo;
    lo[static_cast<std::size_t>(axis)] = 1;
    hi[static_cast<std::size_t>(axis)] = -1;
    return pad(x, lo, hi, {}, 0);
  }
  static Values jvp(const Cumulative& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    if (!dx[0]) return {Value()};
    if (op.op == ReduceKind::sum) return {cumsum(dx[0], op.axis, op.exclusive, op.reverse)};
    if (!x[0].dim(op.axis).is_static())
      fail("rlx.cumulative: {} along the symbolic axis {} of {} is not differentiable: its tangent is a scan by pairs of a known length",
           enum_words(op.op)[static_cast<std::size_t>(op.op)], op.axis.value, x[0].type().to_string());
    if (x[0].dim(op.axis) == Dim(0)) return {dx[0]};
    const Axes axes{op.axis};
    const Dual forward = op.reverse ? Dual{rlx::reverse(x[0], axes), rlx::reverse(dx[0], axes)} : Dual{x[0], dx[0]};
    Value tangent = scan(op.op, forward, op.axis).tangent;
    if (op.exclusive) tangent = shifted(tangent, op.axis);
    return {op.reverse ? rlx::reverse(tangent, axes) : tangent};
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
