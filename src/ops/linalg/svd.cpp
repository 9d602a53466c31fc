// Singular values, and the inverse that they give of any matrix.
#include <algorithm>

#include "ops/linalg/matrix_values.h"
#include "ops/linalg/orthogonal_columns.h"

namespace rlx {
namespace {

Value over(Value x) {
  const Value zero = eq(x, like(x, 0));
  return select(zero, like(x, 0), 1.0 / select(zero, like(x, 1), x));
}

struct Svd {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "svd";
  static constexpr std::string_view formula =
      "U diag(s) V^H = a, U and V with orthonormal columns, s descending, by Jacobi rotations; U and V have min(m, n) columns, or all m "
      "and n";
  bool full_matrices = false;
  static auto fields() { return Fields<&Svd::full_matrices>{}; }
  // Of matrices (count, m, n) with m >= n >= 1: U, s (count, n), V.
  static Values of_tall(Value a, bool complete) {
    const Dim &m = a.dim(1), &n = a.dim(2);
    const Value turned = with_orthogonal_columns(concat({a, identity_of(a, {a.dim(0), n, n})}, 1), m);
    const Value size = sqrt(sum(squared_size(slice_axis(turned, 1, 0, m)), {1}));
    const Value order = argsort(size, 1, true), all = take_along_axis(turned, expand_dims(order, {1}), 2);
    // The columns over their sizes would be U; Q R gives also those for sizes of 0.
    const Values factors = qr(slice_axis(all, 1, 0, m), complete);
    const Value head = real_part(diagonal(factors[1], 1, 2)), negative = lt(head, like(head, 0));
    const Value signs = expand_dims(cast(select(negative, like(head, -1), like(head, 1)), a.dtype()), {1});
    const Value u = factors[0], signed_u = slice_axis(u, 2, 0, n) * signs;
    return {complete ? concat({signed_u, slice_axis(u, 2, n, m)}, 2) : signed_u, take_along_axis(size, order, 1),
            slice_axis(all, 1, m, m + n)};
  }
  static Values body(const Svd& op, Value a) {
    check_matrices(name, a);
    const Dims lead = lead_of(a);
    const std::int64_t m = a.dim(-2).value(), n = a.dim(-1).value(), k = std::min(m, n);
    const std::int64_t of_u = op.full_matrices ? m : k, of_v = op.full_matrices ? n : k;
    if (k == 0)
      return {identity_of(a, appended(lead, {m, of_u})), full(a, appended(lead, {0}), 0, real_type(a.dtype())),
              identity_of(a, appended(lead, {of_v, n}))};
    const Value scale = scale_of(a), all = stacked(a / cast(scale, a.dtype()));
    const Values found = of_tall(m < n ? adjoint(all) : all, op.full_matrices);
    const Value u = found[m < n ? 2 : 0], v = found[m < n ? 0 : 2];
    return {reshape(u, appended(lead, {m, of_u})), reshape(found[1], appended(lead, {k})) * squeeze(scale, {-1}),
            reshape(adjoint(v), appended(lead, {of_v, n}))};
  }
  static Values batch(const Svd& op, std::span<const Value> x, const std::vector<bool>&, const Dim&) { return batch_of_matrices(op, x); }
  // With D = U^H da V and F = 1 / (s_j^2 - s_i^2): ds = D's diagonal, dU = U (F (D s + (D s)^H) + K), dV = V F (s D + (s D)^H), K what is
  // imaginary on D's diagonal over s; and what of da V lies outside of U, over s. Vectors of equal values count as apart.
  static Values jvp(const Svd& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    const Value u = y[0], s = y[1], v = adjoint(y[2]), da = dx[0];
    const Dim &m = x[0].dim(-2), &n = x[0].dim(-1);
    if (op.full_matrices && !(m == n))
      fail("rlx.svd: full matrices of {} have no derivative (allowed: full_matrices = false)", x[0].type().to_string());
    const Value d = matmul(adjoint(u), matmul(da, v));
    const Value row = expand_dims(s, {-2}), column = expand_dims(s, {-1});
    const Value apart = cast(over((row + column) * (row - column)), d.dtype()), s_row = cast(row, d.dtype());
    const Value right = s_row * d, left = cast(column, d.dtype()) * d, inverse = cast(over(row), d.dtype());
    Value du = matmul(u, apart * (right + adjoint(right))), dv = matmul(v, apart * (left + adjoint(left)));
    if (is_complex(d.dtype())) du = du + u * complex(zeros_like(row), expand_dims(diagonal(imag(d), -2, -1), {-2})) * inverse;
    const auto outside = [&](Value basis, Value change) { return (change - matmul(basis, matmul(adjoint(basis), change))) * inverse; };
    if (m.value() > n.value()) du = du + outside(u, matmul(da, v));
    if (n.value() > m.value()) dv = dv + outside(v, matmul(adjoint(da), u));
    return {du, diagonal(real_part(d), -2, -1), adjoint(dv)};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 3}}}}, {}, 2e-5},
            {{{{f64, {2, 3, 3}}}}, attrs_of(Svd{true}), 1e-10},
            {{{{f64, {3, 5}}}}, {}, 1e-10},
            {{{{c64, {4, 3}}}}, {}, 2e-5},
            {{{{f32, {5, 2}}}}, attrs_of(Svd{true}), 2e-5, false}};
  }
};
const Op<Svd> svd_op;

