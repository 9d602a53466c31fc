// Convolution with JAX's dimension numbers, and PyTorch's forms built on it.
#include "ops/contraction/convolution.h"

#include <algorithm>
#include <complex>
#include <numeric>

#include "ops/broadcasting.h"
#include "ops/contraction/dilated_size.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using At = std::vector<Index>;
using Ints = std::vector<std::int64_t>;
std::size_t at_axis(std::int64_t axis) { return static_cast<std::size_t>(axis); }

struct Conv {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "conv";
  static constexpr std::string_view formula =
      "y[n,o,p] = sum over input channels c of the group and kernel positions k of x[n, c, p * stride + k * rhs_dilation - lo] * "
      "w[o, c, k], x dilated and padded with 0 (JAX conv_general_dilated)";
  Ints lhs_spec, rhs_spec, out_spec, strides, padding_lo, padding_hi, lhs_dilation, rhs_dilation;
  std::int64_t feature_group_count = 1, batch_group_count = 1;
  static auto fields() {
    return Fields<&Conv::lhs_spec, &Conv::rhs_spec, &Conv::out_spec, &Conv::strides, &Conv::padding_lo, &Conv::padding_hi,
                  &Conv::lhs_dilation, &Conv::rhs_dilation, &Conv::feature_group_count, &Conv::batch_group_count>{};
  }
  ConvOptions options() const {
    return {lhs_spec,         rhs_spec, out_spec, strides, padding_lo, padding_hi, lhs_dilation, rhs_dilation, feature_group_count,
            batch_group_count};
  }
  std::size_t spatial() const { return strides.size(); }
  std::int64_t groups() const { return std::max(feature_group_count, batch_group_count); }

  static void check_spec(std::string_view side, const Ints& spec, const Type& t) {
    Ints sorted = spec, all(t.shape.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all) fail("rlx.conv: {} axes {} must name every axis of {} once", side, to_string(Attr(spec)), t.to_string());
  }
  static void check_sizes(const Conv& op, const Type& x, const Type& w) {
    const Dim &batch = x.dim(op.lhs_spec[0]), &channels = x.dim(op.lhs_spec[1]), &out = w.dim(op.rhs_spec[0]), &in = w.dim(op.rhs_spec[1]);
    const std::int64_t fg = op.feature_group_count, bg = op.batch_group_count;
    if (fg < 1 || bg < 1 || (fg > 1 && bg > 1))
      fail("rlx.conv: {} feature and {} batch groups (allowed: >= 1, at most one above 1)", fg, bg);
    if (!(in * fg == channels))
      fail("rlx.conv: {} has {} channels, {} takes {} in each of {} groups", x.to_string(), channels.to_string(), w.to_string(),
           in.to_string(), fg);
    if (!Dim::exact_div(out, op.groups())) fail("rlx.conv: {} output channels do not divide into {} groups", out.to_string(), op.groups());
    if (!Dim::exact_div(batch, bg)) fail("rlx.conv: batch {} does not divide into {} groups", batch.to_string(), bg);
  }
  static void check_windows(const Conv& op, std::size_t rank) {
    if (rank < 2) fail("rlx.conv: operands need a batch and a channel axis");
    for (const Ints* list : {&op.strides, &op.padding_lo, &op.padding_hi, &op.lhs_dilation, &op.rhs_dilation})
      if (list->size() != rank - 2) fail("rlx.conv: {} values for {} spatial axes", list->size(), rank - 2);
    for (const Ints* list : {&op.strides, &op.lhs_dilation, &op.rhs_dilation})
      for (std::int64_t v : *list)
        if (v < 1) fail("rlx.conv: stride or dilation {} (allowed: >= 1)", v);
  }
  static Type infer(const Conv& op, const Type& x, const Type& w) {
    if (x.dtype != w.dtype || is_bool(x.dtype))
      fail("rlx.conv: operands are {} and {}: both must have one number type", x.to_string(), w.to_string());
    check_windows(op, x.shape.size());
    check_spec("lhs", op.lhs_spec, x);
    check_spec("rhs", op.rhs_spec, w);
    check_spec("out", op.out_spec, x);
    check_sizes(op, x, w);
    Type result{x.dtype, Dims(x.shape.size())};
    result.shape[at_axis(op.out_spec[0])] = *Dim::exact_div(x.dim(op.lhs_spec[0]), op.batch_group_count);
    result.shape[at_axis(op.out_spec[1])] = w.dim(op.rhs_spec[0]);
    for (std::size_t i = 0; i < op.spatial(); ++i) {
      const Dim padded = dilated(x.dim(op.lhs_spec[i + 2]), op.lhs_dilation[i]) + op.padding_lo[i] + op.padding_hi[i];
      const Dim room = padded - dilated(w.dim(op.rhs_spec[i + 2]), op.rhs_dilation[i]);
      const bool none = room.is_static() && room.value() < 0;
      if (!none && !(room + 1).known_non_negative())
        fail(
            "rlx.conv: spatial axis {} of {} has {} elements with its padding, which may be fewer than the kernel {} spans (allowed: "
            "padding that is enough for every size)",
            i, x.to_string(), padded.to_string(), w.to_string());
      result.shape[at_axis(op.out_spec[i + 2])] =
          none ? Dim(0) : strides_in("rlx.conv: spatial axis " + std::to_string(i), room, op.strides[i]) + 1;
    }
    return result;
  }

