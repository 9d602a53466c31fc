// Q R by Householder's reflections.
#include "ops/linalg/matrix_values.h"

namespace rlx {
namespace {

Value at(Value x, Value row, Value column) { return dynamic_slice(x, {scalar(x, 0, i32), row, column}, {x.dim(0), 1, 1}); }

// I - factor vector vector^H makes a column zero below its row k. As LAPACK's larfg: the vector is 1 in row k, and what is left there is
// real and of the other sign; a column that is zero already, and real in row k, is left alone.
struct Reflection {
  Value vector, factor, left;  // (count, m, 1), (count, 1, 1), (count, 1, 1)
};
Reflection reflection_of(Value column, Value k) {
  const Value row = iota(column, {1, column.dim(1), 1}, i32, 1), head = at(column, k, scalar(k, 0, i32));
  const Value below = select(gt(row, k), column, like(column, 0));
  const Value rest = sum(squared_size(below), {1}, true), re = real_part(head), size = sqrt(squared_size(head) + rest);
  Value done = eq(rest, like(rest, 0));
  if (is_complex(head.dtype())) done = logical_and(done, eq(imag(head), like(rest, 0)));
  const Value left = cast(select(ge(re, like(re, 0)), -size, size), head.dtype()), one = like(head, 1);
  const Value factor = select(done, like(head, 0), (left - head) / select(done, one, left));
  const Value vector = select(eq(row, k), one, below / select(done, one, head - left));
  return {vector, factor, select(done, head, left)};
}

struct Reflected {
  Value r, vectors, factors;  // (count, m, n), (steps, count, m, 1), (steps, count, 1, 1)
};
Reflected reflected(Value a, const Dim& steps) {
  const Value row = iota(a, {1, a.dim(1), 1}, i32, 1), column = iota(a, {1, 1, a.dim(2)}, i32, 2);
  const auto step = [&](const Values& carry, const Values& x) {
    const Value now = carry[0], k = x[0], zero = scalar(now, 0, i32);
    const Reflection h = reflection_of(dynamic_slice(now, {zero, zero, k}, {now.dim(0), now.dim(1), 1}), k);
    const Value next = now - h.vector * conj(h.factor) * matmul(adjoint(h.vector), now);
    const Value below = select(eq(row, k), h.left, like(now, 0));
    const Value whole = select(logical_and(eq(column, k), ge(row, k)), below, next);
    return std::pair{Values{whole}, Values{h.vector, h.factor}};
  };
  const Values all = scan(step, {a}, {iota(a, {steps}, i32)}, steps);
  return {all[0], all[1], all[2]};
}

// The product of the reflections, its first `columns` columns.
Value product_of(const Reflected& h, const Dim& columns, const Dim& steps) {
  const Value start = identity_of(h.r, {h.r.dim(0), h.r.dim(1), columns});
  const auto step = [](const Values& carry, const Values& x) {
    return std::pair{Values{carry[0] - x[0] * x[1] * matmul(adjoint(x[0]), carry[0])}, Values{}};
  };
  return scan(step, {start}, {h.vectors, h.factors}, steps, true)[0];
}

struct Qr {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "qr";
  static constexpr std::string_view formula =
      "Q R = a, Q with orthonormal columns and R upper triangular, by Householder's reflections; Q has min(m, n) columns, or all m";
  bool complete = false;
  static auto fields() { return Fields<&Qr::complete>{}; }
  static Values body(const Qr& op, Value a) {
    check_matrices(name, a);
    const Dims lead = lead_of(a);
    const Dim &m = a.dim(-2), &n = a.dim(-1);
    const Dim steps = m == n || m.value() < n.value() ? m : n, columns = op.complete ? m : steps;
    if (steps == Dim(0)) return {identity_of(a, appended(lead, {m, columns})), full(a, appended(lead, {columns, n}), 0, a.dtype())};
    const Value scale = scale_of(a), all = stacked(a / cast(scale, a.dtype()));
    const Reflected h = reflected(all, steps);
    const Value r = reshape(slice_axis(h.r, 1, 0, columns), appended(lead, {columns, n}));
    return {reshape(product_of(h, columns, steps), appended(lead, {m, columns})), r * cast(scale, a.dtype())};
  }
  static Values batch(const Qr& op, std::span<const Value> x, const std::vector<bool>&, const Dim&) { return batch_of_matrices(op, x); }
  // Walter and Lehmann 2018. With F = Q^H da R^-1 of the leading square, and S what is below its diagonal: dQ = (da R^-1 - Q F) + Q W and
  // dR = (F - W) R with W = S - S^H, whose diagonal is what is imaginary in F's.
  static Values jvp(const Qr& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    const Value q = y[0], r = y[1];
    const Dim &m = x[0].dim(-2), &n = x[0].dim(-1);
    const bool wide = !(m == n) && m.value() < n.value();
    if (op.complete && !wide && !(m == n))
      fail("rlx.qr: complete factors of {} have no derivative (allowed: complete = false)", x[0].type().to_string());
    const auto leading = [&](Value v) { return wide ? slice_axis(v, -1, 0, m) : v; };
    const Value change = triangular_solve(leading(r), leading(dx[0]), false, false), f = matmul(adjoint(q), change);
    const Value strictly = tril(f, -1);
    Value w = strictly - adjoint(strictly);
    if (is_complex(f.dtype())) w = w + identity_of(f, f.shape()) * complex(zeros_like(real(f)), imag(f));
    const Value dq = change + matmul(q, w - f), on_square = matmul(f - w, leading(r));
    if (!wide) return {dq, on_square};
    const auto behind = [&](Value v) { return slice_axis(v, -1, m, n); };
    return {dq, concat({on_square, matmul(adjoint(dq), behind(x[0])) + matmul(adjoint(q), behind(dx[0]))}, -1)};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 3}}, -1, 1, 2}}, {}, 1e-5},
            {{{{f64, {2, 3, 3}}, -1, 1, 2}}, attrs_of(Qr{true}), 1e-10},
            {{{{f64, {2, 3, 5}}, -1, 1, 2}}, {}, 1e-10},
            {{{{c64, {4, 4}}, -1, 1, 2}}, {}, 1e-5},
            {{{{f32, {5, 3}}, -1, 1}}, attrs_of(Qr{true}), 1e-5, false}};
  }
};
const Op<Qr> qr_op;

}  // namespace

/// Q R = a of the matrices a (..., M, N): Q (..., M, K) with orthonormal columns and R (..., K, N) upper triangular, K = min(M, N), or M if
/// `complete`. Signs are those of LAPACK's Householder reflections. Not differentiable where `complete` adds columns, or where the leading
/// K columns of a depend on each other. M and N are static, or the same symbol. Throws Error for less than two axes and for types other
/// than f32, f64 and complex.
Values qr(Operand a, bool complete /*= false*/) {
  const Value operands[] = {a};
  return qr_op.all({complete}, operands);
}

}  // namespace rlx
