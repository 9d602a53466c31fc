// Rearrangements built from the structure primitives: nothing here moves data, and everything is differentiable and batched by them.
#include <algorithm>
#include <numeric>

#include "ops/wide.h"

namespace rlx {
namespace {

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

Dims with_size(Dims shape, std::int64_t axis, const Dim& size) {
  shape[at(axis)] = size;
  return shape;
}

// Parts joined along `axis`, null ones left out.
Value joined(Value before, Value x, Value after, std::int64_t axis) {
  Values parts;
  for (Value part : {before, x, after})
    if (part) parts.push_back(part);
  return concat(parts, axis);
}

void check_border(std::string_view mode, const Dim& size, const Dim& lo, const Dim& hi, const Dim& limit, std::int64_t axis) {
  for (const Dim& border : {lo, hi})
    if (!(limit - border).known_non_negative())
      fail("rlx.pad_mode: {} of {} on axis {} of size {} (allowed: <= {})", mode, border.to_string(), axis, size.to_string(),
           limit.to_string());
}

// `size` elements from the border element to `end`, which is the outermost one.
Value ramp(Value edge, std::int64_t axis, const Dim& size, bool before, double end) {
  if (!is_float(edge.dtype())) fail("rlx.pad_mode: linear_ramp of {} (allowed: floats)", edge.type().to_string());
  Value wide = widen(edge);
  Dims line(edge.shape().size(), 1);
  line[at(axis)] = size;
  Value part = (iota(wide, line, wide.dtype(), axis) + 1) / dim_value(wide, size, wide.dtype());
  Value result = wide * (1 - part) + part * end;
  return cast(before ? reverse(result, {axis}) : result, edge.dtype());
}

// The elements outside of x along one axis: `size` of them, before or after.
Value border(Value x, std::int64_t axis, const Dim& size, PadMode mode, bool before, double fill) {
  const Dim& n = x.dim(axis);
  if (size == Dim(0)) return {};
  if (mode == PadMode::edge || mode == PadMode::linear_ramp) {
    Value element = before ? slice_axis(x, axis, 0, 1) : slice_axis(x, axis, n - 1, n);
    if (mode == PadMode::linear_ramp) return ramp(element, axis, size, before, fill);
    std::vector<std::int64_t> axes(x.shape().size());
    std::iota(axes.begin(), axes.end(), 0);
    return broadcast(element, with_size(x.shape(), axis, size), axes);
  }
  if (mode == PadMode::wrap) return before ? slice_axis(x, axis, n - size, n) : slice_axis(x, axis, 0, size);
  const Dim skip = mode == PadMode::reflect ? 1 : 0;
  return reverse(before ? slice_axis(x, axis, skip, skip + size) : slice_axis(x, axis, n - skip - size, n - skip), {axis});
}

Value pad_axis(Value x, std::int64_t axis, const Dim& lo, const Dim& hi, PadMode mode, double fill) {
  const Dim& n = x.dim(axis);
  const std::string_view word = enum_words(mode)[static_cast<std::size_t>(mode)];
  if (mode == PadMode::edge || mode == PadMode::linear_ramp) check_border(word, n, 0, 0, n - 1, axis);
  else check_border(word, n, lo, hi, mode == PadMode::reflect ? n - 1 : n, axis);
  return joined(border(x, axis, lo, mode, true, fill), x, border(x, axis, hi, mode, false, fill), axis);
}

bool known_negative(const Dim& d) { return (Dim(-1) - d).known_non_negative(); }

// By the place of each element, where the size may be smaller than the shift.
Value rolled_by_places(Value x, std::int64_t axis, std::int64_t shift) {
  Value size = size_of(x, {axis}, i64), place = rem(iota(x, {x.dim(axis)}, i64, 0) - rem(scalar(x, shift, i64), size), size);
  return take(x, select(lt(place, scalar(x, 0, i64)), place + size, place), axis);
}

Value masked_triangle(std::string_view op, Value x, std::int64_t diagonal, bool upper) {
  if (x.rank() < 2) fail("rlx.{}: {} has fewer than 2 axes", op, x.type().to_string());
  const Dims shape{x.dim(-2), x.dim(-1)};
  Value row = iota(x, shape, i64, 0) + static_cast<double>(diagonal), column = iota(x, shape, i64, 1);
  return select(upper ? ge(column, row) : le(column, row), x, scalar(x, 0, x.dtype()));
}

}  // namespace

/// The elements shifted by `shifts[i]` towards higher indices along `axes[i]`, those pushed out coming in at the other end; the shape
/// stays. Throws Error unless there is one shift for each axis.
Value roll(Operand x, std::vector<std::int64_t> shifts, std::vector<std::int64_t> axes) {
  if (shifts.size() != axes.size()) fail("rlx.roll: {} shifts for {} axes", shifts.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = normalize_axis("roll", axes[i], x.type());
    const Dim n = x.dim(axis);
    if (n == Dim(0)) continue;
    const std::int64_t shift = n.is_static() ? (shifts[i] % n.value() + n.value()) % n.value() : shifts[i];
    if (shift == 0) continue;
    const Dim cut = shift > 0 ? n - shift : Dim(-shift);
    const bool within = cut.known_non_negative() && (n - cut).known_non_negative();
    x = within ? concat({slice_axis(x, axis, cut, n), slice_axis(x, axis, 0, cut)}, axis) : rolled_by_places(x, axis, shift);
  }
  return x;
}

/// The order of the elements along `axes` turned round; no axes: along all. The shape stays.
Value flip(Operand x, Axes axes /*= {}*/) {
  if (axes.size() == 0) {
    axes.values.resize(x.shape().size());
    std::iota(axes.values.begin(), axes.values.end(), 0);
  }
  return axes.size() == 0 ? x : reverse(x, axes);
}

/// Each element `count` times in a row along `axis` (numpy.repeat), whose size n becomes n * count. Throws Error when count < 0.
Value repeat(Operand x, std::int64_t count, std::int64_t axis) {
  axis = normalize_axis("repeat", axis, x.type());
  if (count < 0) fail("rlx.repeat: count {} (allowed: >= 0)", count);
  Dims wide = x.shape();
  wide.insert(wide.begin() + axis + 1, Dim(count));
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < x.rank(); ++i) axes.push_back(i > axis ? i + 1 : i);
  return reshape(broadcast(x, wide, axes), with_size(x.shape(), axis, x.dim(axis) * count));
}

