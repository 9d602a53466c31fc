// Fourier transforms, LU and triangular systems: small values and defining properties.
#include <gtest/gtest.h>

#include "ops/values.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace library_ops_test {

/// Values of order 1 after a few dozen f32 roundings.
constexpr double few_roundings = 1e-5;

void expect_near(const Doubles& seen, const Doubles& wanted, double allowed) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], wanted[i], allowed) << i;
}

TEST(Fft, OfFourValues) {
  Array x(c64, {4});
  const std::complex<double> in[] = {{1, 0}, {2, 0}, {3, 0}, {0, 4}};
  for (std::int64_t i = 0; i < 4; ++i) x.set_complex(i, in[i]);
  const Array y = run_all({x}, [](const Values& v) { return Values{fft(v[0])}; })[0];
  const std::complex<double> wanted[] = {{6, 4}, {-6, -2}, {2, -4}, {2, 2}};
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.get_complex(i), wanted[i]) << i;
}

TEST(Fft, InverseAndRealFormsGiveTheSignalBack) {
  std::mt19937 random(1);
  for (std::int64_t n : {1, 2, 3, 8, 15, 37}) {
    const Array x = random_array({f32, {2, n}}, -1, 1, random), z = random_array({c64, {n, 2}}, -1, 1, random);
    expect_near(run({x}, [&](const Values& v) { return irfft(rfft(v[0]), n); }), values_of(x), few_roundings);
    const Array back = run_all({z}, [](const Values& v) { return Values{fft(fft(v[0], 0), 0, true)}; })[0];
    EXPECT_LE(difference(back, z), few_roundings) << n;
  }
}

/// What its transpose rule rests on: the matrix of the transform is symmetric, so <F x, z> = <x, F z> without conjugation.
TEST(Fft, IsItsOwnTranspose) {
  std::mt19937 random(2);
  const Array x = random_array({c128, {6}}, -1, 1, random), z = random_array({c128, {6}}, -1, 1, random);
  for (bool inverse : {false, true}) {
    const auto sides = run_all(
        {x, z}, [&](const Values& v) { return Values{sum_all(fft(v[0], 0, inverse) * v[1]), sum_all(v[0] * fft(v[1], 0, inverse))}; });
    EXPECT_LE(difference(sides[0], sides[1]), 1e-14);  // 36 products of order 1 in f64
  }
}

TEST(Lu, OfAMatrixThatNeedsPivots) {
  const auto parts = run_all({floats({2, 2}, {1, 2, 4, 6})}, [](const Values& v) { return lu(v[0]); });
  EXPECT_EQ(values_of(parts[0]), (Doubles{4, 6, 0.25, 0.5}));
  EXPECT_EQ(values_of(parts[1]), (Doubles{1, 1}));
  EXPECT_EQ(values_of(parts[2]), (Doubles{1, 0}));
}

TEST(Lu, SolvesASystemWithTheTriangularSolves) {
  const Array a = floats({3, 3}, {0, 2, 1, 1, 1, 0, 3, 0, 1}), b = floats({3, 1}, {7, 3, 6});  // solution 1, 2, 3
  const Doubles x = run({a, b}, [](const Values& v) {
    const Values f = lu(v[0]);
    Value moved = take(v[1], f[2], 0);
    return triangular_solve(f[0], triangular_solve(f[0], moved, true, true, false, true), true, false);
  });
  expect_near(x, {1, 2, 3}, few_roundings);
}

TEST(Solve, TakesBatchesThatBroadcastSeveralRightSidesAndTheTranspose) {
  std::mt19937 random(3);
  const Array a = random_array({f64, {2, 1, 4, 4}}, -1, 1, random), b = random_array({f64, {1, 3, 4, 5}}, -1, 1, random);
  for (bool transposed : {false, true}) {
    const auto results = run_all({a, b}, [&](const Values& v) {
      const Value solved = solve(v[0], v[1], transposed), matrix = transposed ? move_axis(v[0], -1, -2) : v[0];
      return Values{matmul(matrix, solved), broadcast_to(v[1], {2, 3, 4, 5})};
    });
    expect_near(values_of(results[0]), values_of(results[1]), 1e-11);  // 4 x 4 systems whose condition is below 1000
  }
}

/// As torch.linalg.solve: (4, 3) beside (4, 3, 3) are vectors, (3, 2) is a matrix for all.
TEST(Solve, TakesOneRightSideForSeveralMatrices) {
  std::mt19937 random(4);
  const Array a = random_array({f64, {4, 3, 3}}, -1, 1, random), b = random_array({f64, {3, 2}}, -1, 1, random),
              vectors = random_array({f64, {4, 3}}, -1, 1, random), one = random_array({f64, {3}}, -1, 1, random);
  const auto results = run_all({a, b, vectors, one}, [&](const Values& v) {
    const auto product = [&](Value x) { return squeeze(matmul(v[0], expand_dims(x, {-1})), {-1}); };
    return Values{matmul(v[0], solve(v[0], v[1])), broadcast_to(v[1], {4, 3, 2}), product(solve(v[0], v[2])), v[2],
                  product(solve(v[0], v[3])),      broadcast_to(v[3], {4, 3})};
  });
  for (std::size_t i = 0; i < results.size(); i += 2) expect_near(values_of(results[i]), values_of(results[i + 1]), 1e-11);
}

TEST(TriangularSolve, BroadcastsAxesInFront) {
  std::mt19937 random(5);
  const Array a = random_array({f64, {2, 1, 3, 3}}, 0.5, 1.5, random), b = random_array({f64, {4, 3, 2}}, -1, 1, random);
  for (bool left : {true, false}) {
    const auto results = run_all({a, b}, [&](const Values& v) {
      const Value lower = tril(v[0]), right = left ? v[1] : move_axis(v[1], -1, -2), x = triangular_solve(v[0], right, left);
      return Values{left ? matmul(lower, x) : matmul(x, lower), broadcast_to(right, left ? Dims{2, 4, 3, 2} : Dims{2, 4, 2, 3})};
    });
    expect_near(values_of(results[0]), values_of(results[1]), 1e-12);
  }
}

TEST(TriangularSolve, ReadsOneTriangle) {
  const Array a = floats({2, 2}, {2, 100, 3, 4}), b = floats({2, 1}, {2, 11});
  const auto solved = [&](bool lower, bool transposed, bool unit) {
    return run({a, b}, [&](const Values& v) { return triangular_solve(v[0], v[1], true, lower, transposed, unit); });
  };
  EXPECT_EQ(solved(true, false, false), (Doubles{1, 2}));
  EXPECT_EQ(solved(true, false, true), (Doubles{2, 5}));
  EXPECT_EQ(solved(true, true, false), (Doubles{-3.125, 2.75}));
  EXPECT_EQ(solved(false, false, true), (Doubles{-1098, 11}));
}

}  // namespace library_ops_test
}  // namespace rlx::test
