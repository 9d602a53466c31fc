// Scatter along one axis with the reductions of PyTorch, with or without the old element.
#include <limits>

#include "ops/wide.h"

namespace rlx {
namespace {

// Update [.., j, ..] goes to [.., indices[.., j, ..], ..]: every axis but one runs along.
GatherNumbers along(std::int64_t axis, int rank) {
  GatherNumbers numbers{.offset_dims = {}, .collapsed_slice_dims = {axis}, .start_index_map = {axis}};
  for (std::int64_t d = 0; d < rank; ++d)
    if (d != axis) numbers.operand_batching_dims.push_back(d);
  numbers.start_indices_batching_dims = numbers.operand_batching_dims;
  return numbers;
}

Value combined(Value x, Value indices, Value updates, std::int64_t axis, ScatterKind kind) {
  return scatter(x, expand_dims(indices, {-1}), updates, along(axis, x.rank()), kind, IndexMode::fill);
}

void check(std::string_view op, Value x, Value indices, Value updates, std::int64_t axis) {
  Dims wanted = x.shape();
  if (indices.rank() == x.rank()) wanted[static_cast<std::size_t>(axis)] = indices.dim(axis);
  if (!is_integer(indices.dtype()) || !(indices.shape() == wanted) || !(updates.shape() == wanted) || updates.dtype() != x.dtype())
    fail("rlx.{}: x {}, indices {}, updates {} (allowed: integers and {} of the shape of x but for axis {})", op, x.type().to_string(),
         indices.type().to_string(), updates.type().to_string(), name(x.dtype()), axis);
}

struct ScatterReduce {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "scatter_reduce";
  static constexpr std::string_view formula =
      "the sum, mean, product, maximum or minimum of x[.., k, ..] (with include_self) and every updates[.., j, ..] whose indices[.., j, "
      "..] is k, along `axis`; x where there is none";
  static constexpr std::array<int, 1> integer_operands{1};
  Axis axis;
  ScatterReduceKind reduce = ScatterReduceKind::sum;
  bool include_self = true;
  static auto fields() { return Fields<&ScatterReduce::axis, &ScatterReduce::reduce, &ScatterReduce::include_self>{}; }

  static Value constant(Value near, const Dims& shape, double value) { return full(near, shape, value, i32); }
  static Value counts(Value x, Value indices, std::int64_t axis) {
    return combined(constant(x, x.shape(), 0), indices, constant(x, indices.shape(), 1), axis, ScatterKind::add);
  }
  // What changes no other value; of integers the greatest is the complement of the lowest.
  static Value neutral(Value x, ScatterReduceKind reduce) {
    if (reduce == ScatterReduceKind::sum || reduce == ScatterReduceKind::mean) return like(x, 0);
    if (reduce == ScatterReduceKind::prod) return like(x, 1);
    const bool max = reduce == ScatterReduceKind::max;
    if (is_float(x.dtype())) return like(x, (max ? -1 : 1) * std::numeric_limits<double>::infinity());
    Value lowest = like(x, is_signed_int(x.dtype()) ? -static_cast<double>(std::uint64_t{1} << (info(x.dtype()).bits - 1)) : 0);
    return max ? lowest : logical_not(lowest);
  }
  static ScatterKind kind_of(ScatterReduceKind reduce) {
    if (reduce == ScatterReduceKind::prod) return ScatterKind::mul;
    return reduce == ScatterReduceKind::max ? ScatterKind::max : ScatterKind::min;
  }
  static Value body(const ScatterReduce& op, Value x, Value indices, Value updates) {
    check(name, x, indices, updates, op.axis);
    const DType dtype = x.dtype();
    const bool mean = op.reduce == ScatterReduceKind::mean, adds = mean || op.reduce == ScatterReduceKind::sum;
    if (mean) check_float(name, x);
    if (adds) x = widen(x), updates = widen(updates);
    Value count = !mean && op.include_self ? Value() : counts(x, indices, op.axis);
    if (!op.include_self) x = select(gt(count, scalar(count, 0, i32)), neutral(x, op.reduce), x);
    if (!adds) return combined(x, indices, updates, op.axis, kind_of(op.reduce));
    Value total = combined(x, indices, updates, op.axis, ScatterKind::add);
    if (mean) total = total / cast(op.include_self ? count + scalar(count, 1, i32) : max(count, scalar(count, 1, i32)), x.dtype());
    return cast(total, dtype);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (auto reduce :
         {ScatterReduceKind::sum, ScatterReduceKind::mean, ScatterReduceKind::prod, ScatterReduceKind::max, ScatterReduceKind::min})
      for (bool include_self : {false, true})
        for (DType t : {f32, bf16, i32, u8}) {
          if (reduce == ScatterReduceKind::mean && !is_float(t)) continue;
          const double low = is_unsigned_int(t) ? 0 : -2;
          all.push_back({{{{t, {3, 4}}, low, 2}, {{i32, {5, 4}}, -1, 3}, {{t, {5, 4}}, low, 2}},
                         attrs_of(ScatterReduce{0, reduce, include_self}),
                         1e-6});
        }
    all.push_back({{{{f32, {2, 3, 2}}}, {{i64, {2, 4, 2}}, 0, 2}, {{f32, {2, 4, 2}}}},
                   attrs_of(ScatterReduce{1, ScatterReduceKind::mean, false}),
                   1e-6});
    return all;
  }
};
const Op<ScatterReduce> scatter_reduce_op;

}  // namespace

/// PyTorch's scatter_reduce: element k of x along `axis` becomes the reduction of itself (with include_self) and of every update whose
/// index is k; without an update it stays. indices and updates have the shape of x but for `axis`; indices outside are dropped. Ties of
/// max and min share the gradient; that of prod is without division. mean is for floats. Throws Error when shapes differ.
Value scatter_reduce(Operand x, Operand indices, Operand updates, Axis axis, ScatterReduceKind reduce, bool include_self /*= true*/) {
  return scatter_reduce_op({axis, reduce, include_self}, x, indices, cast(updates, x.dtype()));
}

}  // namespace rlx