  static Loop loop(const Conv& op, std::span<const Type> types, const Type& result, const At& at, const FreshVariable& fresh) {
    const Type &x = types[0], &w = types[1];
    const Index& out = at[at_axis(op.out_spec[1])];
    const Index channel = fresh(w.dim(op.rhs_spec[1]));
    const Index group = Index::quotient(out, *Dim::exact_div(w.dim(op.rhs_spec[0]), op.groups()));
    Source from{{}, 0, At(x.shape.size()), 0}, weight{{}, 1, At(w.shape.size()), 0};
    Loop all{ReduceKind::sum, accumulation_type(x.dtype), {channel}, {}};
    const bool by_batch = op.batch_group_count > 1;
    from.index[at_axis(op.lhs_spec[0])] = at[at_axis(op.out_spec[0])] + (by_batch ? group * result.dim(op.out_spec[0]) : Index(0));
    from.index[at_axis(op.lhs_spec[1])] = by_batch ? channel : group * w.dim(op.rhs_spec[1]) + channel;
    weight.index[at_axis(op.rhs_spec[0])] = out;
    weight.index[at_axis(op.rhs_spec[1])] = channel;
    for (std::size_t i = 0; i < op.spatial(); ++i) {
      const Index k = fresh(w.dim(op.rhs_spec[i + 2]));
      all.variables.push_back(k);
      weight.index[at_axis(op.rhs_spec[i + 2])] = k;
      const Index position = at[at_axis(op.out_spec[i + 2])] * op.strides[i] + k * op.rhs_dilation[i] - Index(op.padding_lo[i]);
      const Index room = Index((x.dim(op.lhs_spec[i + 2]) - 1) * op.lhs_dilation[i]) - position;
      if (!position.known_non_negative()) from.guards.push_back({Guard::Kind::non_negative, position});
      if (op.lhs_dilation[i] > 1) from.guards.push_back({Guard::Kind::zero, Index::remainder(position, op.lhs_dilation[i])});
      if (!room.known_non_negative()) from.guards.push_back({Guard::Kind::non_negative, room});
      from.index[at_axis(op.lhs_spec[i + 2])] = Index::quotient(position, op.lhs_dilation[i]);
    }
    std::vector<Source> reads{from};
    if (!from.guards.empty()) reads.push_back({{}, Source::fill_value, {}, 0});
    all.factors = {reads, {weight}};
    return all;
  }

