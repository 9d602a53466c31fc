// Gather with JAX's dimension numbers, and the takes built on it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "ops/addressing/gather_numbers.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using At = std::vector<Index>;
using Ints = std::vector<std::int64_t>;

struct Gather {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "gather";
  static constexpr std::string_view formula =
      "windows of x that start where the indices say (JAX dimension numbers); a window not wholly inside is moved (clip) or reads "
      "`fill_value`";
  static constexpr std::array<int, 1> integer_operands{1};
  Ints offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims;
  Dims slice_sizes;
  IndexMode mode = IndexMode::clip;
  double fill_value = 0;
  static auto fields() {
    return Fields<&Gather::offset_dims, &Gather::collapsed_slice_dims, &Gather::start_index_map, &Gather::operand_batching_dims,
                  &Gather::start_indices_batching_dims, &Gather::slice_sizes, &Gather::mode, &Gather::fill_value>{};
  }
  GatherNumbers numbers() const {
    return {offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims};
  }
  static int result_rank(const Gather& op, const Type& indices) { return indices.rank() - 1 + static_cast<int>(op.offset_dims.size()); }

  static Type infer(const Gather& op, const Type& x, const Type& indices) {
    const int rank = result_rank(op, indices);
    const GatherNumbers numbers = op.numbers();
    check_numbers(name, numbers, x, indices, rank);
    if (op.slice_sizes.size() != x.shape.size()) fail("rlx.gather: {} slice sizes for {}", op.slice_sizes.size(), x.to_string());
    const Ints window = window_axes(numbers, x.rank());
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
      const bool spans = std::find(window.begin(), window.end(), static_cast<std::int64_t>(d)) != window.end();
      if (!(x.shape[d] - op.slice_sizes[d]).known_non_negative() || !op.slice_sizes[d].known_non_negative() ||
          (!spans && !(op.slice_sizes[d] == Dim(1))))
        fail("rlx.gather: slice size {} along axis {} of {} (allowed: {})", op.slice_sizes[d].to_string(), d, x.to_string(),
             spans ? "0.." + x.shape[d].to_string() : "1, the axis is collapsed or batching");
    }
    Type result{x.dtype, Dims(static_cast<std::size_t>(rank))};
    for (std::size_t k = 0; k < window.size(); ++k)
      result.shape[static_cast<std::size_t>(op.offset_dims[k])] = op.slice_sizes[static_cast<std::size_t>(window[k])];
    const Ints batch = batch_axes(numbers, rank);
    for (std::size_t k = 0; k < batch.size(); ++k) result.shape[static_cast<std::size_t>(batch[k])] = indices.shape[k];
    return result;
  }

  static std::vector<Source> address(const Gather& op, std::span<const Type> types, const Type& result, const At& at,
                                     const ReadIndex& read) {
    const GatherNumbers numbers = op.numbers();
    At row;
    for (std::int64_t axis : batch_axes(numbers, result.rank())) row.push_back(at[static_cast<std::size_t>(axis)]);
    Source source{{}, 0, At(types[0].shape.size(), Index(0)), 0};
    for (std::size_t k = 0; k < op.start_index_map.size(); ++k) {
      const auto axis = static_cast<std::size_t>(op.start_index_map[k]);
      At component = row;
      component.emplace_back(Dim(static_cast<std::int64_t>(k)));
      const Dim last = types[0].shape[axis] - op.slice_sizes[axis];
      source.index[axis] = read(1, component, last + 1);
      // Inside is where clamping changes nothing. The address is made of the clamped index, which no stride takes out of range.
      if (op.mode == IndexMode::fill) source.guards.push_back({Guard::Kind::zero, read(1, component, std::nullopt) - source.index[axis]});
    }
    for (std::size_t k = 0; k < op.operand_batching_dims.size(); ++k)
      source.index[static_cast<std::size_t>(op.operand_batching_dims[k])] =
          row[static_cast<std::size_t>(op.start_indices_batching_dims[k])];
    const Ints window = window_axes(numbers, types[0].rank());
    for (std::size_t k = 0; k < window.size(); ++k) {
      Index& index = source.index[static_cast<std::size_t>(window[k])];
      index = index + at[static_cast<std::size_t>(op.offset_dims[k])];
    }
    if (source.guards.empty()) return {source};
    return {source, {{}, Source::fill_value, {}, op.fill_value}};
  }

  static void evaluate(const Gather& op, std::span<const Array> x, std::span<Array> y) {
    Ints sizes;
    for (const Dim& size : op.slice_sizes) sizes.push_back(size.value());
    const WindowPositions positions(op.numbers(), x[0], x[1], sizes, op.mode, y[0].rank());
    Ints at(y[0].shape().size(), 0);
    for (std::int64_t i = 0; i < y[0].size(); ++i, advance(at, y[0].shape())) {
      const auto from = positions.find(at);
      if (!from) y[0].set_double(i, op.fill_value);
      else if (is_integer(x[0].dtype())) y[0].set_uint(i, x[0].get_uint(*from));
      else y[0].set_complex(i, x[0].get_complex(*from));
    }
  }

  static Values jvp(const Gather& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    // A window outside has no tangent, whatever its fill value is.
    return {dx[0] ? gather(dx[0], x[1], op.numbers(), op.slice_sizes, op.mode, 0.0) : Value()};
  }
  static Values transpose(const Gather& op, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    Value zeros = full(dy[0], x[0].shape(), 0, dy[0].dtype());
    return {scatter(zeros, x[1], dy[0], op.numbers(), ScatterKind::add, op.mode), Value()};
  }
  static Values batch(const Gather& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
    Dims sizes = op.slice_sizes;
    if (batched[0]) sizes.insert(sizes.begin(), batched[1] ? Dim(1) : size);
    return {gather(x[0], x[1], batched_numbers(op.numbers(), batched[0], batched[1]), sizes, op.mode, op.fill_value)};
  }

  static Sample rows(DType t, IndexMode mode, double fill) {
    return {{{{t, {5, 4}}, is_unsigned_int(t) ? 0.0 : -2.0, 2}, {{i32, {7, 1}}, -3, 7}},
            attrs_of(Gather{{1}, {0}, {0}, {}, {}, {1, 4}, mode, fill})};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, u8, c64}) all.push_back(rows(t, IndexMode::clip, 0));
    all.push_back(rows(f32, IndexMode::fill, 2.5));
    all.push_back(rows(i16, IndexMode::fill, -7));
    const Sample::Operand x{{f32, {5, 4, 6}}}, pairs{{i32, {5, 2}}, -2, 6};
    all.push_back({{x, pairs}, attrs_of(Gather{{1}, {0, 2}, {2, 0}, {}, {}, {1, 4, 1}, IndexMode::clip, 0})});
    all.push_back({{x, pairs}, attrs_of(Gather{{0, 2, 3}, {}, {0, 2}, {}, {}, {2, 3, 4}, IndexMode::fill, 0})});
    all.push_back({{{{f32, {3, 5}}}, {{i64, {3, 4, 1}}, -1, 6}}, attrs_of(Gather{{}, {1}, {1}, {0}, {0}, {1, 1}, IndexMode::clip, 0})});
    return all;
  }
};
const Op<Gather> gather_op;

