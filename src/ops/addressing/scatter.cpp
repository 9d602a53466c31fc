// Scatter with the dimension numbers of gather.
#include <algorithm>
#include <numeric>

#include "ir/array_type.h"
#include "ir/extremum.h"
#include "ops/addressing/gather_numbers.h"
#include "ops/addressing/scatter_order.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

template <class T>
T combine(ScatterKind kind, T a, T b) {
  switch (kind) {
    case ScatterKind::set: return b;
    case ScatterKind::add: return a + b;
    case ScatterKind::mul: return a * b;
    default: break;
  }
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    return kind == ScatterKind::min ? minimum(a.real(), b.real()) : maximum(a.real(), b.real());
  } else {
    return kind == ScatterKind::min ? minimum(a, b) : maximum(a, b);
  }
}

struct Scatter {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "scatter";
  static constexpr std::string_view formula =
      "x with windows of updates set, added, multiplied or compared at the positions in the indices, in row-major order; "
      "a window not wholly inside is moved (clip) or dropped (fill)";
  static constexpr std::array<int, 1> integer_operands{1};
  ScatterKind op = ScatterKind::set;
  Ints offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims;
  IndexMode mode = IndexMode::clip;
  static auto fields() {
    return Fields<&Scatter::op, &Scatter::offset_dims, &Scatter::collapsed_slice_dims, &Scatter::start_index_map,
                  &Scatter::operand_batching_dims, &Scatter::start_indices_batching_dims, &Scatter::mode>{};
  }
  GatherNumbers numbers() const {
    return {offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims};
  }
  static Dims window_sizes(const Scatter& s, const Type& x, const Type& updates) {
    Dims sizes(x.shape.size(), 1);
    const Ints window = window_axes(s.numbers(), x.rank());
    for (std::size_t k = 0; k < window.size(); ++k) sizes[static_cast<std::size_t>(window[k])] = updates.dim(s.offset_dims[k]);
    return sizes;
  }
  static Type infer(const Scatter& s, const Type& x, const Type& indices, const Type& updates) {
    const int rank = indices.rank() - 1 + static_cast<int>(s.offset_dims.size());
    if (updates.rank() != rank || updates.dtype != x.dtype)
      fail("rlx.scatter: updates are {} (allowed: {} of rank {})", updates.to_string(), rlx::name(x.dtype), rank);
    if (is_complex(x.dtype) && (s.op == ScatterKind::min || s.op == ScatterKind::max)) fail("rlx.scatter: {} has no order", x.to_string());
    if (is_bool(x.dtype) && (s.op == ScatterKind::add || s.op == ScatterKind::mul))
      fail("rlx.scatter: bool has no sum or product: use max or min");
    const GatherNumbers numbers = s.numbers();
    check_numbers(name, numbers, x, indices, rank);
    const Dims sizes = window_sizes(s, x, updates);
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (!(x.shape[d] - sizes[d]).known_non_negative())
        fail("rlx.scatter: windows of {} along axis {} of {} are too large", sizes[d].to_string(), d, x.to_string());
    const Ints batch = batch_axes(numbers, rank);
    for (std::size_t k = 0; k < batch.size(); ++k)
      if (!(updates.dim(batch[k]) == indices.shape[k]))
        fail("rlx.scatter: axis {} of updates {} differs from axis {} of indices {}", batch[k], updates.to_string(), k,
             indices.to_string());
    return x;
  }

