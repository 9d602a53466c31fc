// Factors of matrices and systems of linear equations.
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "ir/op.h"
#include "ops/broadcasting.h"
#include "ops/linalg/column_steps.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Number = std::complex<double>;
using Numbers = std::vector<Number>;

bool is_wide(DType t) { return t == f32 || t == f64 || is_complex(t); }

// The triangle of a square matrix on the last two axes; `diagonal` is the lowest (upper triangle) or highest diagonal that stays.
Value triangle(Value x, bool lower, std::int64_t diagonal) {
  Value row = iota(x, x.shape(), i32, -2), column = iota(x, x.shape(), i32, -1);
  Value offset = column - row, edge = scalar(x, static_cast<double>(diagonal), i32);
  return select(lower ? le(offset, edge) : ge(offset, edge), x, scalar(x, 0, x.dtype()));
}

Value swap_last(Value x) { return move_axis(x, -1, -2); }

struct TriangularSolve {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "triangular_solve";
  static constexpr std::string_view formula =
      "X with a X = b, or X a = b (left = false); only the lower or upper triangle of a, or of its transpose, is read";
  bool left = true, lower = true, transpose_a = false, unit_diagonal = false;
  static auto fields() {
    return Fields<&TriangularSolve::left, &TriangularSolve::lower, &TriangularSolve::transpose_a, &TriangularSolve::unit_diagonal>{};
  }
  static Type infer(const TriangularSolve& op, const Type& a, const Type& b) {
    const std::size_t rank = a.shape.size();
    bool fits = rank >= 2 && b.shape.size() == rank && a.dtype == b.dtype && is_wide(a.dtype) && a.shape[rank - 1] == a.shape[rank - 2];
    if (fits) fits = b.shape[rank - (op.left ? 2 : 1)] == a.shape[rank - 1];
    for (std::size_t d = 0; fits && d + 2 < rank; ++d) fits = a.shape[d] == b.shape[d];
    if (!fits)
      fail("rlx.triangular_solve: a is {}, b is {} (allowed: a square, b with as many {}, f32, f64 or complex)", a.to_string(),
           b.to_string(), op.left ? "rows" : "columns");
    return b;
  }
  static void evaluate(const TriangularSolve& op, std::span<const Array> in, std::span<Array> out) {
    const auto& shape = in[1].shape();
    const std::int64_t n = in[0].shape().back(), rows = shape[shape.size() - 2], columns = shape.back();
    const std::int64_t count = op.left ? columns : rows, size = n * n;
    // X a = b is a' X' = b': the same with the roles of rows and columns turned round.
    const bool flip = op.transpose_a != !op.left, forward = op.lower != flip;
    for (std::int64_t m = 0; size > 0 && m < in[0].size() / size; ++m)
      for (std::int64_t c = 0; c < count; ++c) {
        auto at = [&](std::int64_t i) { return m * rows * columns + (op.left ? i * columns + c : c * columns + i); };
        auto a = [&](std::int64_t i, std::int64_t j) { return in[0].get_complex(m * size + (flip ? j * n + i : i * n + j)); };
        Numbers x(static_cast<std::size_t>(n));
        for (std::int64_t step = 0; step < n; ++step) {
          const std::int64_t i = forward ? step : n - 1 - step;
          Number total = in[1].get_complex(at(i));
          for (std::int64_t j = forward ? 0 : i + 1; j < (forward ? i : n); ++j) total -= a(i, j) * x[static_cast<std::size_t>(j)];
          x[static_cast<std::size_t>(i)] = op.unit_diagonal ? total : total / a(i, i);
          out[0].set_complex(at(i), x[static_cast<std::size_t>(i)]);
        }
      }
  }
  static Value expansion(const TriangularSolve& op, Value a, Value b) {
    const bool turned = op.transpose_a != !op.left, forward = op.lower != turned;  // see evaluate
    const auto arranged = [&](Value x, bool swapped, Axes reversed) {
      if (swapped) x = swap_last(x);
      return forward ? x : flip(x, reversed);
    };
    const Value x = lower_solve_in_steps(arranged(a, turned, {-2, -1}), arranged(b, !op.left, {-2}), op.unit_diagonal);
    const Value y = forward ? x : flip(x, {-2});
    return op.left ? y : swap_last(y);
  }
  static Value solve(const TriangularSolve& op, Value a, Value b) {
    return triangular_solve(a, b, op.left, op.lower, op.transpose_a, op.unit_diagonal);
  }
  static Values jvp(const TriangularSolve& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    Value right = dx[1];
    if (dx[0]) {
      Value da = triangle(dx[0], op.lower, op.unit_diagonal ? (op.lower ? -1 : 1) : 0);
      if (op.transpose_a) da = swap_last(da);
      Value change = op.left ? matmul(da, y[0]) : matmul(y[0], da);
      right = right ? right - change : -change;
    }
    return {right ? solve(op, x[0], right) : Value()};
  }
  static Values transpose(const TriangularSolve& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
    if (linear[0]) fail_internal("rlx.triangular_solve: it is not linear in the matrix");
    return {Value(), triangular_solve(x[0], dy[0], op.left, op.lower, !op.transpose_a, op.unit_diagonal)};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (bool left : {true, false})
      for (bool lower : {true, false})
        for (bool transpose_a : {true, false})
          all.push_back({{{{f32, {2, 3, 3}}, 0.5, 1.5}, {{f32, left ? Dims{2, 3, 4} : Dims{2, 4, 3}}}},
                         attrs_of(TriangularSolve{left, lower, transpose_a, lower == left}),
                         1e-5});
    all.push_back({{{{f64, {4, 4}}, 0.5, 1.5}, {{f64, {4, 1}}}}, attrs_of(TriangularSolve{}), 1e-10});
    all.push_back({{{{c64, {3, 3}}, 0.5, 1.5}, {{c64, {3, 2}}}}, attrs_of(TriangularSolve{}), 1e-5});
    return all;
  }
};
const Op<TriangularSolve> triangular_solve_op;

