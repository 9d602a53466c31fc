// Reductions, running ones, and sorting. Narrow floats are added in f32.
#include <limits>

#include "backends/mlx/library/call.h"
#include "ir/extremum.h"

namespace rlx::mlx {
namespace {

/// What a reduction of no elements gives.
mx::array neutral(std::string_view kind, mx::Dtype dtype, DType type) {
  if (kind == "sum") return mx::array(0, dtype);
  if (kind == "prod") return mx::array(1, dtype);
  const bool largest = kind == "min";
  if (rlx::is_float(type))
    return mx::array(largest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity(), dtype);
  if (is_bool(type)) return mx::array(largest, mx::bool_);
  if (is_unsigned_int(type)) return mx::array(largest ? largest_integer(type) : 0, dtype);
  const auto most = static_cast<std::int64_t>(largest_integer(type));
  return mx::array(largest ? most : -most - 1, dtype);
}

Results reduce(const Call& c) {
  const std::string_view kind = c.word("op");
  const std::vector<int> axes = c.ints("axes");
  if (axes.empty()) return c.x[0];
  const mx::Dtype dtype = c.x[0].dtype();
  if (c.x[0].size() == 0) return mx::full(c.shape(), neutral(kind, dtype, c.type(0)), dtype);
  if (kind == "sum") return as(mx::sum(wide(c.x[0]), axes), dtype);
  if (kind == "prod") return as(mx::prod(wide(c.x[0]), axes), dtype);
  if (dtype == mx::bool_) return kind == "max" ? mx::any(c.x[0], axes) : mx::all(c.x[0], axes);
  return kind == "max" ? mx::max(c.x[0], axes) : mx::min(c.x[0], axes);
}

mx::array turned(const mx::array& x, int axis, bool turn) { return turn ? mx::take(x, mx::arange(x.shape(axis) - 1, -1, -1), axis) : x; }

/// Elements begin..end-1 along an axis.
mx::array part(const mx::array& x, int axis, int begin, int end) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  start[static_cast<std::size_t>(axis)] = begin, stop[static_cast<std::size_t>(axis)] = end;
  return mx::slice(x, start, stop);
}
/// Each element one place later along an axis, behind `first`.
mx::array later(const mx::array& x, int axis, int places, const mx::array& first) {
  mx::Shape shape = x.shape();
  shape[static_cast<std::size_t>(axis)] = places;
  return mx::concatenate({mx::full(shape, first, x.dtype()), part(x, axis, 0, x.shape(axis) - places)}, axis);
}

mx::array running(const mx::array& x, std::string_view kind, int axis) {
  if (kind == "sum") return mx::cumsum(x, axis);
  if (kind == "prod") return mx::cumprod(x, axis);
  return kind == "max" ? mx::cummax(x, axis) : mx::cummin(x, axis);
}

Results cumulative(const Call& c) {
  const std::string_view kind = c.word("op");
  const int axis = c.axis();
  const bool reverse = c.flag("reverse");
  const mx::array x = turned(wide(c.x[0]), axis, reverse);
  mx::array y = as(running(x, kind, axis), x.dtype());
  if (c.flag("exclusive")) y = later(y, axis, 1, neutral(kind, x.dtype(), c.type(0)));
  return as(turned(y, axis, reverse), c.x[0].dtype());
}

Results linear_recurrence(const Call& c) {
  const int axis = c.axis();
  const bool reverse = c.flag("reverse");
  const auto [a, b] = recurred(turned(wide(c.x[0]), axis, reverse), turned(wide(c.x[1]), axis, reverse), axis);
  return as(turned(b, axis, reverse), c.x[0].dtype());
}

/// From the last key to the first, as sorting is stable; the other way round, downwards.
Results sort(const Call& c) {
  const int axis = c.axis();
  const bool down = c.flag("descending");
  std::vector<mx::array> y;
  for (const mx::array& x : c.x) y.push_back(turned(x, axis, down));
  for (std::int64_t key = c.number("keys"); key-- > 0;) {
    const mx::array& of = y[static_cast<std::size_t>(key)];
    const mx::array order = mx::argsort(of.dtype() == mx::bool_ ? as(of, mx::uint8) : of, axis);
    for (mx::array& one : y) one = mx::take_along_axis(one, order, axis);
  }
  for (mx::array& one : y) one = turned(one, axis, down);
  return y;
}

}  // namespace

/// In log2(n) steps: a step of 2^i places puts two stretches of that length together.
std::pair<mx::array, mx::array> recurred(mx::array a, mx::array b, int axis) {
  const int n = a.shape(axis);
  for (int places = 1; places < n; places *= 2) {
    const mx::array behind = part(a, axis, places, n);
    const mx::array sums = mx::add(mx::multiply(behind, part(b, axis, 0, n - places)), part(b, axis, places, n));
    b = mx::concatenate({part(b, axis, 0, places), sums}, axis);
    a = mx::concatenate({part(a, axis, 0, places), mx::multiply(behind, part(a, axis, 0, n - places))}, axis);
  }
  return {a, b};
}

Rows reduction_rows() {
  static constexpr Row<Rule> rows[] = {
      {"reduce", reduce}, {"cumulative", cumulative},   {"linear_recurrence", linear_recurrence},
      {"sort", sort},     {"running_extremum_tangent"},
  };
  return rows;
}

}  // namespace rlx::mlx
