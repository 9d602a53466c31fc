// Compiled factorisations and triangular systems: products of the factors, what singular matrices give, any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace linear_systems_test {

using Number = std::complex<double>;

std::vector<Array> compiled(const std::vector<Array>& operands, const std::function<Values(const Values&)>& function, int threads = 2) {
  Graph graph;
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(type_of(operand));
  const Values results = function(inputs_for(graph, types));
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  SessionOptions options;
  options.threads = threads;
  std::map<std::string, Feed> feeds;
  for (const auto& [name, array] : named(operands)) feeds.emplace(name, array);
  const auto outputs = Session(Device::cpu(), options).compile(graph).run(feeds);
  std::vector<Array> all;
  for (std::size_t i = 0; i < results.size(); ++i) all.push_back(outputs.at("y" + std::to_string(i)));
  return all;
}

constexpr DType types[] = {f32, f64, c64, c128};
double rounding_of(DType type) { return type == f32 || type == c64 ? 0x1p-24 : 0x1p-53; }

/// One matrix of an array of matrices.
struct Matrix {
  Matrix(const Array& array, std::int64_t item)
      : array(array), rows(array.shape()[array.shape().size() - 2]), columns(array.shape().back()), begin(item * rows * columns) {}
  Number operator()(std::int64_t i, std::int64_t j) const { return array.get_complex(begin + i * columns + j); }
  const Array& array;
  std::int64_t rows, columns, begin;
};

double largest(const Matrix& m) {
  double most = 0;
  for (std::int64_t i = 0; i < m.rows * m.columns; ++i) most = std::max(most, std::abs(m.array.get_complex(m.begin + i)));
  return most;
}

/// n |L| |U| eps bounds the backward error of elimination (Higham, Accuracy and Stability, theorem 9.3); |L| <= 1 by the pivots (complex:
/// sqrt 2, as |re| + |im| is compared), and U grows little in random matrices: eight times its largest element covers both sums.
TEST(CompiledLu, FactorsMultiplyToThePermutedMatrix) {
  std::mt19937 random(1);
  for (DType type : types)
    for (const Dims& shape :
         {Dims{1, 1}, Dims{5, 5}, Dims{3, 32, 32}, Dims{33, 33}, Dims{100, 40}, Dims{40, 100}, Dims{130, 130}, Dims{2, 17, 20}}) {
      const Array a = random_array({type, shape}, -1, 1, random);
      const auto parts = compiled({a}, [](const Values& v) { return lu(v[0]); });
      const std::int64_t rows = a.shape()[a.shape().size() - 2], columns = a.shape().back(), steps = std::min(rows, columns);
      for (std::int64_t item = 0; item < a.size() / (rows * columns); ++item) {
        const Matrix before(a, item), f(parts[0], item);
        const double allowed = 8 * static_cast<double>(steps) * rounding_of(type) * largest(f);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) {
            Number sum = 0;
            for (std::int64_t k = 0; k <= std::min({i, j, steps - 1}); ++k) sum += (k == i ? 1.0 : f(i, k)) * f(k, j);
            ASSERT_LE(std::abs(sum - before(parts[2].get_int(item * rows + i), j)), allowed) << i << ", " << j;
            if (j < i && j < steps) {
              ASSERT_LE(std::abs(f(i, j)), (is_complex(type) ? std::numbers::sqrt2 : 1) * (1 + 4 * rounding_of(type)));
            }
          }
      }
    }
}