/// What a fill-mode gather reads outside by default: NaN, the least signed integer, the largest unsigned one, true.
double outside_value(DType t) {
  if (is_float(t) || is_complex(t)) return std::numeric_limits<double>::quiet_NaN();
  if (is_bool(t)) return 1;
  const int bits = info(t).bits;
  return is_signed_int(t) ? -std::ldexp(1.0, bits - 1) : std::ldexp(1.0, bits) - 1;
}

// Nothing taken, perhaps along an axis without elements, which has nothing to clamp an index to.
Value nothing_taken(std::string_view op, Value x, std::int64_t axis, Value indices, const Dims& result) {
  if (!(product(result) == Dim(0)))
    fail("rlx.{}: axis {} of {} has no elements, indices are {} (allowed: none)", op, axis, x.type().to_string(),
         indices.type().to_string());
  return full(x, result, 0, x.dtype());
}

Value index_rows(Value indices) {
  Dims shape = indices.shape();
  shape.push_back(1);
  return reshape(indices, shape);
}

}  // namespace

/// Windows of x of `slice_sizes`, at the start positions in the last axis of `indices`; see GatherNumbers. A window not wholly inside is
/// moved inside (clip), or reads `fill_value` throughout (fill; by default NaN, the least signed, the largest unsigned integer).
Value gather(Operand x, Operand indices, GatherNumbers numbers, Dims slice_sizes, IndexMode mode /*= IndexMode::clip*/,
             std::optional<double> fill_value /*= std::nullopt*/) {
  const double fill = mode == IndexMode::clip ? 0 : fill_value.value_or(outside_value(x.dtype()));
  return gather_op({numbers.offset_dims, numbers.collapsed_slice_dims, numbers.start_index_map, numbers.operand_batching_dims,
                    numbers.start_indices_batching_dims, slice_sizes, mode, fill},
                   x, indices);
}