  // Row-major position in x of what meets kernel position `k` at result position `at`; -1 in padding and holes.
  static std::int64_t input_position(const Conv& op, const Array& x, const Array& w, const Array& y, const Ints& at, std::int64_t channel,
                                     const Ints& k) {
    const std::int64_t group = at[at_axis(op.out_spec[1])] / (w.shape()[at_axis(op.rhs_spec[0])] / op.groups());
    Ints from(at.size());
    from[at_axis(op.lhs_spec[0])] = at[at_axis(op.out_spec[0])];
    from[at_axis(op.lhs_spec[1])] = channel;
    if (op.batch_group_count > 1) from[at_axis(op.lhs_spec[0])] += group * y.shape()[at_axis(op.out_spec[0])];
    else from[at_axis(op.lhs_spec[1])] += group * w.shape()[at_axis(op.rhs_spec[1])];
    for (std::size_t i = 0; i < k.size(); ++i) {
      const std::int64_t p = at[at_axis(op.out_spec[i + 2])] * op.strides[i] + k[i] * op.rhs_dilation[i] - op.padding_lo[i],
                         hole = op.lhs_dilation[i];
      if (p < 0 || p % hole != 0 || p / hole >= x.shape()[at_axis(op.lhs_spec[i + 2])]) return -1;
      from[at_axis(op.lhs_spec[i + 2])] = p / hole;
    }
    return flat(from, x.shape());
  }
  static std::int64_t flat(const Ints& at, const Ints& shape) {
    std::int64_t position = 0;
    for (std::size_t d = 0; d < at.size(); ++d) position = position * shape[d] + at[d];
    return position;
  }
  static bool next(Ints& at, const Ints& shape) {
    for (std::size_t d = at.size(); d-- > 0; at[d] = 0)
      if (++at[d] < shape[d]) return true;
    return false;
  }
  template <class T, class Get, class Set>
  static void convolve(const Conv& op, const Array& x, const Array& w, const Array& y, Get get, Set set) {
    Ints at(y.shape().size(), 0), kernel;
    for (std::size_t i = 0; i < op.spatial(); ++i) kernel.push_back(w.shape()[at_axis(op.rhs_spec[i + 2])]);
    const bool some = std::find(kernel.begin(), kernel.end(), 0) == kernel.end();
    for (std::int64_t i = 0; i < y.size(); ++i, next(at, y.shape())) {
      T total{};
      for (std::int64_t c = 0; some && c < w.shape()[at_axis(op.rhs_spec[1])]; ++c) {
        Ints k(kernel.size(), 0), weight(at.size());
        do {
          weight[at_axis(op.rhs_spec[0])] = at[at_axis(op.out_spec[1])];
          weight[at_axis(op.rhs_spec[1])] = c;
          for (std::size_t d = 0; d < k.size(); ++d) weight[at_axis(op.rhs_spec[d + 2])] = k[d];
          const std::int64_t from = input_position(op, x, w, y, at, c, k);
          // Padding and holes are zeros that are multiplied, so that an infinite weight makes NaN of them.
          total += (from >= 0 ? get(x, from) : T{}) * get(w, flat(weight, w.shape()));
        } while (next(k, kernel));
      }
      set(i, total);
    }
  }
  static void evaluate(const Conv& op, std::span<const Array> x, std::span<Array> out) {
    Array& y = out[0];
    if (is_integer(y.dtype()))
      convolve<std::uint64_t>(
          op, x[0], x[1], y, [](const Array& a, auto i) { return a.get_uint(i); }, [&](auto i, auto v) { y.set_uint(i, v); });
    else if (is_complex(y.dtype()))
      convolve<std::complex<double>>(
          op, x[0], x[1], y, [](const Array& a, auto i) { return a.get_complex(i); }, [&](auto i, auto v) { y.set_complex(i, v); });
    else
      convolve<double>(
          op, x[0], x[1], y, [](const Array& a, auto i) { return a.get_double(i); }, [&](auto i, auto v) { y.set_double(i, v); });
  }