struct Lu {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "lu";
  static constexpr std::string_view formula =
      "P a = L U by partial pivoting: L (unit diagonal, not stored) and U in one matrix, the pivot row of each step, and the permutation "
      "of the rows";
  static auto fields() { return Fields<>{}; }
  static std::vector<Type> infer(const Lu&, const Type& a) {
    if (a.rank() < 2 || !is_wide(a.dtype)) fail("rlx.lu: {} (allowed: matrices of f32, f64 or complex)", a.to_string());
    const Dim &rows = a.dim(a.rank() - 2), &columns = a.dim(a.rank() - 1);
    const Dims lead(a.shape.begin(), a.shape.end() - 2);
    const bool square = rows == columns;
    auto with = [&](const Dim& size) {
      Dims shape = lead;
      shape.push_back(size);
      return Type{i32, shape};
    };
    return {a, with(square || rows.value() < columns.value() ? rows : columns), with(rows)};
  }
  // What LAPACK compares (icamax, izamax): of complex numbers the sum of their parts.
  static double magnitude(Number x) { return std::abs(x.real()) + std::abs(x.imag()); }
  static void evaluate(const Lu&, std::span<const Array> in, std::span<Array> out) {
    const auto& shape = in[0].shape();
    const std::int64_t rows = shape[shape.size() - 2], columns = shape.back(), size = rows * columns, steps = std::min(rows, columns);
    for (std::int64_t m = 0; size > 0 && m < in[0].size() / size; ++m) {
      Numbers a;
      for (std::int64_t i = 0; i < size; ++i) a.push_back(in[0].get_complex(m * size + i));
      std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
      std::iota(order.begin(), order.end(), 0);
      auto at = [&](std::int64_t i, std::int64_t j) -> Number& { return a[static_cast<std::size_t>(i * columns + j)]; };
      for (std::int64_t k = 0; k < steps; ++k) {
        std::int64_t pivot = k;
        for (std::int64_t i = k + 1; i < rows; ++i)
          if (magnitude(at(i, k)) > magnitude(at(pivot, k))) pivot = i;
        out[1].set_int(m * steps + k, pivot);
        std::swap(order[static_cast<std::size_t>(k)], order[static_cast<std::size_t>(pivot)]);
        for (std::int64_t j = 0; j < columns; ++j)
          if (pivot != k) std::swap(at(k, j), at(pivot, j));
        if (at(k, k) == 0.0) continue;
        for (std::int64_t i = k + 1; i < rows; ++i) {
          at(i, k) /= at(k, k);
          for (std::int64_t j = k + 1; j < columns; ++j) at(i, j) -= at(i, k) * at(k, j);
        }
      }
      for (std::int64_t i = 0; i < size; ++i) out[0].set_complex(m * size + i, a[static_cast<std::size_t>(i)]);
      for (std::int64_t i = 0; i < rows; ++i) out[2].set_int(m * rows + i, order[static_cast<std::size_t>(i)]);
    }
  }
  static Values expansion(const Lu&, Value a) { return lu_in_steps(a); }
  // De Hoog, Anderssen and Lukas 2011. With F = L^-1 (P da) U^-1, split in F_L strictly below the diagonal and F_U: dL = L F_L,
  // dU = F_U U. Of a matrix that is not square that holds for its leading square; then dL = (P da) U^-1 - L F_U of the rows below, and
  // dU = L^-1 (P da) - F_L U of the columns to the right.
  static Values jvp(const Lu&, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    if (!dx[0]) return Values(3);
    const int row = x[0].rank() - 2, column = x[0].rank() - 1;
    const Dim &rows = x[0].dim(row), &columns = x[0].dim(column);
    Dims order = y[2].shape();
    order.push_back(1);
    Value moved = take_along_axis(dx[0], reshape(y[2], order), row), factors = y[0];
    if (rows == columns) return {of_square(factors, moved).tangent, Value(), Value()};
    const std::int64_t steps = y[1].shape().back().value();
    const bool tall = rows.value() > columns.value();
    const auto split = [&](Value v) {
      return std::pair{slice_axis(v, tall ? row : column, 0, steps), slice_axis(v, tall ? row : column, steps, v.dim(tall ? row : column))};
    };
    const auto [square, other] = split(factors);
    const auto [moved_square, moved_other] = split(moved);
    const SquareTangent f = of_square(square, moved_square);
    const Value rest = tall ? triangular_solve(square, moved_other, false, false) - matmul(other, f.upper)
                            : triangular_solve(square, moved_other, true, true, false, true) - matmul(f.below, other);
    return {concat({f.tangent, rest}, tall ? row : column), Value(), Value()};
  }
  struct SquareTangent {
    Value below, upper, tangent;  // F_L, F_U, dL + dU
  };
  static SquareTangent of_square(Value factors, Value moved) {
    Value f = triangular_solve(factors, triangular_solve(factors, moved, true, true, false, true), false, false);
    Value below = triangle(f, true, -1), upper = triangle(f, false, 0);
    return {below, upper, matmul(triangle(factors, true, -1), below) + below + matmul(upper, triangle(factors, false, 0))};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 4}}}}, {}, 1e-5},
            {{{{f64, {2, 3, 3}}}}, {}, 1e-10},
            {{{{f64, {2, 3, 5}}}}, {}, 1e-10},
            {{{{f32, {5, 3}}}}, {}, 1e-5},
            {{{{c64, {5, 3}}}}, {}, 1e-5}};
  }
};
const Op<Lu> lu_op;

