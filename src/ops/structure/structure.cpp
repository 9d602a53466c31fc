// Structure primitives: pure index maps. Fusion rewrites indices through them; nothing here moves data.
#include <algorithm>
#include <functional>
#include <numeric>

#include "ops/structure/reshaped_index.h"
#include "ops/structure/structure.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using At = std::vector<Index>;

Sample sample(Dims shape, Attrs attrs, DType dtype = f32) { return {{{{dtype, std::move(shape)}}}, std::move(attrs)}; }

struct Reshape {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "reshape";
  static constexpr std::string_view formula = "the same elements in row-major order under another shape";
  Sizes shape;
  static auto fields() { return Fields<&Reshape::shape>{}; }
  static Type infer(const Reshape& op, const Type& x) {
    if (!(product(op.shape.values) == x.size()))
      fail("rlx.reshape: {} has {} elements, {} has {}", x.to_string(), x.size().to_string(), rlx::to_string(op.shape.values),
           product(op.shape.values).to_string());
    return {x.dtype, op.shape.values};
  }
  static std::vector<Source> sources(const Reshape&, std::span<const Type> x, const Type& result, const At& at) {
    return one_source(reshaped_index(at, result.shape, x[0].shape));
  }
  static Values transpose(const Reshape&, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    return {reshape(dy[0], x[0].shape())};
  }
  static std::vector<Sample> samples() {
    return {sample({4, 6}, attrs_of(Reshape{.shape = Dims{2, 2, 6}})), sample({2, 3, 4}, attrs_of(Reshape{.shape = Dims{24}}), i32),
            sample({}, attrs_of(Reshape{.shape = Dims{1, 1}})), sample({6, 4}, attrs_of(Reshape{.shape = Dims{3, 8}}), bf16)};
  }
};
const Op<Reshape> reshape_op;

struct Transpose {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "transpose";
  static constexpr std::string_view formula = "axis i of the result is axis perm[i] of x";
  Perm perm;
  static auto fields() { return Fields<&Transpose::perm>{}; }
  static Type infer(const Transpose& op, const Type& x) {
    std::vector<std::int64_t> sorted(op.perm.begin(), op.perm.end()), all(x.shape.size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all)
      fail("rlx.transpose: {} is not a permutation of the axes of {}", rlx::to_string(Attr(op.perm.values)), x.to_string());
    Type result{x.dtype, {}};
    for (std::int64_t axis : op.perm) result.shape.push_back(x.dim(axis));
    return result;
  }
  static std::vector<Source> sources(const Transpose& op, std::span<const Type>, const Type&, const At& at) {
    At from(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) from[static_cast<std::size_t>(op.perm[i])] = at[i];
    return one_source(std::move(from));
  }
  static Values transpose(const Transpose& op, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    std::vector<std::int64_t> inverse(op.perm.size());
    for (std::size_t i = 0; i < inverse.size(); ++i) inverse[static_cast<std::size_t>(op.perm[i])] = static_cast<std::int64_t>(i);
    return {rlx::transpose(dy[0], inverse)};
  }
  static std::vector<Sample> samples() {
    return {sample({3, 4}, attrs_of(Transpose{.perm = {1, 0}})), sample({2, 3, 4}, attrs_of(Transpose{.perm = {2, 0, 1}}), i8)};
  }
};
const Op<Transpose> transpose_op;