  static Values jvp(const Conv& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    Value from_x = dx[0] ? conv_general(dx[0], x[1], op.options()) : Value();
    Value from_w = dx[1] ? conv_general(x[0], dx[1], op.options()) : Value();
    return {from_x && from_w ? from_x + from_w : from_x ? from_x : from_w};
  }

  static Ints swapped(Ints spec) {
    std::swap(spec[0], spec[1]);
    return spec;
  }
  // Splits axis `from` into (groups, rest) and merges the groups into the front of axis `into`.
  static Value move_groups(Value x, std::int64_t from, std::int64_t into, std::int64_t groups) {
    if (groups == 1) return x;
    Dims split = x.shape(), merged = x.shape();
    const Dim rest = *Dim::exact_div(x.dim(from), groups);
    split[at_axis(from)] = rest;
    split.insert(split.begin() + from, Dim(groups));
    merged[at_axis(from)] = rest;
    merged[at_axis(into)] *= groups;
    Value y = move_axis(reshape(x, split), from, into);  // `groups` now stands right before axis `into`
    return reshape(y, merged);
  }
  static Value zeros(Value like, const Type& type) { return full(like, type.shape, 0, type.dtype); }

  static Value transpose_lhs(const Conv& op, Value dy, Value w, const Type& x) {
    ConvOptions o{op.out_spec, swapped(op.rhs_spec), op.lhs_spec, op.lhs_dilation, {}, {}, op.strides, op.rhs_dilation, op.groups(), 1};
    Axes flipped;
    for (std::size_t i = 0; i < op.spatial(); ++i) {
      const Dim kernel = dilated(w.dim(op.rhs_spec[i + 2]), op.rhs_dilation[i]), before = kernel - op.padding_lo[i] - 1;
      const Dim after =
          dilated(x.dim(op.lhs_spec[i + 2]), op.lhs_dilation[i]) + kernel - 1 - dilated(dy.dim(op.out_spec[i + 2]), op.strides[i]) - before;
      o.padding_lo.push_back(before.value());
      o.padding_hi.push_back(after.value());
      flipped.values.push_back(op.rhs_spec[i + 2]);
    }
    Value kernel = move_groups(w, op.rhs_spec[0], op.rhs_spec[1], op.groups());
    Value dx = conv_general(dy, flipped.size() == 0 ? kernel : reverse(kernel, flipped), o);
    return move_groups(dx, op.lhs_spec[1], op.lhs_spec[0], op.batch_group_count);
  }
  static Value transpose_rhs(const Conv& op, Value dy, Value x, const Type& w) {
    ConvOptions o{swapped(op.lhs_spec), swapped(op.out_spec), swapped(op.rhs_spec), op.rhs_dilation,       op.padding_lo, {},
                  op.lhs_dilation,      op.strides,           op.batch_group_count, op.feature_group_count};
    for (std::size_t i = 0; i < op.spatial(); ++i) {
      const Dim kernel = dilated(w.dim(op.rhs_spec[i + 2]), op.rhs_dilation[i]),
                in = dilated(x.dim(op.lhs_spec[i + 2]), op.lhs_dilation[i]);
      o.padding_hi.push_back((dilated(dy.dim(op.out_spec[i + 2]), op.strides[i]) - in + kernel - op.padding_lo[i] - 1).value());
    }
    return conv_general(x, dy, o);
  }
  static Values transpose(const Conv& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    if (dy[0].type().size() == Dim(0)) return {zeros(dy[0], x[0].type()), zeros(dy[0], x[1].type())};
    return {linear[0] ? transpose_lhs(op, dy[0], x[1], x[0].type()) : Value(),
            linear[1] ? transpose_rhs(op, dy[0], x[0], x[1].type()) : Value()};
  }