struct Cholesky {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "cholesky";
  static constexpr std::string_view formula =
      "the lower triangular L with positive diagonal and L L^H = a, a symmetric or Hermitian and positive definite; only its lower "
      "triangle, "
      "and of the diagonal the real part, is read. NaN in the whole triangle where it is not positive definite";
  static auto fields() { return Fields<>{}; }
  static Type infer(const Cholesky&, const Type& a) {
    if (a.rank() < 2 || !is_wide(a.dtype) || !(a.dim(a.rank() - 1) == a.dim(a.rank() - 2)))
      fail("rlx.cholesky: {} (allowed: square matrices of f32, f64 or complex)", a.to_string());
    return a;
  }
  // Column after column, of one matrix; false where it is not positive definite.
  static bool factor(Numbers& a, std::int64_t n) {
    const auto at = [&](std::int64_t i, std::int64_t j) -> Number& { return a[static_cast<std::size_t>(i * n + j)]; };
    for (std::int64_t j = 0; j < n; ++j) {
      double pivot = at(j, j).real();
      for (std::int64_t k = 0; k < j; ++k) pivot -= std::norm(at(j, k));
      if (!(pivot > 0)) return false;
      at(j, j) = std::sqrt(pivot);
      for (std::int64_t i = j + 1; i < n; ++i) {
        for (std::int64_t k = 0; k < j; ++k) at(i, j) -= at(i, k) * std::conj(at(j, k));
        at(i, j) /= at(j, j).real();
      }
    }
    return true;
  }
  static void evaluate(const Cholesky&, std::span<const Array> in, std::span<Array> out) {
    const std::int64_t n = in[0].shape().back(), size = n * n;
    for (std::int64_t m = 0; size > 0 && m < in[0].size() / size; ++m) {
      Numbers a;
      for (std::int64_t i = 0; i < size; ++i) a.push_back(in[0].get_complex(m * size + i));
      const bool definite = factor(a, n);
      for (std::int64_t i = 0; i < size; ++i) {
        const Number lower = definite ? a[static_cast<std::size_t>(i)] : std::numeric_limits<double>::quiet_NaN();
        out[0].set_complex(m * size + i, i / n < i % n ? Number() : lower);
      }
    }
  }
  static Value expansion(const Cholesky&, Value a) { return cholesky_in_steps(a); }
  // With F = L^-1 da L^-H: dL = L * the lower triangle of F, its diagonal halved.
  static Values jvp(const Cholesky&, std::span<const Value>, std::span<const Value> y, std::span<const Value> dx) {
    Value below = triangle(dx[0], true, -1), diagonal = triangle(dx[0], true, 0) - below;
    if (is_complex(dx[0].dtype())) diagonal = complex(real(diagonal), zeros_like(imag(diagonal)));
    Value f = triangular_solve(y[0], below + diagonal + swap_last(conj(below)));
    f = triangular_solve(conj(y[0]), f, false, true, true);
    Value strictly = triangle(f, true, -1), on = triangle(f, true, 0) - strictly;
    return {matmul(y[0], strictly + on * 0.5)};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 4}}, -1, 1, 5}}, {}, 1e-5},
            {{{{f64, {2, 3, 3}}, -1, 1, 4}}, {}, 1e-10},
            {{{{c64, {3, 3}}, -1, 1, 5}}, {}, 1e-5},
            {{{{f64, {2, 2}}, -2, -1}}, {}, 0, false}};
  }
};
const Op<Cholesky> cholesky_op;