struct Broadcast {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "broadcast";
  static constexpr std::string_view formula = "x repeated: axis i of x becomes axis axes[i] of the result, sizes of 1 stretch";
  Sizes shape;
  Perm axes;
  static auto fields() { return Fields<&Broadcast::shape, &Broadcast::axes>{}; }
  static Type infer(const Broadcast& op, const Type& x) {
    const auto rank = static_cast<std::int64_t>(op.shape.size());
    if (op.axes.size() != x.shape.size()) fail("rlx.broadcast: {} axes for {}", op.axes.size(), x.to_string());
    for (std::size_t i = 0; i < op.axes.size(); ++i) {
      const std::int64_t axis = op.axes[i];
      if (axis < 0 || axis >= rank || (i > 0 && axis <= op.axes[i - 1]))
        fail("rlx.broadcast: axes {} must increase within 0..{}", rlx::to_string(Attr(op.axes.values)), rank - 1);
      const Dim &from = x.shape[i], &to = op.shape[static_cast<std::size_t>(axis)];
      if (!(from == to) && !(from == Dim(1))) fail("rlx.broadcast: axis {} of {} cannot stretch to {}", i, x.to_string(), to.to_string());
    }
    return {x.dtype, op.shape.values};
  }
  static std::vector<Source> sources(const Broadcast& op, std::span<const Type> x, const Type&, const At& at) {
    At from(x[0].shape.size());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = x[0].shape[i] == Dim(1) ? Index(0) : at[static_cast<std::size_t>(op.axes[i])];
    return one_source(std::move(from));
  }
  static Values transpose(const Broadcast& op, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    Axes summed;
    for (std::int64_t axis = 0; axis < dy[0].rank(); ++axis) {
      auto it = std::find(op.axes.begin(), op.axes.end(), axis);
      const bool stretched = it != op.axes.end() && !(x[0].shape()[static_cast<std::size_t>(it - op.axes.begin())] == dy[0].dim(axis));
      if (it == op.axes.end() || stretched) summed.values.push_back(axis);
    }
    return {reshape(sum(dy[0], summed), x[0].shape())};
  }
  static std::vector<Sample> samples() {
    return {sample({4}, attrs_of(Broadcast{Dims{3, 4}, {1}})), sample({3, 1}, attrs_of(Broadcast{Dims{2, 3, 5}, {1, 2}})),
            sample({}, attrs_of(Broadcast{Dims{2, 2}, {}}), i32)};
  }
};
const Op<Broadcast> broadcast_op;

struct Slice {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "slice";
  static constexpr std::string_view formula = "elements start, start + stride, ... below limit along each axis";
  PerDim<Neutral::zero> start;
  PerDim<Neutral::size> limit;
  PerDim<Neutral::one> stride;
  static auto fields() { return Fields<&Slice::start, &Slice::limit, &Slice::stride>{}; }
  static Type infer(const Slice& op, const Type& x) {
    const std::size_t rank = x.shape.size();
    if (op.start.size() != rank || op.limit.size() != rank || op.stride.size() != rank)
      fail("rlx.slice: {} needs {} starts, limits and strides, given {}, {}, {}", x.to_string(), rank, op.start.size(), op.limit.size(),
           op.stride.size());
    Type result{x.dtype, {}};
    for (std::size_t i = 0; i < rank; ++i) {
      const Dim &start = op.start[i], &limit = op.limit[i], length = limit - start;
      if (!start.known_non_negative() || !length.known_non_negative() || !(x.shape[i] - limit).known_non_negative())
        fail("rlx.slice: axis {} of {}: {}..{} is out of range (allowed: 0 <= start <= limit <= {})", i, x.to_string(), start.to_string(),
             limit.to_string(), x.shape[i].to_string());
      const std::int64_t stride = op.stride[i].value();
      if (stride < 1) fail("rlx.slice: axis {}: stride {} (allowed: >= 1)", i, stride);
      if (stride > 1 && !length.is_static()) fail("rlx.slice: axis {}: stride {} on a symbolic length {}", i, stride, length.to_string());
      result.shape.push_back(stride == 1 ? length : Dim(length.value() == 0 ? 0 : (length.value() - 1) / stride + 1));
    }
    return result;
  }
  static std::vector<Source> sources(const Slice& op, std::span<const Type>, const Type&, const At& at) {
    At from;
    for (std::size_t i = 0; i < at.size(); ++i) from.push_back(at[i] * op.stride[i] + op.start[i]);
    return one_source(std::move(from));
  }
  static Values transpose(const Slice& op, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    Dims lo, hi;
    std::vector<std::int64_t> interior;
    for (std::size_t i = 0; i < op.start.size(); ++i) {
      const std::int64_t stride = op.stride[i].value();
      const Dim length = dy[0].shape()[i], spread = length == Dim(0) ? Dim(0) : (length - 1) * op.stride[i] + 1;
      lo.push_back(op.start[i]);
      interior.push_back(stride - 1);
      hi.push_back(x[0].shape()[i] - op.start[i] - spread);
    }
    return {pad(dy[0], lo, hi, interior, 0)};
  }
  static std::vector<Sample> samples() {
    return {sample({5, 6}, attrs_of(Slice{Dims{1, 2}, Dims{4, 6}, Dims{1, 1}})),
            sample({7}, attrs_of(Slice{Dims{1}, Dims{7}, Dims{3}}), i16),
            sample({4, 3}, attrs_of(Slice{Dims{2, 0}, Dims{2, 3}, Dims{1, 2}}))};
  }
};
const Op<Slice> slice_op;

