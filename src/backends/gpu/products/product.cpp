#include "backends/gpu/products/product.h"

namespace rlx::gpu {
namespace {

/// What stands in the way of blocks of threads: 0 and 1 are operands.
std::optional<std::size_t> merge_into(Product& p, ProductAxes axes) {
  p.items = std::move(axes.batch);
  merge_axes(std::move(axes.columns), p.columns, p.items);
  merge_axes(std::move(axes.rows), p.rows, p.items);
  std::vector<ProductAxis> rest;
  merge_axes(std::move(axes.depth), p.depth, rest);
  if (!rest.empty()) return rest.back().a_stride == p.depth.a_stride * p.depth.extent ? 1 : 0;
  if (!p.a_along_depth() && !(p.rows.a_stride == Dim(1)) && !(p.rows.extent == Dim(1))) return 0;
  if (!p.b_along_depth() && !(p.columns.b_stride == Dim(1)) && !(p.columns.extent == Dim(1))) return 1;
  return std::nullopt;
}

/// Matrix units read i8 along the depth alone, in pairs.
bool has_pairs(const Product& p) {
  const auto is_even = [](const Dim& size) { return Dim::exact_div(size, 2).has_value(); };
  bool even = is_even(p.depth.extent) && is_even(p.a_stride()) && is_even(p.b_stride()) && is_even(p.a.offset) && is_even(p.b.offset);
  for (const ProductAxis& axis : p.items) even = even && is_even(axis.a_stride) && is_even(axis.b_stride);
  return even && p.a_along_depth() && p.b_along_depth();
}

}  // namespace

std::optional<NarrowOperands> narrow_operands(const Graph& graph, ValueId dot) {
  for (const DType element : {bf16, f16, i8}) {
    if (graph.type(dot).dtype != (element == i8 ? i32 : f32)) continue;
    if (auto narrow = widened_operands(graph, dot, element, true)) {
      const auto is_operand = [&](ValueId v) { return v == narrow->values[0] || v == narrow->values[1]; };
      const DotReading reading = read_dot(graph, dot, is_operand);
      const auto a = view_of(reading, 0, true), b = view_of(reading, 1, true);
      Product scratch;
      if (!a || !b || merge_into(scratch, axes_of(graph.type(dot), reading, *a, *b))) continue;
      scratch.a = *a, scratch.b = *b;
      if (element != i8 || has_pairs(scratch)) return narrow;
    }
  }
  return std::nullopt;
}

std::optional<Product> as_product(const Graph& graph, ValueId dot, const Puller::IsStored& is_stored, ValueId& blocker) {
  const auto narrow = narrow_operands(graph, dot);
  const auto operand = [&](std::size_t side) { return narrow ? narrow->values[side] : graph.node(dot.node).operands[side]; };
  const DotReading reading = read_dot(graph, dot, [&](ValueId v) { return !(narrow && narrow->widened.count(v)) && is_stored(v); });
  std::array<std::optional<View>, 2> views;
  for (std::size_t side = 0; side < 2; ++side)
    if (views[side] = view_of(reading, side, narrow.has_value()); !views[side]) {
      blocker = operand(side);
      return std::nullopt;
    }
  Product p;
  p.element = views[0]->dtype;
  p.dot = dot;
  p.a = *views[0], p.b = *views[1];
  auto side = merge_into(p, axes_of(graph.type(dot), reading, p.a, p.b));
  if (!side && p.element == i8 && !has_pairs(p)) side = 0;  // as they lie where they are stored
  if (!side) return p;
  blocker = operand(is_stored(operand(*side)) ? 1 - *side : *side);
  return std::nullopt;
}

}  // namespace rlx::gpu
