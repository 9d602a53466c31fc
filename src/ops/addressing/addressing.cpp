// Positions as data: iota, and slices whose start is an operand.
#include <algorithm>
#include <numeric>

#include "ir/op.h"
#include "ops/addressing/gather_numbers.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using At = std::vector<Index>;
using Ints = std::vector<std::int64_t>;

struct Iota {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "iota";
  static constexpr std::string_view formula = "0, 1, 2, ... along `axis`, the same for all other positions";
  static constexpr std::string_view not_differentiable = "it depends on no operand";
  Sizes shape;
  DType dtype = i32;
  std::int64_t axis = 0;
  static auto fields() { return Fields<&Iota::shape, &Iota::dtype, &Iota::axis>{}; }
  static Type infer(const Iota& op) {
    const Type result{op.dtype, op.shape.values};
    normalize_axis(name, op.axis, result);
    if (is_bool(op.dtype) || is_complex(op.dtype)) fail("rlx.iota: {} cannot count (allowed: integers and floats)", rlx::name(op.dtype));
    return result;
  }
  static std::vector<Source> address(const Iota& op, std::span<const Type>, const Type&, const At& at, const ReadIndex&) {
    return {{{}, Source::index_value, {at[static_cast<std::size_t>(op.axis)]}, 0}};
  }
  static void evaluate(const Iota& op, std::span<const Array>, std::span<Array> y) {
    Ints at(y[0].shape().size(), 0);
    for (std::int64_t i = 0; i < y[0].size(); ++i, advance(at, y[0].shape())) y[0].set_int(i, at[static_cast<std::size_t>(op.axis)]);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {i32, i64, u8, f32, bf16}) all.push_back({{}, attrs_of(Iota{Dims{3, 4}, t, 1})});
    all.push_back({{}, attrs_of(Iota{Dims{3, 4, 2}, i32, 0})});
    return all;
  }
};
const Op<Iota> iota_op;

Dims with_front(Dims shape, const Dim& size) {
  shape.insert(shape.begin(), size);
  return shape;
}

void check_starts(std::string_view op, const Type& x, std::span<const Type> starts) {
  if (starts.size() != x.shape.size()) fail("rlx.{}: {} starts for {}", op, starts.size(), x.to_string());
  for (std::size_t d = 0; d < starts.size(); ++d)
    if (!is_integer(starts[d].dtype) || starts[d].rank() != 0)
      fail("rlx.{}: start {} is {} (allowed: an integer scalar)", op, d, starts[d].to_string());
}

void check_window(std::string_view op, const Type& x, const Dims& sizes) {
  if (sizes.size() != x.shape.size()) fail("rlx.{}: {} sizes for {}", op, sizes.size(), x.to_string());
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (!sizes[d].known_non_negative() || !(x.shape[d] - sizes[d]).known_non_negative())
      fail("rlx.{}: size {} along axis {} of {} (allowed: 0..{})", op, sizes[d].to_string(), d, x.to_string(), x.shape[d].to_string());
}

/// The starts on the host, moved so that the window fits.
Ints clamped_starts(const Array& x, std::span<const Array> starts, const Ints& sizes) {
  Ints result;
  for (std::size_t d = 0; d < starts.size(); ++d)
    result.push_back(std::clamp<std::int64_t>(saturated_int(starts[d], 0), 0, x.shape()[d] - sizes[d]));
  return result;
}

std::int64_t flat_position(const Ints& at, const Ints& start, const Ints& shape) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < at.size(); ++d) flat = flat * shape[d] + start[d] + at[d];
  return flat;
}

void copy_element(const Array& from, std::int64_t i, Array& to, std::int64_t j) {
  if (is_integer(from.dtype())) to.set_uint(j, from.get_uint(i));
  else to.set_complex(j, from.get_complex(i));
}

bool any_start_batched(const std::vector<bool>& batched, std::size_t first) {
  return std::find(batched.begin() + static_cast<std::ptrdiff_t>(first), batched.end(), true) != batched.end();
}

// The starts of a batch as rows of positions: (size, rank).
Value start_rows(std::span<const Value> starts, const Dim& size) {
  Values columns;
  for (const Value& start : starts) {
    // What i64 does not hold lies behind every axis.
    Value fits = start.dtype() == u64 ? min(start, scalar(start, 0x1p62, u64)) : start;
    columns.push_back(reshape(broadcast_to(cast(fits, i64), {size}), {size, 1}));
  }
  return concat(columns, 1);
}