struct Pad {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "pad";
  static constexpr std::string_view formula =
      "`interior` fill values between elements, then `lo` before and `hi` after; negative lo and hi crop";
  PerDim<Neutral::zero> lo, hi, interior;
  double fill = 0;
  static auto fields() { return Fields<&Pad::lo, &Pad::hi, &Pad::interior, &Pad::fill>{}; }
  static Type infer(const Pad& op, const Type& x) {
    const std::size_t rank = x.shape.size();
    if (op.lo.size() != rank || op.hi.size() != rank || op.interior.size() != rank)
      fail("rlx.pad: {} needs {} values each, given lo {}, hi {}, interior {}", x.to_string(), rank, op.lo.size(), op.hi.size(),
           op.interior.size());
    Type result{x.dtype, {}};
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t interior = op.interior[i].value();
      if (interior < 0) fail("rlx.pad: axis {}: interior {} (allowed: >= 0)", i, interior);
      const Dim& n = x.shape[i];
      const Dim spread = n == Dim(0) ? Dim(0) : n + (n - 1) * interior;
      const Dim size = op.lo[i] + spread + op.hi[i];
      if (!size.known_non_negative()) fail("rlx.pad: axis {} of {} would get the negative size {}", i, x.to_string(), size.to_string());
      result.shape.push_back(size);
    }
    return result;
  }
  static std::vector<Source> sources(const Pad& op, std::span<const Type> x, const Type&, const At& at) {
    Source inside{{}, 0, {}, 0};
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Dim step = spacing(op, x[0], i);
      const Index shifted = at[i] - op.lo[i];
      const Index from = Index::quotient(shifted, step);
      if (!shifted.known_non_negative()) inside.guards.push_back(at_least_zero(shifted));
      if (!(step == Dim(1))) inside.guards.push_back({Guard::Kind::zero, Index::remainder(shifted, step)});
      const Index room = Index((x[0].shape[i] - 1) * step) - shifted;
      if (!room.known_non_negative()) inside.guards.push_back(at_least_zero(room));
      inside.index.push_back(from);
    }
    if (inside.guards.empty()) return {inside};
    return {inside, {{}, Source::fill_value, {}, op.fill}};
  }
  /// How far neighbours along an axis come to stand from each other: any distance where there is no second one.
  static Dim spacing(const Pad& op, const Type& x, std::size_t axis) {
    const Dim& n = x.shape[axis];
    return n.is_static() && n.value() < 2 ? Dim(1) : op.interior[axis] + 1;
  }
  static Values jvp(const Pad& op, std::span<const Value>, std::span<const Value>, std::span<const Value> dx) {
    return {pad(dx[0], op.lo.values, op.hi.values, interior_of(op), 0)};
  }
  static Values transpose(const Pad& op, std::span<const Value> x, const std::vector<bool>&, std::span<const Value> dy) {
    Dims lo, hi, start, stride;
    for (std::size_t i = 0; i < op.lo.size(); ++i) {
      lo.push_back(-op.lo[i]);
      hi.push_back(-op.hi[i]);
      start.push_back(0);
      stride.push_back(spacing(op, x[0].type(), i));
    }
    Value inner = pad(dy[0], lo, hi, std::vector<std::int64_t>(lo.size(), 0), 0);

    return {slice(inner, start, inner.shape(), stride)};
  }
  static std::vector<std::int64_t> interior_of(const Pad& op) {
    std::vector<std::int64_t> interior;
    for (const Dim& d : op.interior) interior.push_back(d.value());
    return interior;
  }
  static std::vector<Sample> samples() {
    return {sample({3, 4}, attrs_of(Pad{Dims{1, 0}, Dims{2, 1}, Dims{0, 0}, 1.5})),
            sample({5}, attrs_of(Pad{Dims{-1}, Dims{2}, Dims{2}, 0})),
            sample({3, 4}, attrs_of(Pad{Dims{1, -1}, Dims{-1, -2}, Dims{1, 0}, 0}), i32)};
  }
};
const Op<Pad> pad_op;

