// Pooling to given sizes: bin o of `out` covers elements floor(o * in / out) up to ceil((o + 1) * in / out) - 1 along each axis.
#include <algorithm>
#include <optional>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 30;  // products of two sizes stay far from 64 bits

std::int64_t static_size(std::string_view op, const Dim& size, const Type& x) {
  if (!size.is_static() || size.value() > largest_size)
    fail("rlx.{}: size {} of {} (allowed: static sizes up to {}, or a whole divisor of the axis)", op, size.to_string(), x.to_string(),
         largest_size);
  return size.value();
}

struct Bin {
  std::int64_t begin, end;
};
Bin bin_of(std::int64_t o, std::int64_t in, std::int64_t out) { return {o * in / out, ((o + 1) * in + out - 1) / out}; }

// Axis (n) as (out, n / out), where the bins are equal; null where they are not.
Value equal_bins(Value x, std::int64_t axis, const Dim& out) {
  if (out == Dim(1)) return expand_dims(x, {axis});
  const auto length = Dim::exact_div(x.dim(axis), out);
  return length && length->is_static() ? window(x, axis, length->value(), length->value()) : Value();
}

// The same with unequal bins, the shorter ones filled up with their last element, which changes no maximum.
Value filled_bins(std::string_view op, Value x, std::int64_t axis, const Dim& out) {
  if (Value bins = equal_bins(x, axis, out)) return bins;
  const std::int64_t from = static_size(op, x.dim(axis), x.type()), to = static_size(op, out, x.type());
  std::int64_t length = 0;
  for (std::int64_t o = 0; o < to; ++o) length = std::max(length, bin_of(o, from, to).end - bin_of(o, from, to).begin);
  Array places(i32, {to, length});
  for (std::int64_t i = 0; i < to * length; ++i) {
    const Bin bin = bin_of(i / length, from, to);
    places.set_int(i, std::min(bin.begin + i % length, bin.end - 1));
  }
  return take(x, make_constant(x.graph(), places), axis);
}

// The matrix (out, in) that takes the mean of each bin.
Array mean_matrix(DType dtype, std::int64_t in, std::int64_t out) {
  Array matrix(dtype, {out, in});
  for (std::int64_t o = 0; o < out; ++o) {
    const Bin bin = bin_of(o, in, out);
    for (std::int64_t i = 0; i < in; ++i)
      matrix.set_double(o * in + i, i >= bin.begin && i < bin.end ? 1 / static_cast<double>(bin.end - bin.begin) : 0);
  }
  return matrix;
}

Value bin_means(std::string_view op, Value x, std::int64_t axis, const Dim& out) {
  if (Value bins = equal_bins(x, axis, out)) return mean(bins, {axis + 1});
  const std::int64_t from = static_size(op, x.dim(axis), x.type()), to = static_size(op, out, x.type());
  Value matrix = make_constant(x.graph(), mean_matrix(x.dtype(), from, to));
  return move_axis(dot(x, matrix, {axis}, {1}), -1, axis);
}

// Written out, because the body of a graph that is only read or checked would compute its matrices.
Type pooled_type(std::string_view op, const Dims& sizes, const Type& x) {
  if (sizes.size() > x.shape.size()) fail("rlx.{}: {} sizes for {}", op, sizes.size(), x.to_string());
  Type result = x;
  const std::size_t first = x.shape.size() - sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Dim &in = x.shape[first + i], &out = sizes[i];
    if (!(in - 1).known_non_negative() || !(out - 1).known_non_negative())
      fail("rlx.{}: {} to {} (allowed: sizes >= 1)", op, x.to_string(), to_string(sizes));
    const auto length = Dim::exact_div(in, out);
    if (!(out == Dim(1)) && !(in == out) && !(length && length->is_static())) static_size(op, in, x), static_size(op, out, x);
    result.shape[first + i] = out;
  }
  return result;
}

// From the last axis to the first: the first of ties is then the first in row-major order.
template <class Rule>
Value along_last_axes(const Dims& sizes, Value x, Rule rule) {
  const std::int64_t first = x.rank() - static_cast<std::int64_t>(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const std::int64_t axis = first + static_cast<std::int64_t>(i);
    if (!(x.dim(axis) == sizes[i])) x = rule(x, axis, sizes[i]);
  }
  return x;
}

