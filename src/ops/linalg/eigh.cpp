// Eigenvalues of Hermitian matrices.
#include "ops/linalg/matrix_values.h"
#include "ops/linalg/orthogonal_columns.h"

namespace rlx {
namespace {

struct Eigh {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "eigh";
  static constexpr std::string_view formula =
      "a V = V diag(w) of a symmetric or Hermitian a, w ascending, V unitary, by Jacobi rotations; only the lower triangle of a, and of "
      "its diagonal the real part, is read";
  static auto fields() { return Fields<>{}; }
  // What is read of a.
  static Value hermitian(Value a) {
    const Value below = tril(a, -1), diagonal = identity_of(a, a.shape()) * cast(real_part(a), a.dtype());
    return below + diagonal + adjoint(below);
  }
  // a plus 1.5 times a bound of its eigenvalues has singular values within a factor of 5, and their vectors are a's.
  static Values of_stacked(Value a) {
    const Dim& n = a.dim(1);
    const Value bound = reduce_max(sum(abs(a), {1}, true), {2}, true), one = like(bound, 1);
    const Value shift = select(gt(bound, like(bound, 0)), bound * 1.5, one), unit = identity_of(a, a.shape());
    const Value columns = with_orthogonal_columns(a + unit * cast(shift, a.dtype()), n);
    const Value v = columns / cast(sqrt(sum(squared_size(columns), {1}, true)), a.dtype());
    const Values found = refined(a, v, bound);
    const Value order = argsort(found[0]);
    return {take_along_axis(found[0], order, 1), take_along_axis(found[1], expand_dims(order, {1}), 2)};
  }
  // Ogita and Aishima 2018: what is left of rounding in v, but for vectors whose eigenvalues it cannot tell apart. Gives w, v.
  static Values refined(Value a, Value v, Value bound) {
    const auto total = [](Value x) { return sqrt(sum(squared_size(x), {1, 2}, true)); };
    const auto even = [](Value x) { return (x + adjoint(x)) * 0.5; };  // else roundings over small gaps would bend the vectors
    const Value unit = identity_of(a, a.shape()), r = even(unit - matmul(adjoint(v), v)), s = even(matmul(adjoint(v), matmul(a, v)));
    const auto on_diagonal = [](Value x) { return expand_dims(diagonal(real_part(x), 1, 2), {1}); };
    const Value w = on_diagonal(s) / (1.0 - on_diagonal(r)), gap = w - swap_axes(w, 1, 2), wide_w = cast(w, a.dtype());
    const Value apart = gt(abs(gap), (total(s - unit * wide_w) + bound * total(r)) * 2.0);
    const Value divisor = cast(select(apart, gap, like(gap, 1)), a.dtype());
    return {squeeze(w, {1}), v + matmul(v, select(apart, (s + wide_w * r) / divisor, r * 0.5))};
  }
  static Values body(const Eigh&, Value a) {
    check_matrices(name, a);
    const Dims lead = lead_of(a);
    const Dim& n = a.dim(-1);
    if (!(a.dim(-2) == n)) fail("rlx.eigh: {} (allowed: square matrices)", a.type().to_string());
    if (n == Dim(0)) return {full(a, appended(lead, {n}), 0, real_type(a.dtype())), a};
    const Value all = hermitian(a), scale = scale_of(all);
    const Values found = of_stacked(stacked(all / cast(scale, a.dtype())));
    return {reshape(found[0], appended(lead, {n})) * squeeze(scale, {-1}), reshape(found[1], a.shape())};
  }
  static Values batch(const Eigh& op, std::span<const Value> x, const std::vector<bool>&, const Dim&) { return batch_of_matrices(op, x); }
  // With D = V^H da V: dw = its diagonal, dV = V (D / (w_j - w_i)); vectors of equal eigenvalues do not turn into each other.
  static Values jvp(const Eigh&, std::span<const Value>, std::span<const Value> y, std::span<const Value> dx) {
    const Value w = y[0], v = y[1], d = matmul(adjoint(v), matmul(hermitian(dx[0]), v));
    const Value gap = expand_dims(w, {-2}) - expand_dims(w, {-1}), same = eq(gap, like(gap, 0));
    const Value inverse = select(same, like(gap, 0), 1.0 / select(same, like(gap, 1), gap));
    return {diagonal(real_part(d), -2, -1), matmul(v, cast(inverse, d.dtype()) * d)};
  }
  static std::vector<Sample> samples() {
    return {
        {{{{f32, {4, 4}}}}, {}, 2e-5}, {{{{f64, {2, 3, 3}}}}, {}, 1e-10}, {{{{c64, {3, 3}}}}, {}, 2e-5}, {{{{f64, {1, 1}}}}, {}, 1e-10}};
  }
};
const Op<Eigh> eigh_op;

}  // namespace

/// The eigenvalues w (..., N), real and ascending, and eigenvectors V (..., N, N), its columns, of the matrices a (..., N, N), symmetric or
/// Hermitian: a V = V diag(w). Only the lower triangle of a is read. The derivative of V is that of the vectors with no part along
/// themselves, and vectors of equal eigenvalues count as apart. N is static. Throws Error for other shapes and for types other than f32,
/// f64 and complex.
Values eigh(Operand a) {
  const Value operands[] = {a};
  return eigh_op.all({}, operands);
}

}  // namespace rlx
