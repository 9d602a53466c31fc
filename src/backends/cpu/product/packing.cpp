#include "backends/cpu/product/packing.h"

#include <algorithm>

#include "backends/cpu/execution/execute.h"
#include "backends/cpu/gemm/dot_products.h"
#include "backends/cpu/gemm/winograd.h"
#include "backends/cpu/machine/level_of.h"

namespace rlx::cpu {

template <class Way>
void list_parts(Way& way, Of<Way, PackedRight>& right) {
  way.one_of("form", right.form, PackedRight::Form::winograd), way("element", right.element), way("float left", right.float_left);
  way("offset", right.offset), way("depth", right.depth), way("columns", right.columns), way("row stride", right.row_stride);
  way("column stride", right.column_stride), way("depth axes", right.depth_axes), way("by tables", right.by_tables);
}

namespace {

const RegisterWork<PackedRight> packed_right_work("packed_right");

/// Where each step of depth lies.
std::vector<std::int64_t> depth_offsets(const PackedRight& right) {
  std::vector<std::int64_t> all{0};
  for (const auto& [extent, stride] : right.depth_axes) {
    std::vector<std::int64_t> next;
    for (std::int64_t base : all)
      for (std::int64_t i = 0; i < extent; ++i) next.push_back(base + i * stride);
    all = std::move(next);
  }
  return all;
}

template <class T>
void pack_panels(const PackedRight& right, const T* b, std::byte* to, const RunState& run) {
  std::vector<std::int64_t> rows, columns;
  Matrix<T> from{b, right.row_stride, right.column_stride};
  if (right.by_tables) {
    rows = depth_offsets(right);
    for (std::int64_t i = 0; i < right.columns; ++i) columns.push_back(i * right.column_stride);
    from.row_offsets = rows.data(), from.col_offsets = columns.data();
  } else if (!right.depth_axes.empty()) {
    from.row_stride = right.depth_axes.back().second;
  }
  PackedB<T>(1, right.depth, right.columns, micro_kernel<T>(level_of(*run.target)), to).pack(from, *run.pool);
}

void pack_for_winograd(const PackedRight& right, const float* b, std::byte* to, const RunState& run) {
  const auto& axes = right.depth_axes;  // line, position, channel
  PackedB<float> packed(winograd_items, axes[2].first, right.columns, micro_kernel<float>(level_of(*run.target)), to);
  pack_winograd<float>({b, axes[0].second, axes[1].second, axes[2].second, right.column_stride}, packed, *run.pool);
}

template <class T>
constexpr bool has_columns = std::is_same_v<T, Left<T>> && !std::is_same_v<T, F16>;

}  // namespace

bool has_fixed_layout(const Product& p) {
  std::vector<Dim> dims{p.columns.extent, p.columns.b_stride, p.depth.extent, p.depth.b_stride, p.b_offset};
  for (const ProductAxis& axis : p.depth_axes) dims.insert(dims.end(), {axis.extent, axis.b_stride});
  return std::ranges::all_of(dims, [](const Dim& dim) { return dim.is_static(); }) &&
         std::ranges::all_of(p.batch, [](const ProductAxis& axis) { return axis.b_stride == Dim(0); });
}

PackedRight packed_right(const Product& p) {
  using Form = PackedRight::Form;
  PackedRight right{.form = p.winograd ? Form::winograd
                            : p.dots   ? Form::columns
                                       : Form::panels,
                    .element = p.element,
                    .float_left = p.float_left,
                    .offset = p.b_offset.value(),
                    .depth = p.depth.extent.value(),
                    .columns = p.columns.extent.value(),
                    .row_stride = p.depth.b_stride.value(),
                    .column_stride = p.columns.b_stride.value(),
                    .depth_axes = {},
                    .by_tables = p.b_by_tables};
  for (const ProductAxis& axis : p.depth_axes) right.depth_axes.emplace_back(axis.extent.value(), axis.b_stride.value());
  return right;
}

std::int64_t packed_bytes(const PackedRight& right, CpuLevel level) {
  return with_elements(right.element, right.float_left, [&]<class T>(std::type_identity<T>) {
    if (right.form == PackedRight::Form::winograd)
      return PackedB<T>::bytes_of(winograd_items, right.depth_axes.at(2).first, right.columns, micro_kernel<T>(level));
    if constexpr (has_columns<T>)
      if (right.form == PackedRight::Form::columns) return Columns<T>::bytes_of(right.depth, right.columns);
    return PackedB<T>::bytes_of(1, right.depth, right.columns, micro_kernel<T>(level));
  });
}

std::shared_ptr<const Claimed> packing_of(PackedRight right) { return std::make_shared<const WorkOf<PackedRight>>(std::move(right)); }

void prepare_step(const PackedRight& right, Step& step, const Preparation& given) {
  prepare_packing(step, given, packed_bytes(right, given.level));
}

void run_step(const PackedRight& right, const Step& step, const RunState& run) {
  std::byte* const to = run.memory[static_cast<std::size_t>(step.results[0])];
  with_elements(right.element, right.float_left, [&]<class T>(std::type_identity<T>) {
    const auto* const b = reinterpret_cast<const T*>(run.memory[static_cast<std::size_t>(step.operands[0])]) + right.offset;
    if constexpr (std::is_same_v<T, float>)
      if (right.form == PackedRight::Form::winograd) return pack_for_winograd(right, b, to, run);
    if constexpr (has_columns<T>)
      if (right.form == PackedRight::Form::columns)
        return Columns<T>(right.depth, right.columns, to).pack({b, right.row_stride, right.column_stride});
    pack_panels<T>(right, b, to, run);
  });
}

}  // namespace rlx::cpu