struct Solve {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "solve";
  static constexpr std::string_view formula =
      "X with a X = b, or a^T X = b, by LU factors with partial pivoting; of a singular a, infinities and NaN as the division by a pivot "
      "of 0 gives them";
  bool transpose_a = false;
  static auto fields() { return Fields<&Solve::transpose_a>{}; }
  static Value body(const Solve& op, Value a, Value b) {
    const int rank = a.rank();
    bool fits = rank >= 2 && b.rank() == rank && a.dtype() == b.dtype() && is_wide(a.dtype()) && a.dim(rank - 1) == a.dim(rank - 2);
    for (int d = 0; fits && d + 1 < rank; ++d) fits = a.dim(d) == b.dim(d);
    if (!fits)
      fail("rlx.solve: a is {}, b is {} (allowed: a square, b with as many rows, f32, f64 or complex)", a.type().to_string(),
           b.type().to_string());
    const Values factors = lu(a);
    Dims column = factors[2].shape();
    column.push_back(1);
    if (!op.transpose_a) {
      Value moved = take_along_axis(b, reshape(factors[2], column), rank - 2);
      return triangular_solve(factors[0], triangular_solve(factors[0], moved, true, true, false, true), true, false);
    }
    Value x = triangular_solve(factors[0], triangular_solve(factors[0], b, true, false, true), true, true, true, true);
    return take_along_axis(x, reshape(argsort(factors[2]), column), rank - 2);
  }
  // By hand, as its derivative is made of itself.
  static Values batch(const Solve& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size) {
    Values all(x.begin(), x.end());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (batched[i]) continue;
      Dims shape = all[i].shape();
      shape.insert(shape.begin(), size);
      all[i] = broadcast_to(all[i], shape);
    }
    return {Op<Solve>()(op, all[0], all[1])};
  }
  // a X = b: a dX = db - da X.
  static Values jvp(const Solve& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    Value right = dx[1];
    if (dx[0]) {
      Value change = matmul(op.transpose_a ? swap_last(dx[0]) : dx[0], y[0]);
      right = right ? right - change : -change;
    }
    return {Op<Solve>()(op, x[0], right)};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 4}}, -1, 1, 3}, {{f32, {4, 2}}}}, {}, 1e-5},
            {{{{f64, {2, 3, 3}}, -1, 1, -3}, {{f64, {2, 3, 1}}}}, attrs_of(Solve{true}), 1e-10},
            {{{{c64, {3, 3}}, -1, 1, 4}, {{c64, {3, 2}}}}, attrs_of(Solve{true}), 1e-5}};
  }
};
const Op<Solve> solve_op;