TEST(CompiledLu, GoesOnBeyondAPivotOfZero) {
  const auto ones = compiled({floats({3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1})}, [](const Values& v) { return lu(v[0]); });
  EXPECT_EQ(values_of(ones[0]), (Doubles{1, 1, 1, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(values_of(ones[1]), (Doubles{0, 1, 2}));
  const auto column = compiled({floats({2, 2}, {0, 3, 0, 5})}, [](const Values& v) { return lu(v[0]); });
  EXPECT_EQ(values_of(column[0]), (Doubles{0, 3, 0, 5}));
  EXPECT_EQ(values_of(column[1]), (Doubles{0, 1}));
}

/// LAPACK's measure of a complex pivot is |re| + |im|: 3 + 3.5i (6.5) before 5.5i, whose absolute value is larger (5.5 and 4.6).
TEST(CompiledLu, TakesTheLargestSumOfPartsAsComplexPivots) {
  for (DType type : {c64, c128}) {
    Array a(type, {3, 1});
    a.set_complex(0, {0, 5.5});
    a.set_complex(1, {3, -3.5});
    a.set_complex(2, {-3.5, 3});
    EXPECT_EQ(values_of(compiled({a}, [](const Values& v) { return lu(v[0]); })[1]), (Doubles{1}));
    EXPECT_EQ(values_of(run_all({a}, [](const Values& v) { return lu(v[0]); })[1]), (Doubles{1}));
  }
}

TEST(CompiledCholesky, FactorMultipliesToTheMatrix) {
  std::mt19937 random(2);
  for (DType type : types)
    for (const Dims& shape : {Dims{1, 1}, Dims{4, 4}, Dims{3, 32, 32}, Dims{33, 33}, Dims{2, 100, 100}, Dims{230, 230}}) {
      const std::int64_t n = shape.back().value();
      Array a = random_array({type, shape}, -1, 1, random);
      add_to_diagonals(a, 2 * static_cast<double>(n));  // dominant: positive definite
      const Array l = compiled({a}, [](const Values& v) { return Values{cholesky(v[0])}; })[0];
      for (std::int64_t item = 0; item < a.size() / (n * n); ++item) {
        const Matrix before(a, item), f(l, item);
        const double allowed = 2 * static_cast<double>(n + 1) * rounding_of(type) * largest(before);  // Higham, theorem 10.3
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            if (j > i) {
              ASSERT_EQ(f(i, j), 0.0);
              continue;
            }
            Number sum = 0;
            for (std::int64_t k = 0; k <= j; ++k) sum += f(i, k) * std::conj(f(j, k));
            ASSERT_LE(std::abs(sum - (i == j ? before(i, j).real() : before(i, j))), allowed) << i << ", " << j;
          }
      }
    }
}

TEST(CompiledCholesky, OfWhatIsNotPositiveDefiniteIsNaN) {
  for (std::int64_t n : {2, 50}) {
    Array a(f64, {2, n, n});
    for (std::int64_t i = 0; i < n; ++i) a.set_double(i * n + i, 1), a.set_double((n + i) * n + i, i + 1 == n ? 0 : 1);
    const Array l = compiled({a}, [](const Values& v) { return Values{cholesky(v[0])}; })[0];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        EXPECT_EQ(l.get_double(i * n + j), i == j ? 1 : 0);  // the other matrix
        EXPECT_EQ(std::isnan(l.get_double((n + i) * n + j)), j <= i);
      }
  }
}

TEST(CompiledTriangularSolve, SolvesEveryForm) {
  std::mt19937 random(3);
  for (DType type : types)
    for (std::int64_t n : {1, 7, 32, 45, 130})
      for (int form = 0; form < 16; ++form) {
        const bool left = form & 1, lower = form & 2, transposed = form & 4, unit = form & 8;
        const std::int64_t other = n == 45 ? 1 : n / 2 + 3;
        Array a = random_array({type, {n, n}}, -0.5 / static_cast<double>(n), 0.5 / static_cast<double>(n), random);
        add_to_diagonals(a, 1);  // well conditioned, whichever triangle is read
        const Array b = random_array({type, left ? Dims{n, other} : Dims{other, n}}, -1, 1, random);
        const Array x =
            compiled({a, b}, [&](const Values& v) { return Values{triangular_solve(v[0], v[1], left, lower, transposed, unit)}; })[0];
        const Matrix m(a, 0), right(b, 0), solution(x, 0);
        const auto element = [&](std::int64_t i, std::int64_t j) -> Number {
          if (transposed) std::swap(i, j);
          if (i == j) return unit ? 1 : m(i, i);
          return (lower ? j < i : i < j) ? m(i, j) : 0;
        };
        for (std::int64_t i = 0; i < right.rows; ++i)
          for (std::int64_t j = 0; j < right.columns; ++j) {
            Number sum = 0;
            for (std::int64_t k = 0; k < n; ++k) sum += left ? element(i, k) * solution(k, j) : solution(i, k) * element(k, j);
            ASSERT_LE(std::abs(sum - right(i, j)), 32 * rounding_of(type)) << form << ", " << n;
          }
      }
}

TEST(Solve, GivesTheSolutionOfEveryForm) {
  std::mt19937 random(4);
  Array a = random_array({f64, {3, 40, 40}}, -1, 1, random);
  add_to_diagonals(a, 8);
  const Array b = random_array({f64, {3, 40, 5}}, -1, 1, random), vectors = random_array({f64, {3, 40}}, -1, 1, random),
              one = random_array({f64, {1, 40, 2}}, -1, 1, random);
  const auto rest = compiled({a, b, vectors, one}, [](const Values& v) {
    const Value turned = move_axis(v[0], -1, -2);
    return Values{matmul(v[0], solve(v[0], v[1])) - v[1], matmul(turned, solve(v[0], v[1], true)) - v[1],
                  matmul(v[0], expand_dims(solve(v[0], v[2]), {-1})) - expand_dims(v[2], {-1}), matmul(v[0], solve(v[0], v[3])) - v[3]};
  });
  for (const Array& r : rest)
    for (double left : values_of(r)) EXPECT_LE(std::abs(left), 1e-13);
  EXPECT_EQ(rest[3].shape(), (std::vector<std::int64_t>{3, 40, 2}));
  const auto singular =
      compiled({floats({2, 2}, {1, 2, 2, 4}), floats({2}, {1, 1})}, [](const Values& v) { return Values{solve(v[0], v[1])}; });
  for (double number : values_of(singular[0])) EXPECT_FALSE(std::isfinite(number));
  EXPECT_NE(error_of([] {
              run_all({floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2}, {1, 2})}, [](const Values& v) { return Values{solve(v[0], v[1])}; });
            }).find("a square"),
            std::string::npos);
}

TEST(LinearSystems, HaveTheSameBitsAtAnyNumberOfThreads) {
  std::mt19937 random(5);
  for (const Dims& shape : {Dims{200, 200}, Dims{2, 70, 70}, Dims{9, 16, 16}})
    for (DType type : {f32, c64}) {
      Array a = random_array({type, shape}, -1, 1, random);
      add_to_diagonals(a, 400);
      const auto all = [](const Values& v) {
        Values results = lu(v[0]);
        results.push_back(cholesky(v[0]));
        results.push_back(triangular_solve(v[0], v[0]));
        results.push_back(triangular_solve(v[0], v[0], false));
        return results;
      };
      const auto one = compiled({a}, all, 1);
      for (int threads : {2, 3}) {
        const auto several = compiled({a}, all, threads);
        for (std::size_t i = 0; i < one.size(); ++i)
          EXPECT_EQ(std::memcmp(one[i].bytes().data(), several[i].bytes().data(), one[i].bytes().size()), 0) << i << ", " << threads;
      }
    }
}

}  // namespace linear_systems_test
}  // namespace rlx::test
