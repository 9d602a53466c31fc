// Places found by value: positions in a sorted table, interpolation in a table, positions of the elements that are not 0.
#include "ops/wide.h"

namespace rlx {
namespace {

struct SearchSorted {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "searchsorted";
  static constexpr std::string_view formula =
      "how many elements of the sorted vector (operand 0) are < x (operand 1), or <= x with `right`";
  bool right = false;
  static auto fields() { return Fields<&SearchSorted::right>{}; }
  static Value body(const SearchSorted& op, Value table, Value x) {
    if (table.rank() != 1) fail("rlx.searchsorted: the table is {} (allowed: one axis)", table.type().to_string());
    if (table.dtype() != x.dtype())
      fail("rlx.searchsorted: the table is {}, x is {} (allowed: one dtype)", table.type().to_string(), x.type().to_string());
    Value wanted = expand_dims(x, {-1}), before = op.right ? le(table, wanted) : lt(table, wanted);
    if (is_float(x.dtype())) before = logical_or(before, ne(wanted, wanted));  // NaN belongs at the end
    return sum(cast(before, i32), {-1});
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (bool right : {false, true}) {
      for (DType t : {f32, f64, bf16, i32}) all.push_back({{{{t, {1}}, 0, 1}, {{t, {2, 3}}}}, attrs_of(SearchSorted{right}), 0, false});
      all.push_back({{{{i32, {4}}, 5, 5}, {{i32, {3}}, 4, 6}}, attrs_of(SearchSorted{right}), 0, false});
    }
    return all;
  }
};
const Op<SearchSorted> searchsorted_op;

struct Interp {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "interp";
  static constexpr std::string_view formula =
      "at x the straight line between the points (xp, fp), operands x, xp (increasing), fp; outside the value of the nearest end";
  static auto fields() { return Fields<>{}; }
  static Value body(const Interp&, Value x, Value xp, Value fp) {
    if (!is_float(x.dtype()) || xp.dtype() != x.dtype() || fp.dtype() != x.dtype())
      fail("rlx.interp: x is {}, xp is {}, fp is {} (allowed: floats of one dtype)", x.type().to_string(), xp.type().to_string(),
           fp.type().to_string());
    if (xp.rank() != 1 || !(xp.shape() == fp.shape()) || !(xp.dim(0) - 1).known_non_negative())
      fail("rlx.interp: xp is {}, fp is {} (allowed: one axis of the same size >= 1)", xp.type().to_string(), fp.type().to_string());
    const DType dtype = x.dtype();
    x = widen(x), xp = widen(xp), fp = widen(fp);
    const Dim& n = xp.dim(0);
    x = clamp(x, reshape(slice_axis(xp, 0, 0, 1), {}), reshape(slice_axis(xp, 0, n - 1, n), {}));
    Value one = scalar(x, 1, i32), last = dim_value(x, n, i32) - 1;
    Value right = min(max(searchsorted(xp, x, true), one), last), left = max(right - 1, scalar(x, 0, i32));
    Value x0 = take(xp, left), f0 = take(fp, left), distance = take(xp, right) - x0, empty = eq(distance, like(distance, 0));
    Value slope = (take(fp, right) - f0) / select(empty, like(distance, 1), distance);
    return cast(f0 + (x - x0) * slope, dtype);
  }
  // A table of one point, since random numbers are not in order; the tests of the op have longer ones.
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {f32, f64, bf16}) all.push_back({{{{t, {2, 3}}, 1, 2}, {{t, {1}}, 0, 0.5}, {{t, {1}}}}, {}, 4e-6});
    return all;
  }
};
const Op<Interp> interp_op;

struct Nonzero {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "nonzero";
  static constexpr std::string_view formula =
      "for each axis the positions of the first `size` elements that are not 0, in row-major order, then `fill`";
  std::int64_t size = 1, fill = 0;
  static auto fields() { return Fields<&Nonzero::size, &Nonzero::fill>{}; }
  static Values body(const Nonzero& op, Value x) {
    if (x.rank() == 0) fail("rlx.nonzero: {} has no axis", x.type().to_string());
    if (op.size < 0) fail("rlx.nonzero: size {} (allowed: >= 0)", op.size);
    Dim count = 1;
    for (const Dim& d : x.shape()) count *= d;
    Value found = reshape(ne(x, like(x, 0)), {count});
    // Each hit is written at its rank among the hits; a place that is no hit, or one hit too many, goes outside and is dropped.
    Value outside = scalar(x, static_cast<double>(op.size), i32), rank = cumsum(cast(found, i32), 0) - 1;
    Value target = expand_dims(select(found, rank, outside), {-1});
    Value empty = full(x, {op.size}, static_cast<double>(op.fill), i32);
    if (op.size == 0) return Values(x.shape().size(), empty);
    Values places;
    for (int axis = 0; axis < x.rank(); ++axis) {
      Value position = reshape(iota(x, x.shape(), i32, axis), {count});
      places.push_back(scatter(empty, target, position, {{}, {0}, {0}}, ScatterKind::set, IndexMode::fill));
    }
    return places;
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {i32, u8, boolean, f32}) all.push_back({{{{t, {3, 4}}, 0, 1}}, attrs_of(Nonzero{6, -1}), 0, false});
    all.push_back({{{{i32, {5}}, 0, 1}}, attrs_of(Nonzero{8, 0}), 0, false});
    return all;
  }
};
const Op<Nonzero> nonzero_op;

}  // namespace

/// Where each x belongs in a sorted vector: the number (i32, in the shape of x) of elements below x, or not above x with `right`; NaN
/// belongs at the end. It compares with every element. Throws Error when the table has not one axis.
Value searchsorted(Operand table, Operand x, bool right /*= false*/) {
  const DType dtype = promote(table.dtype(), x.dtype());
  return searchsorted_op({right}, cast(table, dtype), cast(x, dtype));
}

/// numpy.interp: the values at x, of any shape, of the piecewise linear function through the points (xp[i], fp[i]), xp increasing; outside
/// of them fp[0] and fp[n-1]. Differentiable in x, xp and fp. Throws Error unless xp and fp are vectors of one size, and all are floats.
Value interp(Operand x, Operand xp, Operand fp) {
  const DType dtype = promote(x.dtype(), promote(xp.dtype(), fp.dtype()));
  return interp_op({}, cast(x, dtype), cast(xp, dtype), cast(fp, dtype));
}

/// The positions of the elements that are not 0 (NaN is not), in row-major order, one vector i32[size] for each axis of x. A graph needs a
/// fixed `size`: further elements are left out, missing ones are `fill`. Throws Error when x has no axis or size < 0.
Values nonzero(Operand x, std::int64_t size, std::int64_t fill /*= 0*/) {
  const Value operands[] = {x};
  return nonzero_op.all({size, fill}, operands);
}

}  // namespace rlx