struct Pinv {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "pinv";
  static constexpr std::string_view formula =
      "the inverse of Moore and Penrose: V diag(1 / s) U^H of the singular values s above rtol times the largest";
  double rtol = 0;
  static auto fields() { return Fields<&Pinv::rtol>{}; }
  static Value body(const Pinv& op, Value a) {
    const Values parts = svd(a);
    if (parts[1].dim(-1) == Dim(0)) return full(a, appended(lead_of(a), {a.dim(-1), a.dim(-2)}), 0, a.dtype());
    const Value s = parts[1], least = reduce_max(s, {-1}, true) * op.rtol;
    const Value inverse = over(select(gt(s, least), s, like(s, 0)));
    return matmul(adjoint(parts[2]) * cast(expand_dims(inverse, {-2}), a.dtype()), adjoint(parts[0]));
  }
  static Values batch(const Pinv& op, std::span<const Value> x, const std::vector<bool>&, const Dim&) { return batch_of_matrices(op, x); }
  // Golub and Pereyra 1973: dp = -p da p + p p^H da^H (I - a p) + (I - p a) da^H p^H p.
  static Values jvp(const Pinv&, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    const Value a = x[0], p = y[0], da = dx[0];
    const Value s = matmul(p, matmul(adjoint(p), adjoint(da))), t = matmul(matmul(adjoint(da), adjoint(p)), p);
    return {s - matmul(matmul(s, a), p) + t - matmul(p, matmul(a, t)) - matmul(matmul(p, da), p)};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 3}}, -1, 1, 2}}, attrs_of(Pinv{1e-5}), 2e-5},
            {{{{f64, {2, 3, 4}}, -1, 1, 2}}, attrs_of(Pinv{1e-14}), 1e-10},
            {{{{c64, {3, 3}}, -1, 1, 3}}, attrs_of(Pinv{1e-5}), 2e-5}};
  }
};
const Op<Pinv> pinv_op;

}  // namespace

/// The singular values s (..., K), real, descending and none negative, and vectors U (..., M, K) and V^H (..., K, N) of the matrices a
/// (..., M, N): a = U diag(s) V^H, K = min(M, N); with `full_matrices` U is (..., M, M) and V^H (..., N, N). Gives U, s, V^H. Not
/// differentiable where `full_matrices` adds vectors; vectors of equal values count as apart. M and N are static. Throws Error for less
/// than two axes and for types other than f32, f64 and complex.
Values svd(Operand a, bool full_matrices /*= false*/) {
  const Value operands[] = {a};
  return svd_op.all({full_matrices}, operands);
}

/// The inverse (..., N, M) of Moore and Penrose of the matrices a (..., M, N), from the singular values that are larger than rtol times the
/// largest; rtol < 0 stands for max(M, N) times the distance from 1 to the next number. The rank must not change for the derivative to
/// hold. M and N are static. Throws Error as svd.
Value pinv(Operand a, double rtol /*= -1*/) {
  check_matrices("pinv", a);
  const auto most = static_cast<double>(std::max(a.dim(-2).value(), a.dim(-1).value()));
  return pinv_op({rtol < 0 ? most * rounding(a.dtype()) : rtol}, a);
}

}  // namespace rlx
