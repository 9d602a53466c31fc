// Sorting, and the positions of extremes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "ops/broadcasting.h"
#include "ops/reduction/order.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// An integer that orders elements as their values are: NaN of either sign is the largest and equals itself; -0 equals 0.
std::uint64_t rank_of(const Array& x, std::int64_t i) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  if (is_signed_int(x.dtype())) return static_cast<std::uint64_t>(x.get_int(i)) ^ sign;
  if (!is_float(x.dtype())) return x.get_uint(i);
  const double value = x.get_double(i);
  if (std::isnan(value)) return ~std::uint64_t{0};
  const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
  return bits & sign ? ~bits : bits | sign;
}

void copy_element(const Array& from, std::int64_t i, Array& to, std::int64_t j) {
  if (is_packed(from.dtype())) return to.set_uint(j, from.get_uint(i));
  // By bytes: a NaN keeps its sign and payload.
  const std::int64_t width = bytes_for(from.dtype(), 1);
  std::copy_n(from.bytes().begin() + i * width, width, to.mutable_bytes().begin() + j * width);
}

struct Sort {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "sort";
  static constexpr std::string_view formula =
      "all operands reordered along `axis` so that the first `keys` of them, compared one after another, increase (or decrease); stable; "
      "NaN is the largest";
  Axis axis = -1;
  std::int64_t keys = 1;
  bool descending = false;
  static auto fields() { return Fields<&Sort::axis, &Sort::keys, &Sort::descending>{}; }
  static std::vector<Type> infer(const Sort& op, std::span<const Type> x) {
    if (op.keys < 1 || op.keys > static_cast<std::int64_t>(x.size()))
      fail("rlx.sort: {} keys of {} operands (allowed: 1..{})", op.keys, x.size(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!(x[i].shape == x[0].shape))
        fail("rlx.sort: operand {} is {}, operand 0 is {}: shapes must agree", i, x[i].to_string(), x[0].to_string());
      if (static_cast<std::int64_t>(i) < op.keys && is_complex(x[i].dtype))
        fail("rlx.sort: key {} is {}, which has no order", i, x[i].to_string());
    }
    return {x.begin(), x.end()};
  }
  static void evaluate(const Sort& op, std::span<const Array> x, std::span<Array> y) {
    const auto& shape = x[0].shape();
    std::int64_t inner = 1;
    for (auto d = static_cast<std::size_t>(op.axis.value) + 1; d < shape.size(); ++d) inner *= shape[d];
    const std::int64_t n = shape[static_cast<std::size_t>(op.axis.value)], rows = x[0].size() == 0 ? 0 : x[0].size() / (n * inner);
    struct Item {
      std::uint64_t rank;  // of the first key
      std::int64_t from;
    };
    std::vector<Item> order(static_cast<std::size_t>(n));
    const std::uint64_t flip = op.descending ? ~std::uint64_t{0} : 0;
    for (std::int64_t line = 0; line < rows * inner; ++line) {
      const std::int64_t begin = line / inner * n * inner + line % inner;
      const auto rank = [&](std::int64_t key, std::int64_t i) {
        return rank_of(x[static_cast<std::size_t>(key)], begin + i * inner) ^ flip;
      };
      for (std::int64_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = {rank(0, i), i};
      std::sort(order.begin(), order.end(), [&](const Item& a, const Item& b) {
        if (a.rank != b.rank) return a.rank < b.rank;
        for (std::int64_t key = 1; key < op.keys; ++key)
          if (const auto left = rank(key, a.from), right = rank(key, b.from); left != right) return left < right;
        return a.from < b.from;
      });
      for (std::size_t k = 0; k < x.size(); ++k)
        for (std::int64_t i = 0; i < n; ++i)
          copy_element(x[k], begin + order[static_cast<std::size_t>(i)].from * inner, y[k], begin + i * inner);
    }
  }
  /// By the last key first; the orders of equal ones stay.
  static Values expansion(const Sort& op, std::span<const Value> x) {
    const Dim n = x[0].dim(op.axis), size = x[0].type().size();
    if (size == Dim(0) || n == Dim(1)) return {x.begin(), x.end()};
    const Dims turned = move_axis(x[0], op.axis, -1).shape();
    const auto in_lines = [&](Value v) { return reshape(move_axis(v, op.axis, -1), {*Dim::exact_div(size, n), n}); };
    Value order;
    for (auto key = static_cast<std::size_t>(op.keys); key-- > 0;)
      order = sorted_order(ranks_of(in_lines(x[key]), op.descending), order).from;
    Values y;
    for (const Value& v : x) y.push_back(move_axis(reshape(take_along_axis(in_lines(v), order, 1), turned), -1, op.axis));
    return y;
  }
  // Tangents move as their elements do.
  static Values jvp(const Sort& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    Values operands(x.begin(), x.begin() + op.keys);
    operands.push_back(iota(x[0], x[0].shape(), i32, op.axis));
    Value from = sort(operands, op.keys, op.axis, op.descending).back();
    Values result;
    for (const Value& tangent : dx) result.push_back(tangent ? take_along_axis(tangent, from, op.axis) : Value());
    return result;
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, u8, i64, boolean})
      for (bool descending : {false, true})
        all.push_back(
            {{{{t, {3, 7}}, is_unsigned_int(t) || is_bool(t) ? 0.0 : -9.0, is_bool(t) ? 1.0 : 9.0}}, attrs_of(Sort{1, 1, descending})});
    all.push_back({{{{f32, {5, 3}}}, {{i32, {5, 3}}, 0, 9}}, attrs_of(Sort{0, 1, false})});
    all.push_back({{{{i32, {2, 9}}, 0, 2}, {{f32, {2, 9}}}, {{f32, {2, 9}}}}, attrs_of(Sort{1, 2, true})});
    return all;
  }
};
const Op<Sort> sort_op;

