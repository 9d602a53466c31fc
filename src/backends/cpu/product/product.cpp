#include "backends/cpu/product/product.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "backends/cpu/gemm/dot_products.h"
#include "backends/cpu/gemm/winograd.h"
#include "lowering/products/strided_view.h"

namespace rlx::cpu {
namespace {

bool all_merge(const std::vector<ProductAxis>& axes, std::span<const Stride> strides) {
  for (std::size_t i = 1; i < axes.size(); ++i)
    if (!merges(axes[i - 1], axes[i], strides)) return false;
  return true;
}

Dim total(const std::vector<ProductAxis>& axes) {
  Dim extent = 1;
  for (const ProductAxis& axis : axes) extent *= axis.extent;
  return extent;
}

/// The value, or what it repeats the elements of, as windows do: that is what to store.
ValueId unexpanded(const Graph& graph, ValueId value, const Puller::IsStored& is_stored) {
  const Node& node = graph.node(value.node);
  if (node.op->name != "window" || is_stored(node.operands[0])) return value;
  return unexpanded(graph, node.operands[0], is_stored);
}

/// The axes that are contracted, of the left operand (0) and the right one (1), and those of the batch (2, 3).
const std::vector<std::int64_t>& axes_in(const Node& dot, std::size_t list) { return std::get<std::vector<std::int64_t>>(dot.attrs[list]); }

bool are_few_columns(const Dim& columns, const Dim& depth) {
  return columns.is_static() && columns.value() <= most_dot_columns && depth.is_static() && depth.value() >= least_dot_depth;
}

/// Whether the value reads elements of a stored one several times, as windows do.
bool repeats_elements(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (!node.op->sources || node.operands.size() != 1) return false;
  return node.op->name == "window" || repeats_elements(graph, node.operands[0]);
}

constexpr std::size_t left = 0, right = 1;

/// Whether a step along the outermost axis of the rows passes all that the others reach in A, as one from image to image does.
bool passes_others(const std::vector<ProductAxis>& rows, const std::vector<ProductAxis>& depth) {
  Dim reach = 1;
  for (const auto* axes : {&rows, &depth})
    for (const ProductAxis& axis : *axes)
      if (&axis != &rows.front()) reach += (axis.extent - 1) * axis.a_stride;
  return (rows.front().a_stride - reach).known_non_negative();
}

/// Merges the axes into those of `p`. Returns the operand, if any, that has to lie otherwise in memory before they merge.
std::optional<std::size_t> merge_into(Product& p, ProductAxes axes) {
  auto& [batch, rows, columns, depth] = axes;
  p.batch = std::move(batch);
  merge_axes(std::move(columns), p.columns, p.batch);
  if (!(p.columns.extent == Dim(1)) && !(p.columns.c_stride == Dim(1))) return right;  // it repeats a column axis
  std::vector<ProductAxis> rest;
  merge_axes(depth, p.depth, rest);
  // Images of a batch are items: their positions follow each other in no result that has channels outside.
  while (!rest.empty() && rows.size() > 1 && passes_others(rows, depth)) {
    p.batch.push_back(rows.front());
    rows.erase(rows.begin());
  }
  if (rest.empty()) {
    merge_axes(std::move(rows), p.rows, p.batch);
    return std::nullopt;
  }
  // Several contracted axes that are not one: tables where the rows follow each other, else the side whose strides do not chain is stored.
  if (!all_merge(rows, std::array{&ProductAxis::c_stride})) return rest.back().a_stride == p.depth.a_stride * p.depth.extent ? right : left;
  p.row_axes = std::move(rows);
  p.depth_axes = std::move(depth);
  p.depth.extent = total(p.depth_axes);
  p.rows = {total(p.row_axes), 0, 0, p.row_axes.empty() ? Dim(0) : p.row_axes.back().c_stride};
  p.b_by_tables = !all_merge(p.depth_axes, std::array{&ProductAxis::b_stride});
  return std::nullopt;
}

/// Products of narrow operands.
struct NarrowForm {
  DType element;
  bool float_left;  // the left operand is f32
  DType sum;
  bool (*has_kernel)(CpuLevel level);
};

constexpr NarrowForm narrow_forms[] = {{bf16, false, f32, has_micro_kernel<Bf16>},
                                       {i8, false, i32, has_micro_kernel<std::int8_t>},
                                       {bf16, true, f32, has_micro_kernel<Bf16Weight>},
                                       {f16, true, f32, has_micro_kernel<F16>}};

std::optional<NarrowOperands> narrow_operands_of(const Graph& graph, ValueId dot, const NarrowForm& form, CpuLevel level) {
  if (graph.type(dot).dtype != form.sum || !form.has_kernel(level)) return std::nullopt;
  auto narrow = widened_operands(graph, dot, form.element, !form.float_left);
  if (!narrow) return std::nullopt;
  // What lies between the casts and the dot is never stored, so the narrow values have to make a product through it.
  const DotReading r = read_dot(graph, dot, [&](ValueId v) { return v == narrow->values[left] || v == narrow->values[right]; });
  const auto a = view_of(r, left, narrow->widens_left), b = view_of(r, right, true);
  Product scratch;
  if (!a || !b || merge_into(scratch, axes_of(graph.type(dot), r, *a, *b))) return std::nullopt;
  return narrow;
}

}  // namespace

std::optional<NarrowOperands> narrow_operands(const Graph& graph, ValueId dot, CpuLevel level) {
  for (const NarrowForm& form : narrow_forms)
    if (auto narrow = narrow_operands_of(graph, dot, form, level)) return narrow;
  return std::nullopt;
}

std::optional<Product> as_product(const Graph& graph, ValueId dot, CpuLevel level, const Puller::IsStored& is_stored, ValueId& blocker) {
  const auto narrow = narrow_operands(graph, dot, level);
  const auto operand = [&](std::size_t side) { return narrow ? narrow->values[side] : graph.node(dot.node).operands[side]; };
  const DotReading r = read_dot(graph, dot, [&](ValueId v) { return !(narrow && narrow->widened.count(v)) && is_stored(v); });
  std::array<std::optional<View>, 2> views;
  for (std::size_t side = 0; side < 2; ++side) {
    views[side] = view_of(r, side, narrow && (side == right || narrow->widens_left));
    if (views[side]) continue;
    blocker = unexpanded(graph, operand(side), is_stored);
    return std::nullopt;
  }
  const auto& [a, b] = views;
  Product p;
  p.element = narrow ? narrow->element : a->dtype;
  p.float_left = narrow && !narrow->widens_left;
  p.dot = p.result = dot;
  p.a = a->value;
  p.b = b->value;
  p.a_offset = a->offset;
  p.b_offset = b->offset;
  const auto side = merge_into(p, axes_of(graph.type(dot), r, *a, *b));
  if (!side) return p;
  blocker = operand(is_stored(operand(*side)) ? 1 - *side : *side);
  return std::nullopt;
}

Dim free_elements(const Graph& graph, const Node& dot, std::size_t side) {
  const Type& type = graph.type(dot.operands[side]);
  Dim count = 1;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(type.shape.size()); ++axis)
    if (!std::ranges::count(axes_in(dot, side), axis) && !std::ranges::count(axes_in(dot, side + 2), axis)) count *= type.dim(axis);
  return count;
}