/// The whole tensor `counts[i]` times along axis i (numpy.tile), whose size n becomes n * counts[i]; fewer counts than axes apply to the
/// last ones, more add axes. Throws Error for a count below 0.
Value tile(Operand x, std::vector<std::int64_t> counts) {
  while (counts.size() < x.shape().size()) counts.insert(counts.begin(), 1);
  x = with_rank(x, static_cast<int>(counts.size()));
  Dims wide, result;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) fail("rlx.tile: count {} (allowed: >= 0)", counts[i]);
    wide.insert(wide.end(), {Dim(counts[i]), x.shape()[i]});
    axes.push_back(static_cast<std::int64_t>(2 * i + 1));
    result.push_back(x.shape()[i] * counts[i]);
  }
  return reshape(broadcast(x, wide, axes), result);
}

/// A new axis of size 1 at each of `axes`, counted in the result: [3, 4] with axes {0, -1} gives [1, 3, 4, 1]. Throws Error when an axis
/// is named twice.
Value expand_dims(Operand x, Axes axes) {
  const Type result{x.dtype(), Dims(x.shape().size() + axes.size(), 1)};
  std::vector<bool> added(result.shape.size(), false);
  for (std::int64_t axis : axes) {
    const std::size_t i = at(normalize_axis("expand_dims", axis, result));
    if (added[i]) fail("rlx.expand_dims: axis {} is named twice", axis);
    added[i] = true;
  }
  Dims shape;
  auto next = x.shape().begin();
  for (bool is_new : added) shape.push_back(is_new ? Dim(1) : *next++);
  return reshape(x, shape);
}