/// Numbers for one window per batch entry. `own`: the operand carries the batch on axis 0 too.
GatherNumbers window_per_entry(std::size_t rank, bool own) {
  Ints axes(rank), result_axes(rank);
  std::iota(axes.begin(), axes.end(), own ? 1 : 0);
  std::iota(result_axes.begin(), result_axes.end(), 1);
  return own ? GatherNumbers{result_axes, {}, axes, {0}, {0}} : GatherNumbers{result_axes, {}, axes};
}

struct DynamicSlice {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "dynamic_slice";
  static constexpr std::string_view formula =
      "`sizes` elements of x from the starts (one integer operand for each axis), clamped so that the slice fits";
  static constexpr std::array<int, 8> integer_operands{1, 2, 3, 4, 5, 6, 7, 8};
  Dims sizes;
  static auto fields() { return Fields<&DynamicSlice::sizes>{}; }
  static Type infer(const DynamicSlice& op, std::span<const Type> x) {
    check_starts(name, x[0], x.subspan(1));
    check_window(name, x[0], op.sizes);
    return {x[0].dtype, op.sizes};
  }
  static std::vector<Source> address(const DynamicSlice& op, std::span<const Type> types, const Type&, const At& at,
                                     const ReadIndex& read) {
    Source source;
    for (std::size_t d = 0; d < at.size(); ++d)
      source.index.push_back(at[d] + read(static_cast<int>(d) + 1, {}, types[0].shape[d] - op.sizes[d] + 1));
    return {source};
  }
  static void evaluate(const DynamicSlice&, std::span<const Array> x, std::span<Array> y) {
    const Ints start = clamped_starts(x[0], x.subspan(1), y[0].shape());
    Ints at(start.size(), 0);
    for (std::int64_t i = 0; i < y[0].size(); ++i, advance(at, y[0].shape()))
      copy_element(x[0], flat_position(at, start, x[0].shape()), y[0], i);
  }
  static Values transpose(const DynamicSlice&, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    Values result(x.size());
    result[0] = dynamic_update(full(dy[0], x[0].shape(), 0, dy[0].dtype()), dy[0], Values(x.begin() + 1, x.end()));
    return result;
  }
  static Values batch(const DynamicSlice& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
    Values starts(x.begin() + 1, x.end());
    if (any_start_batched(batched, 1))
      return {gather(x[0], start_rows(starts, size), window_per_entry(starts.size(), batched[0]),
                     batched[0] ? with_front(op.sizes, 1) : op.sizes)};
    starts.insert(starts.begin(), scalar(x[0], 0, i32));
    return {dynamic_slice(x[0], starts, with_front(op.sizes, size))};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, c64})
      all.push_back({{{{t, {5, 4}}}, {{i32, {}}, -3, 6}, {{i32, {}}, -3, 6}}, attrs_of(DynamicSlice{{2, 3}})});
    all.push_back({{{{f32, {5}}}, {{i64, {}}, -3, 6}}, attrs_of(DynamicSlice{{5}})});
    return all;
  }
};
const Op<DynamicSlice> dynamic_slice_op;