  template <class T, class Get, class Set>
  static void combine_all(const Scatter& s, std::span<const Array> x, Array& y, Get get, Set set) {
    std::vector<T> total;
    for (std::int64_t i = 0; i < x[0].size(); ++i) total.push_back(get(x[0], i));
    Ints sizes;
    for (const Dim& d : window_sizes(s, type_of(x[0]), type_of(x[2]))) sizes.push_back(d.value());
    const WindowPositions positions(s.numbers(), x[0], x[1], sizes, s.mode, x[2].rank());
    Ints at(x[2].shape().size(), 0);
    for (std::int64_t i = 0; i < x[2].size(); ++i, advance(at, x[2].shape())) {
      const auto to = positions.find(at);
      if (to) total[static_cast<std::size_t>(*to)] = combine(s.op, total[static_cast<std::size_t>(*to)], get(x[2], i));
    }
    for (std::int64_t i = 0; i < y.size(); ++i) set(i, total[static_cast<std::size_t>(i)]);
  }
  static void evaluate(const Scatter& s, std::span<const Array> x, std::span<Array> y) {
    // Signed sums are taken modulo 2^64 as unsigned ones; the order of min and max is the type's own.
    const bool ordered = s.op == ScatterKind::min || s.op == ScatterKind::max;
    if (is_signed_int(x[0].dtype()) && ordered)
      combine_all<std::int64_t>(
          s, x, y[0], [](const Array& a, auto i) { return a.get_int(i); }, [&](auto i, auto v) { y[0].set_int(i, v); });
    else if (is_integer(x[0].dtype()))
      combine_all<std::uint64_t>(
          s, x, y[0], [](const Array& a, auto i) { return a.get_uint(i); }, [&](auto i, auto v) { y[0].set_uint(i, v); });
    else
      combine_all<std::complex<double>>(
          s, x, y[0], [](const Array& a, auto i) { return a.get_complex(i); }, [&](auto i, auto v) { y[0].set_complex(i, v); });
  }
  static Value expansion(const Scatter& s, Value x, Value indices, Value updates) {
    return scatter_in_order(x, indices, updates, s.numbers(), window_sizes(s, x.type(), updates.type()), s.op, s.mode);
  }

