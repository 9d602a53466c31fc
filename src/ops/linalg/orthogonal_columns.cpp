// The one-sided Jacobi method (Hestenes 1958): rotations of two columns make them orthogonal, and sweeps over all pairs of columns are
// repeated until no rotation is left. Half of the columns lie in `left`, each beside its partner in `right`, so that a step rotates all
// of them at once; between steps they move on like the players of a tournament (Brent and Luk 1985).
#include "ops/linalg/orthogonal_columns.h"

#include <cmath>

#include "ops/linalg/matrix_values.h"

namespace rlx {
namespace {

constexpr std::int64_t most_sweeps = 30;  // far more than are seen: 5 to 12

struct Halves {
  Value left, right;  // (count, all rows, n / 2)
};

struct Rotation {
  Value sine, less, any;  // left' = left - conj(sine) right - less left, right' = right + sine left - less right
};

/// Of columns that are orthogonal up to rounding nothing is changed: a matrix that is done stays, whatever else lies in the batch.
Rotation rotation_of(const Halves& x, const Dim& rows) {
  const Value left = slice_axis(x.left, 1, 0, rows), right = slice_axis(x.right, 1, 0, rows);
  const auto along = [](Value v) { return sum(v, {1}, true); };
  const Value a = along(squared_size(left)), b = along(squared_size(right)), product = along(conj(left) * right), size = abs(product);
  const double tolerance = rounding(left.dtype()) * std::sqrt(rows.is_static() ? static_cast<double>(rows.value()) : 1.0);
  const Value turn = gt(size, sqrt(a) * sqrt(b) * tolerance), one = like(size, 1);
  const Value divisor = select(turn, size, one), cotangent = (b - a) / (divisor * 2.0);  // of twice the angle
  const Value root = 1.0 / (abs(cotangent) + sqrt(cotangent * cotangent + 1.0));
  const Value tangent = select(turn, select(ge(cotangent, like(size, 0)), root, -root), like(size, 0));
  const Value cosine = 1.0 / sqrt(tangent * tangent + 1.0);
  const Value phase = product / cast(divisor, product.dtype());
  const Value sine = cosine * tangent, less = sine * sine / (cosine + 1.0);  // 1 - cosine without its rounding, which would add up
  return {cast(sine, product.dtype()) * phase, cast(less, product.dtype()), reduce_or(turn, {0, 1, 2})};
}

/// The first column of `left` stays, all others move by one place round the ring of both halves.
Halves moved_on(const Halves& x) {
  const Dim half = x.left.dim(2);
  if (half == Dim(1)) return x;
  const auto part = [](Value v, std::int64_t begin, const Dim& end) { return slice_axis(v, 2, begin, end); };
  return {concat({part(x.left, 0, 1), part(x.right, 0, 1), part(x.left, 1, half - 1)}, 2),
          concat({part(x.right, 1, half), part(x.left, half.value() - 1, half)}, 2)};
}

Values rotated(const Values& carry, const Dim& rows) {
  const Halves x{carry[0], carry[1]};
  const Rotation r = rotation_of(x, rows);
  const Halves next = moved_on({x.left - (conj(r.sine) * x.right + r.less * x.left), x.right + (r.sine * x.left - r.less * x.right)});
  return {next.left, next.right, logical_or(carry[2], r.any)};
}

}  // namespace

Value with_orthogonal_columns(Value x, const Dim& rows) {
  const std::int64_t n = x.dim(2).value(), half = (n + 1) / 2;
  const Value even = pad(x, {0, 0, 0}, {0, 0, 2 * half - n});  // a column of zeros is orthogonal to all
  const auto sweep = [&](const Values& carry) {
    const Values start{carry[0], carry[1], scalar(carry[0], 0, boolean)};
    Values next = fori_loop(2 * half - 1, [&](Value, const Values& halves) { return rotated(halves, rows); }, start);
    next.push_back(carry[3] + 1.0);
    return next;
  };
  const auto go_on = [](const Values& carry) {
    return logical_and(carry[2], lt(carry[3], like(carry[3], static_cast<double>(most_sweeps))));
  };
  const Values halves = while_loop(
      go_on, sweep, {slice_axis(even, 2, 0, half), slice_axis(even, 2, half, 2 * half), scalar(x, 1, boolean), scalar(x, 0, i32)});
  return slice_axis(concat({halves[0], halves[1]}, 2), 2, 0, n);
}

}  // namespace rlx
