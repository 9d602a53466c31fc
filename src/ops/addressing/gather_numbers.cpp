#include "ops/addressing/gather_numbers.h"

#include <algorithm>

#include "ops/axis_list.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

void check_axes(std::string_view op, std::string_view what, const Ints& axes, std::int64_t rank, bool increasing) {
  Ints sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const bool inside = sorted.empty() || (sorted.front() >= 0 && sorted.back() < rank);
  if (!inside || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() || (increasing && sorted != axes))
    fail("rlx.{}: {} {} must be {} axes within 0..{}", op, what, to_string(Attr(axes)), increasing ? "increasing" : "distinct", rank - 1);
}

Ints shifted(Ints axes) {
  for (auto& axis : axes) ++axis;
  return axes;
}

Ints with_front(Ints axes) {
  axes.insert(axes.begin(), 0);
  return axes;
}

}  // namespace

void check_numbers(std::string_view op, const GatherNumbers& n, const Type& x, const Type& indices, int result_rank) {
  if (!is_integer(indices.dtype) || indices.rank() == 0)
    fail("rlx.{}: indices are {} (allowed: integers of rank >= 1)", op, indices.to_string());
  check_axes(op, "offset_dims", n.offset_dims, result_rank, true);
  check_axes(op, "collapsed_slice_dims", n.collapsed_slice_dims, x.rank(), true);
  check_axes(op, "operand_batching_dims", n.operand_batching_dims, x.rank(), false);
  check_axes(op, "start_indices_batching_dims", n.start_indices_batching_dims, indices.rank() - 1, false);
  check_axes(op, "start_index_map", n.start_index_map, x.rank(), false);
  if (!(indices.shape.back() == Dim(static_cast<std::int64_t>(n.start_index_map.size()))))
    fail("rlx.{}: the last axis of indices {} must have size {}, as start_index_map {}", op, indices.to_string(), n.start_index_map.size(),
         to_string(Attr(n.start_index_map)));
  if (n.operand_batching_dims.size() != n.start_indices_batching_dims.size())
    fail("rlx.{}: {} operand batching axes, but {} of the indices", op, n.operand_batching_dims.size(),
         n.start_indices_batching_dims.size());
  for (std::size_t i = 0; i < n.operand_batching_dims.size(); ++i) {
    const std::int64_t axis = n.operand_batching_dims[i];
    if (contains(n.collapsed_slice_dims, axis) || contains(n.start_index_map, axis))
      fail("rlx.{}: batching axis {} is also collapsed or indexed", op, axis);
    if (!(x.dim(axis) == indices.dim(n.start_indices_batching_dims[i])))
      fail("rlx.{}: batching axis {} of {} differs from axis {} of indices {}", op, axis, x.to_string(), n.start_indices_batching_dims[i],
           indices.to_string());
  }
  if (window_axes(n, x.rank()).size() != n.offset_dims.size())
    fail("rlx.{}: {} offset axes for {} window axes of {}", op, n.offset_dims.size(), window_axes(n, x.rank()).size(), x.to_string());
}

Ints window_axes(const GatherNumbers& n, int operand_rank) {
  Ints axes;
  for (int axis = 0; axis < operand_rank; ++axis)
    if (!contains(n.collapsed_slice_dims, axis) && !contains(n.operand_batching_dims, axis)) axes.push_back(axis);
  return axes;
}

Ints batch_axes(const GatherNumbers& n, int result_rank) {
  Ints axes;
  for (int axis = 0; axis < result_rank; ++axis)
    if (!contains(n.offset_dims, axis)) axes.push_back(axis);
  return axes;
}

GatherNumbers batched_numbers(const GatherNumbers& n, bool operand, bool indices) {
  GatherNumbers result = n;
  result.offset_dims = shifted(n.offset_dims);
  if (indices) result.start_indices_batching_dims = shifted(n.start_indices_batching_dims);
  if (!operand) return result;
  result.collapsed_slice_dims = shifted(n.collapsed_slice_dims);
  result.start_index_map = shifted(n.start_index_map);
  result.operand_batching_dims = shifted(n.operand_batching_dims);
  if (indices) {
    result.operand_batching_dims = with_front(result.operand_batching_dims);
    result.start_indices_batching_dims = with_front(result.start_indices_batching_dims);
  } else {
    result.offset_dims = with_front(result.offset_dims);  // the whole batch is inside every window
  }
  return result;
}

Value wrap_negative(Value indices, const Dim& size) {
  if (is_unsigned_int(indices.dtype())) return indices;
  const bool narrow = info(indices.dtype()).bits <= 32 && size.upper() <= std::numeric_limits<std::int32_t>::max();
  Value wide = cast(indices, narrow ? i32 : i64);
  return select(lt(wide, scalar(wide, 0, wide.dtype())), wide + dim_value(wide, size, wide.dtype()), wide);
}

WindowPositions::WindowPositions(const GatherNumbers& numbers, const Array& x, const Array& indices, Ints window, IndexMode mode,
                                 int result_rank)
    : numbers_(numbers),
      shape_(x.shape()),
      indices_(indices),
      window_(std::move(window)),
      mode_(mode),
      batch_axes_(batch_axes(numbers, result_rank)),
      window_axes_(rlx::window_axes(numbers, x.rank())) {}

std::optional<std::int64_t> WindowPositions::find(const Ints& at) const {
  auto batch = [&](std::int64_t k) { return at[static_cast<std::size_t>(batch_axes_[static_cast<std::size_t>(k)])]; };
  std::int64_t row = 0;
  for (std::size_t k = 0; k < batch_axes_.size(); ++k) row = row * indices_.shape()[k] + batch(static_cast<std::int64_t>(k));
  Ints position(shape_.size(), 0);
  for (std::size_t k = 0; k < numbers_.start_index_map.size(); ++k) {
    const auto axis = static_cast<std::size_t>(numbers_.start_index_map[k]);
    const std::int64_t i = row * static_cast<std::int64_t>(numbers_.start_index_map.size()) + static_cast<std::int64_t>(k);
    const std::int64_t start = saturated_int(indices_, i), last = shape_[axis] - window_[axis];
    if (mode_ == IndexMode::fill && (start < 0 || start > last)) return std::nullopt;
    position[axis] = std::clamp<std::int64_t>(start, 0, last);
  }
  for (std::size_t k = 0; k < numbers_.operand_batching_dims.size(); ++k)
    position[static_cast<std::size_t>(numbers_.operand_batching_dims[k])] = batch(numbers_.start_indices_batching_dims[k]);
  for (std::size_t k = 0; k < window_axes_.size(); ++k)
    position[static_cast<std::size_t>(window_axes_[k])] += at[static_cast<std::size_t>(numbers_.offset_dims[k])];
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < shape_.size(); ++d) flat = flat * shape_[d] + position[d];
  return flat;
}

}  // namespace rlx