struct Concat {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "concat";
  static constexpr std::string_view formula = "the operands one after another along `axis`";
  Axis axis;
  static auto fields() { return Fields<&Concat::axis>{}; }
  static Type infer(const Concat& op, std::span<const Type> operands) {
    Type result = operands[0];
    for (std::size_t k = 1; k < operands.size(); ++k) {
      const Type& t = operands[k];
      bool fits = t.dtype == result.dtype && t.rank() == result.rank();
      for (int i = 0; fits && i < t.rank(); ++i) fits = i == op.axis || t.dim(i) == result.dim(i);
      if (!fits)
        fail("rlx.concat: operand {} is {}, operand 0 is {}: all but axis {} must agree", k, t.to_string(), operands[0].to_string(),
             op.axis.value);
      result.shape[static_cast<std::size_t>(op.axis)] += t.dim(op.axis);
    }
    return result;
  }
  static std::vector<Source> sources(const Concat& op, std::span<const Type> operands, const Type&, const At& at) {
    std::vector<Source> all;
    Dim begin = 0;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const Dim end = begin + operands[k].dim(op.axis);
      Source source{{}, static_cast<int>(k), at, 0};
      Index& along = source.index[static_cast<std::size_t>(op.axis)];
      if (k + 1 < operands.size()) source.guards.push_back(at_least_zero(Index(end - 1) - along));
      along = along - Index(begin);
      all.push_back(std::move(source));
      begin = end;
    }
    return all;
  }
  static Values jvp(const Concat& op, std::span<const Value> x, std::span<const Value>, std::span<const Value> dx) {
    Values parts;
    for (std::size_t k = 0; k < x.size(); ++k) parts.push_back(dx[k] ? dx[k] : zeros_like(x[k]));
    return {concat(parts, op.axis)};
  }
  static Values transpose(const Concat& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    Values parts;
    Dim begin = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const Dim end = begin + x[k].dim(op.axis);
      parts.push_back(linear[k] ? slice_axis(dy[0], op.axis, begin, end) : Value());
      begin = end;
    }
    return parts;
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 3}}}, {{f32, {4, 3}}}}, attrs_of(Concat{0})},
            {{{{i32, {2, 3}}}, {{i32, {2, 1}}}, {{i32, {2, 2}}}}, attrs_of(Concat{1})}};
  }
};
const Op<Concat> concat_op;

struct Reverse {
  static constexpr OpKind kind = OpKind::structure;
  static constexpr std::string_view name = "reverse";
  static constexpr std::string_view formula = "the order of the elements along `axes` turned round";
  Axes axes;
  static auto fields() { return Fields<&Reverse::axes>{}; }
  static Type infer(const Reverse&, const Type& x) { return x; }
  static std::vector<Source> sources(const Reverse& op, std::span<const Type> x, const Type&, const At& at) {
    At from = at;
    for (std::int64_t axis : op.axes) from[static_cast<std::size_t>(axis)] = Index(x[0].dim(axis) - 1) - at[static_cast<std::size_t>(axis)];
    return one_source(std::move(from));
  }
  static Values transpose(const Reverse& op, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    return {reverse(dy[0], op.axes)};
  }
  static std::vector<Sample> samples() { return {sample({3, 4}, attrs_of(Reverse{{1}})), sample({2, 3}, attrs_of(Reverse{{0, 1}}), u8)}; }
};
const Op<Reverse> reverse_op;

}  // namespace