  // Puts the batch on axis 0 of x inside its axis 1 + `axis`, between the groups and the rest of it.
  static Value merge_batch(Value x, std::int64_t axis, std::int64_t groups) {
    Dims split(x.shape().begin() + 1, x.shape().end()), merged = split;
    merged[at_axis(axis)] *= x.dim(0);
    split[at_axis(axis)] = *Dim::exact_div(split[at_axis(axis)], groups);
    split.insert(split.begin() + axis, Dim(groups));
    split.insert(split.begin(), x.dim(0));
    return reshape(move_axis(reshape(x, split), 0, axis + 1), merged);
  }
  static Value split_batch(Value y, std::int64_t axis, std::int64_t groups, const Dim& size) {
    Dims split = y.shape(), apart = y.shape();
    const Dim rest = *Dim::exact_div(y.dim(axis), size * groups);
    split[at_axis(axis)] = rest;
    split.insert(split.begin() + axis, {Dim(groups), size});
    apart[at_axis(axis)] = rest * groups;
    apart.insert(apart.begin(), size);
    return reshape(move_axis(reshape(y, split), axis + 1, 0), apart);
  }
  // Axis `axis` as (groups, rest).
  static Value split_groups(Value x, std::int64_t axis, std::int64_t groups) {
    Dims split = x.shape();
    split[at_axis(axis)] = *Dim::exact_div(x.dim(axis), groups);
    split.insert(split.begin() + axis, Dim(groups));
    return reshape(x, split);
  }
  // A batch on axis 0, then the axes of `spec` in its order.
  static Value behind_batch(Value x, const Ints& spec) {
    Ints perm{0};
    for (std::int64_t axis : spec) perm.push_back(axis + 1);
    return rlx::transpose(x, perm);
  }
  // The windows of every entry of a batch of any size, times weights of its own.
  static Value by_windows(const Conv& op, Value x, Value w, const Dim& size) {
    const auto example = [](const Value& v) { return Type{v.dtype(), Dims(v.shape().begin() + 1, v.shape().end())}; };
    Type result = infer(op, example(x), example(w));
    result.shape.insert(result.shape.begin(), size);
    if (result.size() == Dim(0) || w.type().size() == Dim(0)) return zeros(x, result);
    x = behind_batch(x, op.lhs_spec), w = behind_batch(w, op.rhs_spec);  // (batch, n, c, ...), (batch, o, c, k...)
    const bool by_batch = op.batch_group_count > 1;
    Dims lo(3, 0), hi = lo;
    Ints interior(3, 0), x_contract{3}, w_contract{3};
    for (std::size_t i = 0; i < op.spatial(); ++i) {
      lo.emplace_back(op.padding_lo[i]), hi.emplace_back(op.padding_hi[i]), interior.push_back(op.lhs_dilation[i] - 1);
      x_contract.push_back(static_cast<std::int64_t>(2 * i) + 5), w_contract.push_back(static_cast<std::int64_t>(i) + 4);
    }
    x = pad(x, lo, hi, interior, 0);
    for (std::size_t i = op.spatial(); i-- > 0;) {
      const Dim& length = w.shape()[i + 3];
      if (!length.is_static()) fail("rlx.conv: a batch of {} kernels of symbolic size: {}", size.to_string(), w.type().to_string());
      x = window(x, static_cast<std::int64_t>(i) + 3, length.value(), op.strides[i], op.rhs_dilation[i]);
    }
    x = split_groups(x, by_batch ? 1 : 2, op.groups());  // (batch, groups, n, c, (o, k)...) or (batch, n, groups, c, (o, k)...)
    Value y = dot(x, split_groups(w, 1, op.groups()), x_contract, w_contract, {0, by_batch ? 1 : 2}, {0, 1});
    y = move_axis(y, -1, 2);  // (batch, groups, o / groups, n, ...)
    Dims merged = y.shape();
    merged[1] *= merged[2];
    merged.erase(merged.begin() + 2);
    y = move_axis(reshape(y, merged), 1, 2);
    Ints perm(result.shape.size(), 0);
    for (std::size_t i = 0; i < op.out_spec.size(); ++i) perm[at_axis(op.out_spec[i] + 1)] = static_cast<std::int64_t>(i) + 1;
    return rlx::transpose(y, perm);
  }
  static Values batch(const Conv& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
    ConvOptions o = op.options();
    if (!batched[1])
      return {split_batch(conv_general(merge_batch(x[0], op.lhs_spec[0], op.batch_group_count), x[1], o), op.out_spec[0], 1, size)};
    if (!batched[0])
      return {split_batch(conv_general(x[0], merge_batch(x[1], op.rhs_spec[0], op.groups()), o), op.out_spec[1], op.groups(), size)};
    if (!size.is_static()) return {by_windows(op, x[0], x[1], size)};
    // Every batch entry becomes a group of its own.
    const bool by_batch = op.batch_group_count > 1;
    (by_batch ? o.batch_group_count : o.feature_group_count) *= size.value();
    Value y = conv_general(merge_batch(x[0], op.lhs_spec[by_batch ? 0 : 1], 1), merge_batch(x[1], op.rhs_spec[0], 1), o);
    return {split_batch(y, op.out_spec[1], 1, size)};
  }