struct DynamicUpdate {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "dynamic_update";
  static constexpr std::string_view formula =
      "x with a window replaced by `update`, at the starts (one integer operand for each axis), clamped so that it fits";
  static constexpr std::array<int, 8> integer_operands{2, 3, 4, 5, 6, 7, 8, 9};
  static auto fields() { return Fields<>{}; }
  static Type infer(const DynamicUpdate&, std::span<const Type> x) {
    if (x.size() < 2) fail("rlx.dynamic_update: takes x, an update and the starts, given {} operands", x.size());
    if (x[1].dtype != x[0].dtype) fail("rlx.dynamic_update: the update is {}, x is {}", x[1].to_string(), x[0].to_string());
    check_starts(name, x[0], x.subspan(2));
    check_window(name, x[0], x[1].shape);
    return x[0];
  }
  static std::vector<Source> address(const DynamicUpdate&, std::span<const Type> types, const Type&, const At& at, const ReadIndex& read) {
    Source update{{}, 1, {}, 0};
    for (std::size_t d = 0; d < at.size(); ++d) {
      const Dim &room = types[0].shape[d], &size = types[1].shape[d];
      const Index inside = at[d] - (room == size ? Index(0) : read(static_cast<int>(d) + 2, {}, room - size + 1));
      update.index.push_back(inside);
      if (room == size) continue;
      update.guards.push_back({Guard::Kind::non_negative, inside});
      update.guards.push_back({Guard::Kind::non_negative, Index(size - 1) - inside});
    }
    if (update.guards.empty()) return {update};
    return {update, {{}, 0, at, 0}};
  }
  static void evaluate(const DynamicUpdate&, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i) copy_element(x[0], i, y[0], i);
    const Ints start = clamped_starts(x[0], x.subspan(2), x[1].shape());
    Ints at(start.size(), 0);
    for (std::int64_t i = 0; i < x[1].size(); ++i, advance(at, x[1].shape()))
      copy_element(x[1], i, y[0], flat_position(at, start, x[0].shape()));
  }
  static Values jvp(const DynamicUpdate&, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    if (!dx[0] && !dx[1]) return {Value()};
    auto given = [&](std::size_t i) { return dx[i] ? dx[i] : zeros_like(x[i]); };
    return {dynamic_update(given(0), given(1), Values(x.begin() + 2, x.end()))};
  }
  static Values transpose(const DynamicUpdate&, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    const Values starts(x.begin() + 2, x.end());
    Values result(x.size());
    if (linear[0]) result[0] = dynamic_update(dy[0], full(dy[0], x[1].shape(), 0, dy[0].dtype()), starts);
    if (linear[1]) result[1] = dynamic_slice(dy[0], starts, x[1].shape());
    return result;
  }
  static Values batch(const DynamicUpdate&, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
    Values starts(x.begin() + 2, x.end());
    auto own = [&](std::size_t i) { return batched[i] ? x[i] : broadcast_to(x[i], with_front(x[i].shape(), size)); };
    if (any_start_batched(batched, 2)) return {scatter(own(0), start_rows(starts, size), own(1), window_per_entry(starts.size(), true))};
    starts.insert(starts.begin(), scalar(x[0], 0, i32));
    return {dynamic_update(own(0), own(1), starts)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, c64})
      all.push_back({{{{t, {5, 4}}}, {{t, {2, 4}}}, {{i32, {}}, -3, 6}, {{i32, {}}, -3, 6}}, attrs_of(DynamicUpdate{})});
    all.push_back({{{{f32, {5, 3}}}, {{f32, {1, 2}}}, {{i64, {}}, 0, 4}, {{i32, {}}, 0, 1}}, attrs_of(DynamicUpdate{})});
    return all;
  }
};
const Op<DynamicUpdate> dynamic_update_op;

Values wrapped(Values starts, const Dims& shape) {
  for (std::size_t d = 0; d < starts.size() && d < shape.size(); ++d)
    if (is_integer(starts[d].dtype())) starts[d] = wrap_negative(starts[d], shape[d]);
  return starts;
}

}  // namespace

/// 0, 1, 2, ... along `axis`: a value of the given shape and dtype, in the graph of `near`. Throws Error for bool and complex types.
Value iota(Operand near, Dims shape, DType dtype, std::int64_t axis /*= 0*/) {
  const Type type{dtype, shape};
  return apply(near.graph(), Op<Iota>::def(), attrs_of(Iota{shape, dtype, normalize_axis("iota", axis, type)}))[0];
}

/// A size as a value of rank 0; symbolic sizes give the number they have at run time.
Value dim_value(Operand near, Dim size, DType dtype) {
  if (size.is_static()) return scalar(near, static_cast<double>(size.value()), dtype);
  return reshape(slice_axis(iota(near, {size + 1}, dtype, 0), 0, size, size + 1), {});
}

/// `sizes` elements of x from `starts`: integers of rank 0, one for each axis, which are clamped so that the slice fits; the result has
/// the shape `sizes`. wrap_negative: a start below 0 counts from the end first, as in JAX. Throws Error for a size above that of x.
Value dynamic_slice(Operand x, Values starts, Dims sizes, bool wrap_negative /*= false*/) {
  if (wrap_negative) starts = wrapped(std::move(starts), x.shape());
  starts.insert(starts.begin(), x);
  return dynamic_slice_op.of({sizes}, starts);
}

/// x with the window at `starts` replaced by `update`, which has the rank and dtype of x and fits into it; starts as in dynamic_slice. The
/// result has the shape of x.
Value dynamic_update(Operand x, Operand update, Values starts, bool wrap_negative /*= false*/) {
  if (wrap_negative) starts = wrapped(std::move(starts), x.shape());
  starts.insert(starts.begin(), {x, cast(update, x.dtype())});
  return dynamic_update_op.of({}, starts);
}

}  // namespace rlx
