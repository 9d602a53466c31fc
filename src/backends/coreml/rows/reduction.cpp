// Reductions, running ones, and sorting.
#include <cmath>
#include <limits>

#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

Tensors reduce(const Call& c) {
  const Sizes axes = c.numbers("axes");
  if (axes.empty()) return {c.x[0]};
  return {wrapped(c.out, reduced(c.out, std::string(c.word("op")), c.x[0], axes), c.result_type())};
}

/// What a running reduction of nothing gives.
double neutral(std::string_view kind, DType type) {
  if (kind == "sum") return 0;
  if (kind == "prod") return 1;
  const bool largest = kind == "min";
  if (is_float(type)) return largest ? INFINITY : -INFINITY;
  const double range = std::ldexp(1, info(type).bits - (is_signed_int(type) ? 1 : 0));
  return largest ? range - 1 : is_signed_int(type) ? -range : 0;
}

Tensor turned(Body& out, const Tensor& x, std::int64_t axis, bool turn) { return turn ? reversed(out, x, {axis}) : x; }

/// `count` elements of one value before those along an axis, whose last ones are dropped.
Tensor later(Body& out, const Tensor& x, std::int64_t axis, std::int64_t count, double value) {
  const auto d = static_cast<std::size_t>(axis);
  Dims shape = x.shape;
  shape[d] = count;
  return cut(out, concat(out, {filled(out, x.element, shape, value), x}, axis), d, 0, x.shape[d]);
}

Tensors cumulative(const Call& c) {
  static constexpr std::string_view names[] = {"add", "maximum", "minimum", "mul"};
  const std::string_view kind = c.word("op");
  const std::int64_t axis = c.axis(), n = c.x[0].shape[static_cast<std::size_t>(axis)].upper();
  const double start = neutral(kind, c.type(0));
  const std::string_view name = names[kind == "sum" ? 0 : kind == "max" ? 1 : kind == "min" ? 2 : 3];
  Tensor y = turned(c.out, c.x[0], axis, c.flag("reverse"));
  for (std::int64_t step = 1; step < n; step *= 2) y = binary(c.out, name, y, later(c.out, y, axis, step, start));
  if (c.flag("exclusive")) y = later(c.out, y, axis, 1, start);
  return {wrapped(c.out, turned(c.out, y, axis, c.flag("reverse")), c.result_type())};
}

/// A step of 2^i places puts two stretches of that length together.
Tensors linear_recurrence(const Call& c) {
  const std::int64_t axis = c.axis(), n = c.x[0].shape[static_cast<std::size_t>(axis)].upper();
  const bool reverse = c.flag("reverse");
  Tensor a = turned(c.out, c.x[0], axis, reverse), b = turned(c.out, c.x[1], axis, reverse);
  for (std::int64_t step = 1; step < n; step *= 2) {
    b = binary(c.out, "add", binary(c.out, "mul", a, later(c.out, b, axis, step, 0)), b);
    a = binary(c.out, "mul", a, later(c.out, a, axis, step, 0));
  }
  return {turned(c.out, b, axis, reverse)};
}

/// Which of two keys comes first, for [rows, n, 1] and [rows, 1, n]: NaN is the largest, whatever the bits.
struct Order {
  Order(Body& out, const Tensor& x, bool descending) {
    const Dim &rows = x.shape[0], &n = x.shape[1];
    const Tensor self = reshape(out, x, {rows, n, 1}), other = reshape(out, x, {rows, 1, n});
    before = compare(out, descending ? "greater" : "less", other, self);
    same = compare(out, "equal", other, self);
    if (x.element == Element::i32) return;
    const Tensor self_nan = is_nan(out, self), other_nan = is_nan(out, other);
    const Tensor& first = descending ? other_nan : self_nan;
    const Tensor& second = descending ? self_nan : other_nan;
    before = compare(out, "logical_or", before, compare(out, "logical_and", first, logical_not(out, second)));
    same = compare(out, "logical_or", same, compare(out, "logical_and", self_nan, other_nan));
  }
  Tensor before, same;
};

constexpr std::int64_t most_sorted = 2048;

/// CoreML's own sorting leaves open which of equal elements is first: each element counts those that come before it.
Tensors sort(const Call& c) {
  const auto axis = static_cast<std::size_t>(c.axis());
  Sizes perm;
  Dims moved_shape;
  for (std::int64_t d = 0; d < c.x[0].rank(); ++d)
    if (d != static_cast<std::int64_t>(axis)) perm.push_back(d);
  perm.push_back(static_cast<std::int64_t>(axis));
  for (const std::int64_t d : perm) moved_shape.push_back(c.x[0].shape[static_cast<std::size_t>(d)]);
  const Dim n = moved_shape.back(), rows = product({moved_shape.begin(), moved_shape.end() - 1});
  Tensors lines;
  for (const Tensor& x : c.x) lines.push_back(reshape(c.out, transpose(c.out, x, perm), {rows, n}));

  const Tensor numbers = line(c.out, n), elements = reshape(c.out, numbers, {1, n, 1}), places = reshape(c.out, numbers, {1, 1, n});
  Tensor first = compare(c.out, "less", places, elements);
  for (std::int64_t key = c.number("keys"); key-- > 0;) {
    const Order order(c.out, lines[static_cast<std::size_t>(key)], c.flag("descending"));
    first = compare(c.out, "logical_or", order.before, compare(c.out, "logical_and", order.same, first));
  }
  const Tensor place = reduced(c.out, "sum", convert(c.out, first, Element::i32), {2});  // of each element
  const Tensor is_there = convert(c.out, compare(c.out, "equal", reshape(c.out, place, {rows, n, 1}), places), Element::i32);
  const Tensor from = reduced(c.out, "sum", binary(c.out, "mul", is_there, elements), {1});  // by place: the element that lies there

  Tensors results;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Tensor y =
        c.out.add("gather_along_axis", {{"x", lines[i]}, {"indices", from}, {"axis", Immediate(1)}, {"validate_indices", Immediate(false)}},
                  lines[i].element, {rows, n});
    results.push_back(transpose(c.out, reshape(c.out, y, moved_shape), inverse(perm)));
  }
  return results;
}

bool is_short(const Graph& graph, const Node& node) {
  const Type& type = graph.type(node.operands[0]);
  const std::int64_t axis = std::get<std::int64_t>(node.attrs[0]);
  return type.dim(axis).upper() <= most_sorted;
}

}  // namespace

Rows reduction_rows() {
  static constexpr Row<Rule> rows[] = {
      {"reduce", reduce},
      {"cumulative", cumulative},
      {"linear_recurrence", linear_recurrence},
      {"sort", sort, is_short,
       "CoreML's sorting leaves open which of equal elements is first, and comparing all pairs is for 2048 of them"}};
  return rows;
}

}  // namespace rlx::coreml