/// The axes of size 1 among `axes` removed; no axes: all of size 1. Throws Error when a named axis has another size.
Value squeeze(Operand x, Axes axes /*= {}*/) {
  std::vector<bool> removed(x.shape().size(), false);
  for (std::int64_t axis : axes) {
    const std::size_t i = at(normalize_axis("squeeze", axis, x.type()));
    if (!(x.shape()[i] == Dim(1)))
      fail("rlx.squeeze: axis {} of {} has size {} (allowed: 1)", axis, x.type().to_string(), x.shape()[i].to_string());
    removed[i] = true;
  }
  Dims shape;
  for (std::size_t i = 0; i < removed.size(); ++i)
    if (axes.size() == 0 ? !(x.shape()[i] == Dim(1)) : !removed[i]) shape.push_back(x.shape()[i]);
  return reshape(x, shape);
}

/// Axes `first`..`last` joined into one: [2, 3, 4] with axes 0..1 gives [6, 4]. Throws Error when first comes after last.
Value flatten(Operand x, std::int64_t first /*= 0*/, std::int64_t last /*= -1*/) {
  if (x.rank() == 0) return reshape(x, {1});
  first = normalize_axis("flatten", first, x.type());
  last = normalize_axis("flatten", last, x.type());
  if (first > last) fail("rlx.flatten: axis {} comes after {}", first, last);
  Dims shape(x.shape().begin(), x.shape().begin() + first);
  shape.push_back(product({x.shape().begin() + first, x.shape().begin() + last + 1}));
  shape.insert(shape.end(), x.shape().begin() + last + 1, x.shape().end());
  return reshape(x, shape);
}

/// Two axes exchanged: [2, 3, 4] with axes 0 and 2 gives [4, 3, 2].
Value swap_axes(Operand x, std::int64_t a, std::int64_t b) {
  std::vector<std::int64_t> perm(x.shape().size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[at(normalize_axis("swap_axes", a, x.type()))], perm[at(normalize_axis("swap_axes", b, x.type()))]);
  return transpose(x, perm);
}

/// n values of one shape side by side along a new axis of size n, at position `axis` of the result; they are promoted to one type. Throws
/// Error when shapes differ.
Value stack(Operands parts, std::int64_t axis /*= 0*/) {
  if (parts.empty()) fail("rlx.stack: needs at least one operand");
  if (const int rank = parts[0].rank(); axis < -rank - 1 || axis > rank)
    fail("rlx.stack: axis {} is out of range for a result of {} axes (allowed: {}..{})", axis, rank + 1, -rank - 1, rank);
  for (Value& part : parts) part = expand_dims(part, {axis});
  return concat(parts, axis < 0 ? axis + parts[0].rank() : axis);
}

/// Consecutive parts of the given sizes along `axis`, whose other axes stay. Throws Error unless they add up to its size.
Values split(Operand x, Dims sizes, std::int64_t axis) {
  axis = normalize_axis("split", axis, x.type());
  Dim total = 0;
  for (const Dim& size : sizes) total += size;
  if (!(total == x.dim(axis)))
    fail("rlx.split: parts {} add up to {}, axis {} of {} has {}", to_string(sizes), total.to_string(), axis, x.type().to_string(),
         x.dim(axis).to_string());
  Values parts;
  Dim begin = 0;
  for (const Dim& size : sizes) {
    parts.push_back(slice_axis(x, axis, begin, begin + size));
    begin += size;
  }
  return parts;
}

/// `count` equal parts along `axis`, each of size n / count. Throws Error when they do not come out even.
Values split_evenly(Operand x, std::int64_t count, std::int64_t axis) {
  axis = normalize_axis("split_evenly", axis, x.type());
  auto size = count < 1 ? std::nullopt : Dim::exact_div(x.dim(axis), count);
  if (!size) fail("rlx.split_evenly: axis {} of {} does not divide into {} parts", axis, x.type().to_string(), count);
  return split(x, Dims(at(count), *size), axis);
}

