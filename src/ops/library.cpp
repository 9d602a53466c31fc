// Ops that come from libraries where there are any: Fourier transforms, LU factors, triangular systems.
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>

#include "ir/op.h"
#include "ops/broadcasting.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Number = std::complex<double>;
using Numbers = std::vector<Number>;

bool is_wide(DType t) { return t == f32 || t == f64 || is_complex(t); }

// e^(sign * 2 pi i * k / n), exact at multiples of a quarter turn.
Number root(std::int64_t k, std::int64_t n, double sign) {
  k %= n;
  if (4 * k % n == 0) {
    constexpr Number quarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    const Number turn = quarters[4 * k / n];
    return sign > 0 ? turn : std::conj(turn);
  }
  return std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

// Cooley and Tukey's split by the smallest prime factor; a prime length is summed directly.
Numbers transform(const Numbers& x, double sign) {
  const auto n = static_cast<std::int64_t>(x.size()), p = n > 1 ? smallest_factor(n) : 1, m = n / std::max<std::int64_t>(p, 1);
  if (n <= 1) return x;
  std::vector<Numbers> parts;
  for (std::int64_t r = 0; r < p; ++r) {
    Numbers part;
    for (std::int64_t i = r; i < n; i += p) part.push_back(x[static_cast<std::size_t>(i)]);
    parts.push_back(m == 1 ? part : transform(part, sign));
  }
  Numbers y(x.size());
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t r = 0; r < p; ++r)
      y[static_cast<std::size_t>(k)] += root(k * r, n, sign) * parts[static_cast<std::size_t>(r)][static_cast<std::size_t>(k % m)];
  return y;
}

struct Fft {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "fft";
  static constexpr std::string_view formula = "y[k] = sum over j of x[j] * e^(-2 pi i j k / n) along `axis`; inverse: with +, divided by n";
  Axis axis = -1;
  bool inverse = false;
  static auto fields() { return Fields<&Fft::axis, &Fft::inverse>{}; }
  static Type infer(const Fft&, const Type& x) {
    if (!is_complex(x.dtype)) fail("rlx.fft: {} is not complex", x.to_string());
    return x;
  }
  static void evaluate(const Fft& op, std::span<const Array> x, std::span<Array> y) {
    const auto& shape = x[0].shape();
    std::int64_t inner = 1;
    for (auto d = static_cast<std::size_t>(op.axis.value) + 1; d < shape.size(); ++d) inner *= shape[d];
    const std::int64_t n = shape[static_cast<std::size_t>(op.axis.value)], lines = x[0].size() == 0 ? 0 : x[0].size() / n;
    for (std::int64_t line = 0; line < lines; ++line) {
      const std::int64_t begin = line / inner * n * inner + line % inner;
      Numbers values;
      for (std::int64_t i = 0; i < n; ++i) values.push_back(x[0].get_complex(begin + i * inner));
      values = transform(values, op.inverse ? 1 : -1);
      const double scale = op.inverse ? static_cast<double>(n) : 1;
      for (std::int64_t i = 0; i < n; ++i) y[0].set_complex(begin + i * inner, values[static_cast<std::size_t>(i)] / scale);
    }
  }
  // The matrix of the transform is symmetric.
  static Values transpose(const Fft& op, std::span<const Value>, const std::vector<bool>&, std::span<const Value> dy) {
    return {Op<Fft>()(op, dy[0])};
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (DType t : {c64, c128})
      for (std::int64_t n : {1, 7, 8, 12}) all.push_back({{{{t, {2, n}}}}, attrs_of(Fft{1, n == 8}), 1e-6});
    all.push_back({{{{c64, {6, 3}}}}, attrs_of(Fft{0, true}), 1e-6});
    return all;
  }
};
const Op<Fft> fft_op;

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
          if (std::abs(at(i, k)) > std::abs(at(pivot, k))) pivot = i;
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
  // With F = L^-1 (P da) U^-1: dL = L * strictly lower part of F, dU = upper part of F * U.
  static Values jvp(const Lu&, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
    if (!dx[0]) return Values(3);
    const int rank = x[0].rank();
    if (!(x[0].dim(rank - 1) == x[0].dim(rank - 2)))
      fail("rlx.lu: of {} is not differentiable (allowed: square matrices)", x[0].type().to_string());
    Dims column = y[2].shape();
    column.push_back(1);
    Value moved = take_along_axis(dx[0], reshape(y[2], column), rank - 2);
    Value f = triangular_solve(y[0], triangular_solve(y[0], moved, true, true, false, true), false, false);
    Value unit = triangle(y[0], true, -1), below = triangle(f, true, -1);
    return {matmul(unit, below) + below + matmul(triangle(f, false, 0), triangle(y[0], false, 0)), Value(), Value()};
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {4, 4}}}}, {}, 1e-5},
            {{{{f64, {2, 3, 3}}}}, {}, 1e-10},
            {{{{f32, {3, 5}}}}, {}, 1e-5, false},
            {{{{c64, {5, 3}}}}, {}, 1e-5, false}};
  }
};
const Op<Lu> lu_op;

Value conjugate(Value z) { return complex(real(z), -imag(z)); }

}  // namespace

/// The discrete Fourier transform of complex x along `axis`; inverse divides by the length. The shape stays. Throws Error when x is not
/// complex.
Value fft(Operand x, std::int64_t axis /*= -1*/, bool inverse /*= false*/) { return fft_op({axis, inverse}, x); }

/// The first n / 2 + 1 frequencies of a real signal (f32 or f64) of length n along `axis`, whose size becomes n / 2 + 1.
Value rfft(Operand x, std::int64_t axis /*= -1*/) {
  if (x.dtype() != f32 && x.dtype() != f64) fail("rlx.rfft: {} (allowed: f32, f64)", x.type().to_string());
  axis = normalize_axis("rfft", axis, x.type());
  return slice_axis(fft(complex(x, zeros_like(x)), axis), axis, 0, x.dim(axis).value() / 2 + 1);
}

/// The real signal of length n with the given frequencies along `axis`, whose size is n / 2 + 1 (else Error) and becomes n.
Value irfft(Operand z, std::int64_t n, std::int64_t axis /*= -1*/) {
  axis = normalize_axis("irfft", axis, z.type());
  if (n < 1 || !(z.dim(axis) == Dim(n / 2 + 1)))
    fail("rlx.irfft: length {} needs {} frequencies along axis {} of {}", n, n / 2 + 1, axis, z.type().to_string());
  if (n > 2) z = concat({z, conjugate(reverse(slice_axis(z, axis, 1, (n + 1) / 2), {axis}))}, axis);
  return real(fft(z, axis, true));
}

/// X with a X = b (left) or X a = b, of the shape of b: a is (..., N, N), b (..., N, M) (left) or (..., M, N). Only the lower or the upper
/// triangle of a is read, of its transpose with transpose_a, with ones on the diagonal if unit_diagonal. Throws Error for other shapes and
/// for types other than f32, f64 and complex.
Value triangular_solve(Operand a, Operand b, bool left /*= true*/, bool lower /*= true*/, bool transpose_a /*= false*/,
                       bool unit_diagonal /*= false*/) {
  return triangular_solve_op({left, lower, transpose_a, unit_diagonal}, a, b);
}

/// P a = L U of the matrices a (..., M, N) by partial pivoting: (L below and U on and above the diagonal, pivot rows i32, permutation of
/// the rows i32). Row i of P a is row permutation[i] of a.
Values lu(Operand a) {
  const Value operands[] = {a};
  return lu_op.all({}, operands);
}

}  // namespace rlx
