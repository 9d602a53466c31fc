#include "backends/cpu/routines/scatter_places.h"

#include <algorithm>
#include <limits>

#include "ops/addressing/gather_numbers.h"

namespace rlx::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

Ints strides_of(const Ints& shape) {
  Ints strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

GatherNumbers numbers_of(const Attrs& attrs) {
  const auto axes = [&](std::size_t i) { return std::get<Ints>(attrs[i]); };
  return {axes(1), axes(2), axes(3), axes(4), axes(5)};
}

template <class I>
std::int64_t saturated(I index) {
  if constexpr (std::is_same_v<I, std::uint64_t>)
    return static_cast<std::int64_t>(std::min<std::uint64_t>(index, std::numeric_limits<std::int64_t>::max()));
  else return index;
}

}  // namespace

ScatterPlaces::ScatterPlaces(const RoutineCall& call)
    : indices_(call.operands[1].bytes), drops_(std::get<std::string>(call.attrs[6]) == "fill") {
  const Ints &shape = call.results[0].shape, &index_shape = call.operands[1].shape, &update_shape = call.operands[2].shape;
  const GatherNumbers numbers = numbers_of(call.attrs);
  const Ints strides = strides_of(shape), index_strides = strides_of(index_shape), update_strides = strides_of(update_shape);
  const auto at = [](const Ints& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; };
  for (std::size_t d = 0; d < update_shape.size(); ++d) axes_.push_back({update_shape[d], update_strides[d], 0, 0});
  Ints window(shape.size(), 1);
  const Ints inside = window_axes(numbers, static_cast<int>(shape.size()));
  for (std::size_t k = 0; k < inside.size(); ++k) {
    ScatterAxis& axis = axes_[static_cast<std::size_t>(numbers.offset_dims[k])];
    axis.result = at(strides, inside[k]);
    window[static_cast<std::size_t>(inside[k])] = axis.extent;
  }
  const Ints batch = batch_axes(numbers, static_cast<int>(update_shape.size()));
  for (std::size_t k = 0; k < batch.size(); ++k) axes_[static_cast<std::size_t>(batch[k])].index = index_strides[k];
  std::vector<bool> fixed(shape.size(), false);  // where windows do not have all elements of the axis
  for (std::size_t k = 0; k < numbers.operand_batching_dims.size(); ++k) {
    const auto axis = static_cast<std::size_t>(numbers.operand_batching_dims[k]);
    axes_[static_cast<std::size_t>(at(batch, numbers.start_indices_batching_dims[k]))].result += strides[axis];
    fixed[axis] = true;
  }
  for (std::int64_t axis : numbers.start_index_map) {
    const auto d = static_cast<std::size_t>(axis);
    components_.push_back({shape[d] - window[d], strides[d]});
    fixed[d] = window[d] != shape[d];
    apart_ = apart_ && (window[d] == 1 || window[d] == shape[d]);
  }
  for (std::int64_t axis : numbers.collapsed_slice_dims) fixed[static_cast<std::size_t>(axis)] = true;
  find_window_places(shape, fixed);
  merge_axes();
  constexpr decltype(read_) readers[2][4] = {{read<std::uint8_t>, read<std::uint16_t>, read<std::uint32_t>, read<std::uint64_t>},
                                             {read<std::int8_t>, read<std::int16_t>, read<std::int32_t>, read<std::int64_t>}};
  const DType type = call.operands[1].dtype;
  const int bits = info(type).bits;
  read_ = readers[is_signed_int(type)][bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
}

void ScatterPlaces::find_window_places(const Ints& shape, const std::vector<bool>& fixed) {
  const auto first = static_cast<std::size_t>(std::ranges::find(fixed, true) - fixed.begin());
  for (std::size_t d = first; d < shape.size(); ++d) {
    span_ *= shape[d];
    unit_ = fixed[d] ? 1 : unit_ * shape[d];
  }
}

void ScatterPlaces::merge_axes() {
  std::vector<ScatterAxis> merged;
  for (const ScatterAxis& axis : axes_) {
    if (axis.extent == 1) continue;
    ScatterAxis* last = merged.empty() ? nullptr : &merged.back();
    const auto goes_on = [&](std::int64_t before, std::int64_t step) { return before == axis.extent * step; };
    if (last && goes_on(last->update, axis.update) && goes_on(last->result, axis.result) && goes_on(last->index, axis.index))
      *last = {last->extent * axis.extent, axis.update, axis.result, axis.index};
    else merged.push_back(axis);
  }
  if (merged.empty()) merged.emplace_back();
  axes_ = std::move(merged);
}

template <class I>
void ScatterPlaces::read(const ScatterPlaces& places, std::int64_t index, std::int64_t step, std::int64_t n, std::int64_t* to) {
  const I* indices = reinterpret_cast<const I*>(places.indices_) + index;
  std::fill_n(to, n, 0);
  for (const Component& component : places.components_) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t start = saturated(indices[i * step]), inside = std::clamp<std::int64_t>(start, 0, component.last);
      const bool dropped = places.drops_ && start != inside;
      to[i] = dropped || to[i] < 0 ? -1 : to[i] + inside * component.stride;
    }
    ++indices;
  }
}

}  // namespace rlx::cpu