/// `lo[i]` elements before and `hi[i]` after along axis i, made by `mode`; negative ones crop. `fill` is for PadMode::constant, and the
/// outermost element of linear_ramp (floats only). Throws Error when reflect needs more than size - 1 elements, symmetric or wrap more than
/// size, edge or linear_ramp an element of an empty axis.
Value pad_mode(Operand x, Dims lo, Dims hi, PadMode mode, double fill /*= 0*/) {
  if (mode == PadMode::constant) return pad(x, lo, hi, {}, fill);
  if (lo.size() != x.shape().size() || hi.size() != x.shape().size())
    fail("rlx.pad_mode: {} needs {} values each, given lo {}, hi {}", x.type().to_string(), x.rank(), lo.size(), hi.size());
  Dims crop_lo = lo, crop_hi = hi;
  for (Dims* crop : {&crop_lo, &crop_hi})
    for (Dim& d : *crop)
      if (!known_negative(d)) d = 0;
  x = pad(x, crop_lo, crop_hi);
  for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
    const Dim before = known_negative(lo[at(axis)]) ? Dim(0) : lo[at(axis)], after = known_negative(hi[at(axis)]) ? Dim(0) : hi[at(axis)];
    if (!(before == Dim(0) && after == Dim(0))) x = pad_axis(x, axis, before, after, mode, fill);
  }
  return x;
}

/// The upper triangle of the last two axes: elements with column - row >= diagonal, zeros elsewhere; the shape stays. Throws Error when x
/// has fewer than two axes.
Value triu(Operand x, std::int64_t diagonal /*= 0*/) { return masked_triangle("triu", x, diagonal, true); }
/// The lower triangle of the last two axes: elements with column - row <= diagonal, zeros elsewhere; the shape stays. Throws Error when x
/// has fewer than two axes.
Value tril(Operand x, std::int64_t diagonal /*= 0*/) { return masked_triangle("tril", x, diagonal, false); }

/// The elements whose indices on two axes agree, as a new last axis; the axes disappear. Symbolic sizes must be equal.
Value diagonal(Operand x, std::int64_t axis1 /*= 0*/, std::int64_t axis2 /*= 1*/) {
  axis1 = normalize_axis("diagonal", axis1, x.type());
  axis2 = normalize_axis("diagonal", axis2, x.type());
  if (axis1 == axis2) fail("rlx.diagonal: axis {} is named twice", axis1);
  x = move_axis(move_axis(x, std::max(axis1, axis2), -1), std::min(axis1, axis2), -2);
  if (!(x.dim(-1) == x.dim(-2))) {
    const Dim n = std::min(x.dim(-2).value(), x.dim(-1).value());
    x = slice_axis(slice_axis(x, -1, 0, n), -2, 0, n);
  }
  // Row-major, the diagonal has stride n + 1: padded by n, the n * n elements are n rows that begin with it.
  const Dim& n = x.dim(-1);
  const int rank = x.rank();
  Value flat = flatten(x, -2, -1);
  Dims lo(flat.shape().size(), 0), hi = lo, rows(x.shape().begin(), x.shape().end() - 1);
  hi.back() = n;
  rows.push_back(n + 1);
  return reshape(slice_axis(reshape(pad(flat, lo, hi), rows), rank - 1, 0, 1), Dims(x.shape().begin(), x.shape().end() - 1));
}

/// A matrix with the last axis of x on its diagonal, zeros elsewhere: [..., n] gives [..., n, n].
Value diag(Operand x) {
  if (x.rank() == 0) fail("rlx.diag: {} has no axis", x.type().to_string());
  const Dim& n = x.dim(-1);
  Value rows = expand_dims(x, {-1});
  Dims lo(rows.shape().size(), 0), hi = lo, shape = x.shape();
  hi.back() = n;
  Value flat = flatten(pad(rows, lo, hi), -2, -1);
  shape.push_back(n);
  return reshape(slice_axis(flat, -1, 0, n * n), shape);
}

}  // namespace rlx