bool is_bound_by_reading(const Graph& graph, const Node& dot, bool weights) {
  constexpr std::int64_t few_rows = 2;
  if (repeats_elements(graph, dot.operands[left]) || repeats_elements(graph, dot.operands[right])) return false;
  const bool packed_once = weights && axes_in(dot, 3).empty();  // a weight for each item is packed in every run
  const Dim rows = free_elements(graph, dot, left);
  return free_elements(graph, dot, right) == Dim(1) || (!packed_once && rows.is_static() && rows.value() <= few_rows);
}

bool has_few_columns(const Graph& graph, const Node& dot) {
  Dim depth = 1;
  for (std::int64_t axis : axes_in(dot, left)) depth *= graph.type(dot.operands[left]).dim(axis);
  return are_few_columns(free_elements(graph, dot, right), depth) && !repeats_elements(graph, dot.operands[left]);
}

bool suits_winograd(const Product& p) {
  const auto& [rows, depth] = std::tie(p.row_axes, p.depth_axes);
  const bool in_order = p.epilogue && !p.epilogue_by_columns && !p.prologue;
  const bool one_kernel = p.batch.empty() || (p.batch.size() == 1 && p.batch[0].b_stride == Dim(0));
  if (!in_order || !one_kernel || p.element != f32 || p.float_left || rows.size() != 2 || depth.size() != 3) return false;
  const ProductAxis &line = rows[0], &position = rows[1], &channel = depth[2];
  const bool three = depth[0].extent == Dim(3) && depth[1].extent == Dim(3) && channel.a_stride == Dim(1);
  if (!three || !(depth[0].a_stride == line.a_stride) || !(depth[1].a_stride == position.a_stride)) return false;
  const bool is_static =
      line.extent.is_static() && position.extent.is_static() && channel.extent.is_static() && p.columns.extent.is_static();
  return is_static && worth_winograd(line.extent.value(), position.extent.value(), channel.extent.value(), p.columns.extent.value());
}

bool suits_dots(const Product& p, CpuLevel level) {
  const auto has_kernel = [level]<class T>(T) { return has_micro_kernel<T>(level) && micro_kernel<T>(level).dots[1] != nullptr; };
  const bool has = p.element == f32    ? has_kernel(float{})
                   : p.element == f64  ? has_kernel(double{})
                   : p.element == bf16 ? has_kernel(Bf16{})
                   : p.element == i8   ? has_kernel(std::int8_t{})
                                       : false;
  const bool is_plain = !p.float_left && !p.prologue && p.row_axes.empty() && p.depth_axes.empty() && p.depth.a_stride == Dim(1);
  return has && is_plain && are_few_columns(p.columns.extent, p.depth.extent);
}

}  // namespace rlx::cpu