/// The same elements in row-major order under another shape of the same element count (else Error); one size may be -1 and is then
/// inferred.
Value reshape(Operand x, Dims shape) {
  Dim known = 1;
  std::size_t inferred = shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!(shape[i] == Dim(-1))) known *= shape[i];
    else if (inferred == shape.size()) inferred = i;
    else fail("rlx.reshape: {} has more than one -1", to_string(shape));
  }
  if (inferred < shape.size()) {
    auto size = Dim::exact_div(x.type().size(), known);
    if (!size)
      fail("rlx.reshape: {} elements of {} do not divide into {}", x.type().size().to_string(), x.type().to_string(), to_string(shape));
    shape[inferred] = *size;
  }
  return x.shape() == shape ? x : reshape_op({shape}, x);
}

/// Axis i of the result is axis perm[i] of x: [2, 3, 4] with perm {2, 0, 1} gives [4, 2, 3]. Throws Error unless perm names every axis
/// once.
Value transpose(Operand x, std::vector<std::int64_t> perm) {
  for (auto& axis : perm) axis = normalize_axis("transpose", axis, x.type());
  const bool increases = std::adjacent_find(perm.begin(), perm.end(), std::greater_equal()) == perm.end();
  return increases && static_cast<int>(perm.size()) == x.rank() ? x : transpose_op({perm}, x);
}

/// Axis i of x becomes axis axes[i] of a result of the given shape; sizes of 1 and new axes are repeated. Throws Error unless axes
/// increase and the other sizes are equal. broadcast_to finds the axes by itself.
Value broadcast(Operand x, Dims shape, std::vector<std::int64_t> axes) { return broadcast_op({shape, axes}, x); }

/// Elements start, start + stride, ... below limit along each axis, so that its size becomes ceil((limit - start) / stride). The lists
/// have one number for each axis. Throws Error unless 0 <= start <= limit <= size and stride >= 1; a stride above 1 needs a static length.
Value slice(Operand x, Dims start, Dims limit, Dims stride) {
  const std::size_t rank = x.shape().size();
  const bool whole = limit == x.shape() && start == Dims(rank, 0) && stride == Dims(rank, 1);
  return whole ? x : slice_op({start, limit, stride}, x);
}

/// Elements begin, begin + stride, ... below end along one axis, the others whole; negative numbers count from the end, as in Python.
/// Throws Error for a range outside.
Value slice_axis(Operand x, std::int64_t axis, Dim begin, Dim end, std::int64_t stride /*= 1*/) {
  axis = normalize_axis("slice_axis", axis, x.type());
  const Dim& size = x.dim(axis);
  if (begin.is_static() && begin.value() < 0) begin = size + begin;
  if (end.is_static() && end.value() < 0) end = size + end;
  Dims start(x.shape().size(), 0), limit = x.shape(), strides(x.shape().size(), 1);
  start[static_cast<std::size_t>(axis)] = begin;
  limit[static_cast<std::size_t>(axis)] = end;
  strides[static_cast<std::size_t>(axis)] = stride;
  return slice(x, start, limit, strides);
}

/// `interior` copies of `fill` between neighbours, then `lo` before and `hi` after along each axis; negative lo and hi crop. A size n
/// becomes lo + n + (n - 1) interior + hi; Error when that is negative. The lists have one number for each axis; no interior: none.
Value pad(Operand x, Dims lo, Dims hi, std::vector<std::int64_t> interior /*= {}*/, double fill /*= 0*/) {
  if (interior.empty()) interior.assign(x.shape().size(), 0);
  const Dims none(x.shape().size(), 0);
  if (lo == none && hi == none && Dims(interior.begin(), interior.end()) == none) return x;
  return pad_op({lo, hi, Dims(interior.begin(), interior.end()), fill}, x);
}

/// The operands one after another along `axis`, promoted to one type; the size of the axis is their sum. Throws Error when ranks or other
/// sizes differ, or without operands.
Value concat(Operands parts, std::int64_t axis) {
  if (parts.empty()) fail("rlx.concat: needs at least one operand");
  DType dtype = parts[0].dtype();
  for (const Value& part : parts) dtype = promote(dtype, part.dtype());
  for (Value& part : parts) part = cast(part, dtype);
  return parts.size() == 1 ? parts[0] : concat_op.of({axis}, parts);
}

/// The order of the elements along `axes` turned round; the shape stays.
Value reverse(Operand x, Axes axes) { return reverse_op({axes}, x); }

}  // namespace rlx