/// Slices of x along `axis` at `indices` (integers of any shape, whose axes replace the axis): [5, 4] at indices [2, 3] along axis 0 gives
/// [2, 3, 4]. clip: indices are clamped to 0..size-1; fill: indices below 0 count from the end, and what is still outside reads as NaN or
/// the least integer. Throws Error for indices into an axis without elements.
Value take(Operand x, Operand indices, std::int64_t axis /*= 0*/, IndexMode mode /*= IndexMode::clip*/) {
  axis = normalize_axis("take", axis, x.type());
  if (!is_integer(indices.dtype())) fail("rlx.take: indices are {} (allowed: integers)", indices.type().to_string());
  if (mode == IndexMode::fill) indices = wrap_negative(indices, x.dim(axis));
  GatherNumbers numbers{{}, {axis}, {axis}};
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) numbers.offset_dims.push_back(i < axis ? i : i - 1 + indices.rank());
  Dims sizes = x.shape();
  if (x.dim(axis) == Dim(0)) {
    sizes.erase(sizes.begin() + axis);
    sizes.insert(sizes.begin() + axis, indices.shape().begin(), indices.shape().end());
    return nothing_taken("take", x, axis, indices, sizes);
  }
  sizes[static_cast<std::size_t>(axis)] = 1;
  return gather(x, index_rows(indices), numbers, sizes, mode);
}

/// Element [.., indices[.., j, ..], ..] of x along `axis`: like NumPy's take_along_axis. indices are integers of the rank of x; the result
/// has their size along `axis`, and the other axes broadcast. Modes as in take.
Value take_along_axis(Operand x, Operand indices, std::int64_t axis, IndexMode mode /*= IndexMode::clip*/) {
  axis = normalize_axis("take_along_axis", axis, x.type());
  if (!is_integer(indices.dtype()) || indices.rank() != x.rank())
    fail("rlx.take_along_axis: indices are {} (allowed: integers of the rank of {})", indices.type().to_string(), x.type().to_string());
  const auto a = static_cast<std::size_t>(axis);
  Dims xs = x.shape(), is = indices.shape();
  const Dim length = xs[a], count = is[a];
  xs[a] = is[a] = 1;
  xs = is = broadcast_shapes("take_along_axis", xs, is);
  xs[a] = length;
  is[a] = count;
  if (length == Dim(0) || product(is) == Dim(0)) return nothing_taken("take_along_axis", x, axis, indices, is);
  if (mode == IndexMode::fill) indices = wrap_negative(indices, length);
  GatherNumbers numbers{{}, {axis}, {axis}};
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) numbers.operand_batching_dims.push_back(i);
  numbers.start_indices_batching_dims = numbers.operand_batching_dims;
  return gather(broadcast_to(x, xs), index_rows(broadcast_to(indices, is)), numbers, Dims(xs.size(), 1), mode);
}

}  // namespace rlx