// Both with the axes in front that they broadcast to.
std::pair<Value, Value> with_equal_lead(std::string_view op, Value a, Value b) {
  if (a.rank() < 2 || b.rank() < 2 || a.dtype() != b.dtype())
    fail("rlx.{}: a is {}, b is {} (allowed: matrices of one type)", op, a.type().to_string(), b.type().to_string());
  const auto lead_of = [](Value x) { return Dims(x.shape().begin(), x.shape().end() - 2); };
  const Dims lead = broadcast_shapes(op, lead_of(a), lead_of(b));
  const auto with_lead = [&](Value x) {
    Dims shape = lead;
    shape.insert(shape.end(), x.shape().end() - 2, x.shape().end());
    return broadcast_to(x, shape);
  };
  return {with_lead(a), with_lead(b)};
}

}  // namespace

/// X with a X = b (left) or X a = b: a is (..., N, N), b (..., N, M) (left) or (..., M, N), and axes in front broadcast. Only the lower or
/// the upper triangle of a is read, of its transpose with transpose_a, with ones on the diagonal if unit_diagonal. Throws Error for other
/// shapes and for types other than f32, f64 and complex.
Value triangular_solve(Operand a, Operand b, bool left /*= true*/, bool lower /*= true*/, bool transpose_a /*= false*/,
                       bool unit_diagonal /*= false*/) {
  const auto [matrix, right] = with_equal_lead("triangular_solve", a, b);
  return triangular_solve_op({left, lower, transpose_a, unit_diagonal}, matrix, right);
}

/// The factor L (..., N, N) of Cholesky's decomposition a = L L^H, zeros above its diagonal. Only the lower triangle of a, symmetric or
/// Hermitian, is read. Of a matrix that is not positive definite the whole triangle is NaN. Throws Error for other shapes and for types
/// other than f32, f64 and complex.
Value cholesky(Operand a) { return cholesky_op({}, a); }

/// X with a X = b, or with a^T X = b: a is (..., N, N), b (..., N, K), or vectors, of one axis or of the shape of a without its last one;
/// axes in front broadcast. By LU factors with partial pivoting. A singular matrix gives infinities and NaN, as the division by a pivot of
/// 0 does (LAPACK reports that pivot and leaves b unsolved). Throws Error for other shapes and for types other than f32, f64 and complex.
Value solve(Operand a, Operand b, bool transpose_a /*= false*/) {
  const bool vectors = b.rank() == 1 || (a.rank() > 1 && b.shape() == Dims(a.shape().begin(), a.shape().end() - 1));
  const auto [left, right] = with_equal_lead("solve", a, vectors ? expand_dims(b, {-1}) : Value(b));
  Value x = solve_op({transpose_a}, left, right);
  return vectors ? squeeze(x, {-1}) : x;
}

/// P a = L U of the matrices a (..., M, N) by partial pivoting: (L below and U on and above the diagonal, pivot rows i32, permutation of
/// the rows i32). Row i of P a is row permutation[i] of a. The pivot of a step is the element of largest absolute value, of complex numbers
/// of largest |re| + |im|, the first of equal ones; a step whose pivot is 0 divides by nothing. Both are as in LAPACK: a singular a has
/// zeros on the diagonal of U. Throws Error for less than two axes and for types other than f32, f64 and complex.
Values lu(Operand a) {
  const Value operands[] = {a};
  return lu_op.all({}, operands);
}

}  // namespace rlx