  static Sample sample(Dims x, Dims w, Conv op, DType t = f32) { return {{{{t, x}}, {{t, w}}}, attrs_of(op), 1e-6}; }
  static std::vector<Sample> samples() {
    const Ints nchw{0, 1, 2, 3}, nhwc{0, 3, 1, 2}, hwio{3, 2, 0, 1}, nch{0, 1, 2};
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16, i32, c64})
      all.push_back(sample({2, 3, 7, 6}, {4, 3, 3, 2}, {nchw, nchw, nchw, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1, 1}, t));
    all.push_back(sample({1, 7, 6, 2}, {4, 2, 2, 3}, {nhwc, hwio, nhwc, {2, 1}, {2, 0}, {1, 1}, {1, 1}, {1, 1}, 1, 1}));
    all.push_back(sample({1, 2, 5, 4}, {3, 2, 3, 2}, {nchw, nchw, nchw, {1, 2}, {2, -1}, {1, 2}, {2, 3}, {2, 1}, 1, 1}));
    all.push_back(sample({2, 6, 7}, {9, 2, 3}, {nch, nch, nch, {2}, {1}, {1}, {1}, {1}, 3, 1}));
    all.push_back(sample({6, 2, 7}, {9, 2, 3}, {nch, nch, nch, {2}, {1}, {0}, {1}, {2}, 1, 3}));
    all.push_back(sample({1, 1, 3, 3}, {2, 1, 4, 4}, {nchw, nchw, nchw, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1, 1}));
    all.push_back(sample({2, 3}, {4, 3}, {{0, 1}, {0, 1}, {0, 1}, {}, {}, {}, {}, {}, 1, 1}));
    return all;
  }
};
const Op<Conv> conv_op;

Ints per_axis(std::string_view op, std::string_view what, Ints values, std::size_t count, std::int64_t initial) {
  if (values.empty()) return Ints(count, initial);
  if (values.size() == 1) return Ints(count, values[0]);
  if (values.size() != count) fail("rlx.{}: {} {} for {} spatial axes", op, values.size(), what, count);
  return values;
}

Ints in_order(Ints spec, int rank) {
  if (!spec.empty()) return spec;
  spec.resize(static_cast<std::size_t>(rank));
  std::iota(spec.begin(), spec.end(), 0);
  return spec;
}

void check_rank(std::string_view op, Value x, Value w) {
  if (x.rank() < 2 || x.rank() != w.rank())
    fail("rlx.{}: x is {}, weights are {} (allowed: one rank, at least 2)", op, x.type().to_string(), w.type().to_string());
}

}  // namespace

ConvOptions conv_options(const Attrs& attrs) { return Op<Conv>::from(attrs).options(); }

Type conv_result(const Attrs& attrs, const Type& x, const Type& w) { return Conv::infer(Op<Conv>::from(attrs), x, w); }