struct TopK {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "top_k";
  static constexpr std::string_view formula =
      "the k largest elements along `axis`, largest first, and their positions; ties by position; NaN is the largest";
  std::int64_t k = 1;
  Axis axis = -1;
  static auto fields() { return Fields<&TopK::k, &TopK::axis>{}; }
  static Values body(const TopK& op, Value x) {
    const Dim& size = x.dim(op.axis);
    if (op.k < 0 || !(size - op.k).known_non_negative())
      fail("rlx.top_k: k = {} along axis {} of {} (allowed: 0..{})", op.k, op.axis.value, x.type().to_string(), size.to_string());
    Values sorted = sort({x, iota(x, x.shape(), i32, op.axis)}, 1, op.axis, true);
    for (Value& v : sorted) v = slice_axis(v, op.axis, 0, op.k);
    return sorted;
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {3, 7}}}}, attrs_of(TopK{3, 1})},
            {{{{i32, {6, 2}}, 0, 4}}, attrs_of(TopK{2, 0})},
            {{{{bf16, {5}}}}, attrs_of(TopK{5, 0})}};
  }
};
const Op<TopK> top_k_op;

/// The position of the first extreme along an axis, as i32; NaN is the extreme of both kinds.
template <bool largest>
struct ArgExtreme {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = largest ? "argmax" : "argmin";
  static constexpr std::string_view formula =
      largest ? "the position of the first largest element along `axis`" : "the position of the first smallest element along `axis`";
  Axis axis = -1;
  bool keep_dims = false;
  static auto fields() { return Fields<&ArgExtreme::axis, &ArgExtreme::keep_dims>{}; }
  static Value body(const ArgExtreme& op, Value x) {
    if (x.dim(op.axis) == Dim(0))
      fail("rlx.{}: axis {} of {} has no elements (allowed: at least 1)", name, op.axis.value, x.type().to_string());
    Value extreme = largest ? reduce_max(x, {op.axis}, true) : reduce_min(x, {op.axis}, true);
    Value hit = eq(x, broadcast_to(extreme, x.shape()));
    if (is_float(x.dtype())) hit = logical_or(hit, ne(x, x));
    Value none = scalar(x, std::numeric_limits<std::int32_t>::max(), i32);
    return reduce_min(select(hit, iota(x, x.shape(), i32, op.axis), none), {op.axis}, op.keep_dims);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, u8})
      all.push_back({{{{t, {3, 7}}, is_unsigned_int(t) ? 0.0 : -3.0, 3}}, attrs_of(ArgExtreme{1, false}), 0, false});
    all.push_back({{{{f32, {4, 3, 2}}}}, attrs_of(ArgExtreme{0, true}), 0, false});
    return all;
  }
};
const Op<ArgExtreme<true>> argmax_op;
const Op<ArgExtreme<false>> argmin_op;

}  // namespace

/// Reorders all operands (of one shape, which stays) along `axis` so that the first `keys` of them, compared one after another, increase,
/// or decrease. Equal elements keep their order; NaN is the largest, whatever its sign. Throws Error when shapes differ, or for complex
/// keys.
Values sort(Operands operands, std::int64_t keys /*= 1*/, std::int64_t axis /*= -1*/, bool descending /*= false*/) {
  return sort_op.all({axis, keys, descending}, operands);
}

/// The positions (i32, in the shape of x) that sort x along `axis`: take_along_axis(x, argsort(x)) is sorted.
Value argsort(Operand x, std::int64_t axis /*= -1*/, bool descending /*= false*/) {
  axis = normalize_axis("argsort", axis, x.type());
  return sort({x, iota(x, x.shape(), i32, axis)}, 1, axis, descending)[1];
}

/// The k largest elements along `axis`, whose size becomes k, largest first, and their positions (i32). Ties go to the smaller position;
/// NaN is the largest. Throws Error when k is above the size.
Values top_k(Operand x, std::int64_t k, std::int64_t axis /*= -1*/) {
  const Value operands[] = {x};
  return top_k_op.all({k, axis}, operands);
}

/// The position (i32) of the largest element along `axis`, which disappears or stays with size 1 (keep_dims); the first of ties; a NaN
/// counts as the largest.
Value argmax(Operand x, std::int64_t axis /*= -1*/, bool keep_dims /*= false*/) { return argmax_op({axis, keep_dims}, x); }

/// The position (i32) of the smallest element along `axis`, as argmax; a NaN counts as the smallest.
Value argmin(Operand x, std::int64_t axis /*= -1*/, bool keep_dims /*= false*/) { return argmin_op({axis, keep_dims}, x); }

}  // namespace rlx
