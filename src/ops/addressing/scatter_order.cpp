// Scatter for devices: no two elements of a kernel go to one place, and nothing depends on who is first.
#include "ops/addressing/scatter_order.h"

#include <bit>
#include <limits>

#include "ops/addressing/gather_numbers.h"
#include "ops/axis_list.h"
#include "ops/reduction/order.h"
#include "ops/reduction/recurrence.h"
#include "ops/structure/placed_elements.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

Value joined(ScatterKind kind, Value a, Value b) {
  switch (kind) {
    case ScatterKind::set: return b;
    case ScatterKind::add: return a + b;
    case ScatterKind::mul: return a * b;
    case ScatterKind::min: return min(a, b);
    case ScatterKind::max: return max(a, b);
  }
  return b;
}

// An array as lines (count, width): the axes of a line are brought to the end.
struct Lines {
  Dims shape;
  Ints perm;
  Dim width = 1;

  Lines(const Dims& shape_of, const Ints& whole) : shape(shape_of) {
    for (std::int64_t axis = 0; axis < std::ssize(shape); ++axis)
      if (!contains(whole, axis)) perm.push_back(axis);
    for (std::int64_t axis : whole) perm.push_back(axis), width *= shape[static_cast<std::size_t>(axis)];
  }
  Dim count() const { return *Dim::exact_div(product(shape), width); }
  Value of(Value v) const { return reshape(transpose(v, perm), {count(), width}); }
  Value back(Value lines) const {
    Dims turned;
    Ints inverse(perm.size());
    for (std::size_t i = 0; i < perm.size(); ++i) {
      turned.push_back(shape[static_cast<std::size_t>(perm[i])]);
      inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
    }
    return transpose(reshape(lines, turned), inverse);
  }
};

// Axes of x that every window has whole, and those of the updates that they are.
struct WholeAxes {
  Ints of_x, of_updates;
  WholeAxes(const GatherNumbers& numbers, const Dims& x, const Dims& window) {
    const Ints axes = window_axes(numbers, static_cast<int>(x.size()));
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (!(window[static_cast<std::size_t>(axes[k])] == x[static_cast<std::size_t>(axes[k])])) continue;
      of_x.push_back(axes[k]);
      of_updates.push_back(numbers.offset_dims[k]);
    }
  }
};

// The line of x that each line of updates goes to; -1: it is dropped.
Value targets(Value x, Value indices, const GatherNumbers& numbers, Dims window, IndexMode mode, const Ints& whole, DType type) {
  Dims shape = x.shape();
  for (std::int64_t axis : whole) shape[static_cast<std::size_t>(axis)] = window[static_cast<std::size_t>(axis)] = 1;
  Value to = gather(reshape(iota(x, {product(shape)}, type), shape), indices, numbers, window, mode, -1.0);
  return reshape(to, {to.type().size()});
}

Value column(Value v) { return expand_dims(v, {1}); }

// Lines of one target that lie one after another, each combined with those in front of it.
Value combined(Value lines, Value target, ScatterKind kind) {
  for (std::int64_t places = 1; places < target.dim(0).upper(); places *= 2) {
    Value same = eq(target, moved(target, places, 0, false, -1));
    lines = select(column(same), joined(kind, moved(lines, places, 0, false, 0), lines), lines);
  }
  return lines;
}

}  // namespace

Value scatter_in_order(Value x, Value indices, Value updates, const GatherNumbers& numbers, const Dims& window, ScatterKind kind,
                       IndexMode mode) {
  if (product(x.shape()) == Dim(0) || product(updates.shape()) == Dim(0)) return x;
  const DType type = x.dtype();
  const WholeAxes whole(numbers, x.shape(), window);
  const Lines x_lines(x.shape(), whole.of_x), update_lines(updates.shape(), whole.of_updates);
  const Dim lines = x_lines.count(), count = update_lines.count();
  const DType position = (lines + count).upper() > std::numeric_limits<std::int32_t>::max() ? i64 : i32;

  Value target = targets(x, indices, numbers, window, mode, whole.of_x, position), none = dim_value(x, lines, position);
  target = select(lt(target, like(target, 0)), none, target);
  const int bits = std::bit_width(static_cast<std::uint64_t>(lines.upper()));
  const Order sorted = sorted_order({reshape(cast(target, position == i64 ? u64 : u32), {1, count}), bits});
  Value order = reshape(sorted.from, {count});
  target = reshape(cast(sorted.ranks, position), {count});

  Value number = iota(x, {count}, position), is_last = ne(target, moved(target, 1, 0, true, -1));
  Value at = select(logical_and(is_last, lt(target, none)), target, none + number);
  const bool sets = kind == ScatterKind::set;
  Value last =
      column(slice_axis(place(sets ? order : number, at, lines + count, -1), 0, 0, lines));  // of each line of x; -1: there is none
  Value old = x_lines.of(x), given = update_lines.of(updates);
  if (is_float(type)) old = cast(old, accumulation_type(type)), given = cast(given, accumulation_type(type));
  if (!sets) given = combined(take(given, order), target, kind);
  Value changed = joined(kind, old, take(given, reshape(last, {lines})));
  return cast(x_lines.back(select(ge(last, like(last, 0)), changed, old)), type);
}

}  // namespace rlx