struct AdaptiveAvgPool {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "adaptive_avg_pool";
  static constexpr std::string_view formula =
      "the mean of bin o, elements floor(o n / size) .. ceil((o + 1) n / size) - 1, of the last axes";
  Dims sizes;
  static auto fields() { return Fields<&AdaptiveAvgPool::sizes>{}; }
  static Type infer(const AdaptiveAvgPool& op, const Type& x) {
    if (!is_float(x.dtype)) fail("rlx.adaptive_avg_pool: {} has no means (allowed: floats)", x.to_string());
    return pooled_type(name, op.sizes, x);
  }
  static Value body(const AdaptiveAvgPool& op, Value x) {
    return in_wide(name, x, [&](Value v) {
      return along_last_axes(op.sizes, v, [](Value y, std::int64_t axis, const Dim& out) { return bin_means(name, y, axis, out); });
    });
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 7, 6}}}}, attrs_of(AdaptiveAvgPool{{3, 4}}), 1e-6},
            {{{{f32, {2, 7, 6}}}}, attrs_of(AdaptiveAvgPool{{1, 3}}), 1e-6},
            {{{{f64, {2, 4}}}}, attrs_of(AdaptiveAvgPool{{7}}), 1e-12},
            {{{{bf16, {3, 4, 5, 2}}}}, attrs_of(AdaptiveAvgPool{{2, 3, 2}}), 1e-6}};
  }
};
const Op<AdaptiveAvgPool> adaptive_avg_pool_op;

struct AdaptiveMaxPool {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "adaptive_max_pool";
  static constexpr std::string_view formula =
      "the largest element of bin o, elements floor(o n / size) .. ceil((o + 1) n / size) - 1, of the last axes; the first of ties takes "
      "the gradient";
  Dims sizes;
  static auto fields() { return Fields<&AdaptiveMaxPool::sizes>{}; }
  static Type infer(const AdaptiveMaxPool& op, const Type& x) {
    if (is_complex(x.dtype)) fail("rlx.adaptive_max_pool: {} has no order", x.to_string());
    return pooled_type(name, op.sizes, x);
  }
  static Value body(const AdaptiveMaxPool& op, Value x) {
    return along_last_axes(
        op.sizes, x, [](Value y, std::int64_t axis, const Dim& out) { return reduce_max(filled_bins(name, y, axis, out), {axis + 1}); });
  }
  static Values jvp(const AdaptiveMaxPool& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    if (!dx[0]) return {Value()};
    Value tangent = dx[0];
    along_last_axes(op.sizes, x[0], [&](Value y, std::int64_t axis, const Dim& out) {
      Value bins = filled_bins(name, y, axis, out), moved = filled_bins(name, tangent, axis, out);
      Value first = eq(iota(bins, bins.shape(), i32, axis + 1), argmax(bins, axis + 1, true));
      tangent = sum(select(first, moved, like(moved, 0)), {axis + 1});
      return reduce_max(bins, {axis + 1});
    });
    return {tangent};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 7, 6}}}}, attrs_of(AdaptiveMaxPool{{3, 4}})},
            {{{{f32, {2, 7, 6}}}}, attrs_of(AdaptiveMaxPool{{1, 3}})},
            {{{{i32, {2, 4}}, -9, 9}}, attrs_of(AdaptiveMaxPool{{7}})},
            {{{{bf16, {3, 4, 5, 2}}}}, attrs_of(AdaptiveMaxPool{{2, 3, 2}})}};
  }
};
const Op<AdaptiveMaxPool> adaptive_max_pool_op;

}  // namespace

/// The mean of each bin of the last sizes.size() axes of x (the spatial ones of [N, C, spatial...]), so that they get the given sizes:
/// bin o of an axis of n elements holds floor(o n / size) up to ceil((o + 1) n / size) - 1. This is also PyTorch's interpolate in area
/// mode. Sizes are static, except for 1 and whole divisors. Throws Error for x that is no float and for sizes below 1.
Value adaptive_avg_pool(Operand x, Dims sizes) { return adaptive_avg_pool_op({std::move(sizes)}, x); }

/// The largest element of each bin; bins as in adaptive_avg_pool. The gradient goes to the first of ties.
Value adaptive_max_pool(Operand x, Dims sizes) { return adaptive_max_pool_op({std::move(sizes)}, x); }

}  // namespace rlx