  /// What the windows read, 0 for dropped ones.
  static Value read_back(const Scatter& s, Value y, Value indices, const Type& x, const Type& updates) {
    return gather(y, indices, s.numbers(), window_sizes(s, x, updates), s.mode, 0.0);
  }
  static Values jvp(const Scatter& s, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    if (!dx[0] && !dx[2]) return {Value()};
    Value base = dx[0] ? dx[0] : zeros_like(x[0]);
    Value updates = dx[2] ? dx[2] : zeros_like(x[2]);
    switch (s.op) {
      case ScatterKind::set:
      case ScatterKind::add: return {scatter(base, x[1], updates, s.numbers(), s.op, s.mode)};
      case ScatterKind::mul: break;
      case ScatterKind::min:
      case ScatterKind::max: return {extreme_jvp(s, x, y[0], base, updates)};
    }
    Value total = dx[0] ? scatter(base, x[1], x[2], s.numbers(), ScatterKind::mul, s.mode) : base;
    if (!dx[2]) return {total};
    Value slope = widen(read_back(s, x[0], x[1], x[0].type(), x[2].type())) * product_of_others(s, x);
    return {scatter(total, x[1], cast(widen(updates) * slope, x[0].dtype()), s.numbers(), ScatterKind::add, s.mode)};
  }
  /// For each update the product of the others of its element: of those in front of it times of those behind it. Nothing is divided, so
  /// zeros are right in derivatives of any order. The updates are brought in the order of their elements for that.
  static Value product_of_others(const Scatter& s, std::span<const Value> x) {
    const Dim count = x[2].type().size();
    Value ids = reshape(iota(x[0], {x[0].type().size()}, i64), x[0].shape());
    Value to = gather(ids, x[1], s.numbers(), window_sizes(s, x[0].type(), x[2].type()), s.mode, -1);
    const Values sorted = sort({reshape(to, {count}), iota(to, {count}, i64)}, 1, 0);
    Value factors = take(reshape(widen(x[2]), {count}), sorted[1]);
    Value others = product_in_front(factors, sorted[0], false) * product_in_front(factors, sorted[0], true);
    return reshape(take(others, argsort(sorted[1], 0)), x[2].shape());
  }
  /// The product of those in front of each factor that are of the same element, twice as many in each step. No number of another element
  /// takes part, be it infinite.
  static Value product_in_front(Value factors, Value element, bool reverse) {
    const auto moved = [&](Value v, std::int64_t places, double fill) {
      const std::int64_t by = reverse ? -places : places;
      return pad(v, {by}, {-by}, {}, fill);
    };
    const auto in_front = [&](Value v, std::int64_t places) {
      return select(eq(element, moved(element, places, -2)), moved(v, places, 1), like(v, 1));
    };
    Value product = in_front(factors, 1);
    for (std::int64_t places = 1; places < element.dim(0).upper(); places *= 2) product = product * in_front(product, places);
    return product;
  }
  /// Ties, among updates and with x, share the derivative evenly.
  static Value extreme_jvp(const Scatter& s, std::span<const Value> x, Value y, Value base, Value updates) {
    Value wins = eq(x[0], y), update_wins = eq(x[2], read_back(s, y, x[1], x[0].type(), x[2].type()));
    auto sum = [&](Value at, Value more) { return scatter(at, x[1], more, s.numbers(), ScatterKind::add, s.mode); };
    Value total = sum(select(wins, base, zeros_like(base)), select(update_wins, updates, zeros_like(updates)));
    return total / sum(cast(wins, base.dtype()), cast(update_wins, base.dtype()));
  }
  static Values transpose(const Scatter& s, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    if (s.op == ScatterKind::mul) return {scatter(dy[0], x[1], x[2], s.numbers(), s.op, s.mode), Value(), Value()};
    if (s.op == ScatterKind::add)
      return {linear[0] ? dy[0] : Value(), Value(), linear[2] ? read_back(s, dy[0], x[1], x[0].type(), x[2].type()) : Value()};
    if (s.op != ScatterKind::set) fail_internal("rlx.scatter: min and max are not linear");
    // Of several updates of one element the last counts: number them, scatter the numbers, and see which are still there.
    Dims flat{x[2].type().size()};
    Value ids = reshape(iota(dy[0], flat, i64, 0), x[2].shape()) + 1;
    Value none = full(dy[0], x[0].shape(), 0, i64);
    Value winners = scatter(none, x[1], ids, s.numbers(), ScatterKind::set, s.mode);
    Value wins = eq(read_back(s, winners, x[1], x[0].type(), x[2].type()), ids);
    Value to_updates =
        linear[2] ? select(wins, read_back(s, dy[0], x[1], x[0].type(), x[2].type()), scalar(dy[0], 0, dy[0].dtype())) : Value();
    return {linear[0] ? select(eq(winners, none), dy[0], scalar(dy[0], 0, dy[0].dtype())) : Value(), Value(), to_updates};
  }
  static Values batch(const Scatter& s, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
    Values y(x.begin(), x.end());
    for (std::size_t i : {0u, 2u}) {
      if (batched[i]) continue;
      Dims shape = x[i].shape();
      shape.insert(shape.begin(), size);
      y[i] = broadcast_to(x[i], shape);
    }
    return {scatter(y[0], y[1], y[2], batched_numbers(s.numbers(), true, batched[1]), s.op, s.mode)};
  }

  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (ScatterKind kind : {ScatterKind::set, ScatterKind::add, ScatterKind::mul, ScatterKind::min, ScatterKind::max})
      for (DType t : {f32, f64, i32, u8})
        for (IndexMode mode : {IndexMode::clip, IndexMode::fill})
          all.push_back({{{{t, {5, 4}}, is_unsigned_int(t) ? 0.0 : -2.0, 2},
                          {{i32, {7, 1}}, -2, 6},
                          {{t, {7, 4}}, is_unsigned_int(t) ? 0.0 : -2.0, 2}},
                         attrs_of(Scatter{kind, {1}, {0}, {0}, {}, {}, mode}),
                         kind == ScatterKind::mul ? 1e-6 : 0});
    const Sample::Operand x{{f32, {5, 4}}}, points{{i32, {3, 4, 2}}, 0, 4}, rows{{i64, {5, 3, 1}}, 0, 3};
    all.push_back({{x, points, {{f32, {3, 4}}}}, attrs_of(Scatter{ScatterKind::add, {}, {0, 1}, {0, 1}, {}, {}, IndexMode::fill})});
    all.push_back({{x, rows, {{f32, {5, 3}}}}, attrs_of(Scatter{ScatterKind::set, {}, {1}, {1}, {0}, {0}, IndexMode::clip})});
    return all;
  }
};
const Op<Scatter> scatter_op;

}  // namespace

/// x with windows of `updates` combined into it at the start positions in the last axis of `indices`; see GatherNumbers, whose result is
/// the updates here. Updates are taken in row-major order; a window not wholly inside is moved inside (clip) or dropped (fill). The
/// derivative of a product by an update is the product of the others, without division.
Value scatter(Operand x, Operand indices, Operand updates, GatherNumbers numbers, ScatterKind kind /*= ScatterKind::set*/,
              IndexMode mode /*= IndexMode::clip*/) {
  return scatter_op({kind, numbers.offset_dims, numbers.collapsed_slice_dims, numbers.start_index_map, numbers.operand_batching_dims,
                     numbers.start_indices_batching_dims, mode},
                    x, indices, cast(updates, x.dtype()));
}

}  // namespace rlx