/// JAX's conv_general_dilated: see ConvOptions. The operands are promoted; narrow types accumulate in 32 bits.
Value conv_general(Operand x, Operand w, ConvOptions options) {
  check_rank("conv", x, w);
  const auto n = static_cast<std::size_t>(x.rank()) - 2;
  const DType dtype = promote(x.dtype(), w.dtype());
  auto list = [&](std::string_view what, const Ints& values, std::int64_t initial) { return per_axis("conv", what, values, n, initial); };
  return conv_op({in_order(options.lhs_spec, x.rank()), in_order(options.rhs_spec, x.rank()), in_order(options.out_spec, x.rank()),
                  list("strides", options.strides, 1), list("paddings", options.padding_lo, 0), list("paddings", options.padding_hi, 0),
                  list("dilations", options.lhs_dilation, 1), list("dilations", options.rhs_dilation, 1), options.feature_group_count,
                  options.batch_group_count},
                 cast(x, dtype), cast(w, dtype));
}

/// Convolution (cross-correlation) of x (N, C, spatial...) with w (O, C / groups, spatial...), padded with 0 on both sides, giving (N, O,
/// spatial...): a size n becomes floor((n + 2 padding - dilation (k - 1) - 1) / stride) + 1. Lists have one number for each spatial axis,
/// or one for all. Throws Error when channels or groups do not fit.
Value conv(Operand x, Operand w, std::vector<std::int64_t> strides /*= {}*/, std::vector<std::int64_t> padding /*= {}*/,
           std::vector<std::int64_t> dilation /*= {}*/, std::int64_t groups /*= 1*/) {
  return conv_general(x, w, {{}, {}, {}, strides, padding, padding, {}, dilation, groups, 1});
}

/// PyTorch's conv_transpose: the gradient of conv by its input, as a layer. x (N, C, spatial...), w (C, O / groups, spatial...); a spatial
/// size becomes (n - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.
Value conv_transpose(Operand x, Operand w, std::vector<std::int64_t> strides /*= {}*/, std::vector<std::int64_t> padding /*= {}*/,
                     std::vector<std::int64_t> output_padding /*= {}*/, std::vector<std::int64_t> dilation /*= {}*/,
                     std::int64_t groups /*= 1*/) {
  check_rank("conv_transpose", x, w);
  const auto n = static_cast<std::size_t>(x.rank()) - 2;
  padding = per_axis("conv_transpose", "paddings", padding, n, 0);
  output_padding = per_axis("conv_transpose", "output paddings", output_padding, n, 0);
  dilation = per_axis("conv_transpose", "dilations", dilation, n, 1);
  const auto per_group = groups > 0 ? Dim::exact_div(w.dim(0), groups) : std::nullopt;
  if (!per_group) fail("rlx.conv_transpose: {} input channels do not divide into {} groups", w.dim(0).to_string(), groups);
  ConvOptions options{{}, {}, {}, {}, {}, {}, per_axis("conv_transpose", "strides", strides, n, 1), dilation, groups, 1};
  Axes spatial;
  for (std::size_t i = 0; i < n; ++i) {
    const Dim lo = (w.dim(static_cast<std::int64_t>(i) + 2) - 1) * dilation[i] - padding[i];
    options.padding_lo.push_back(lo.value());
    options.padding_hi.push_back((lo + output_padding[i]).value());
    spatial.values.push_back(static_cast<std::int64_t>(i) + 2);
  }
  // (C, O/g, k) -> (g, C/g, O/g, k) -> (g, O/g, C/g, k) -> (O, C/g, k)
  Dims split = w.shape(), merged = w.shape();
  split[0] = *per_group;
  split.insert(split.begin(), Dim(groups));
  merged[0] = w.dim(1) * groups;
  merged[1] = *per_group;
  Value kernel = reshape(move_axis(reshape(w, split), 1, 2), merged);
  return conv_general(x, n == 0 ? kernel : reverse(kernel, spatial), options);
}

}  // namespace rlx
