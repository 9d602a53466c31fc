// Factors of matrices, triangular systems and recurrences in kernels of the device.
#include "backends/opencl_beside_cpu.h"
#include "ops/reduction/recurrence.h"

namespace rlx::test {
namespace {

class OpenClLinearSystems : public OpenClTest {};

/// Whose factors lose few digits.
Array with_diagonal(Array a, double value) {
  const std::int64_t n = a.shape().back(), size = a.shape()[a.shape().size() - 2] * n;
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (i % size / n == i % size % n) a.set_double(i, value);
  return a;
}

TEST_F(OpenClLinearSystems, FindsTheFactorsAndThePivotsOfTheCpu) {
  std::mt19937 random(1);
  std::vector<Array> operands;
  for (const Type& type : {Type{f32, {1, 1}}, Type{f64, {5, 3}}, Type{c64, {2, 3, 5}}, Type{f64, {2, 33, 33}}, Type{f64, {100, 60}},
                           Type{c128, {60, 100}}, Type{f64, {128, 128}}})
    operands.push_back(random_array(type, -1, 1, random));
  expect_cpu(backend(), operands, 1 << 12, [](const Values& x) {
    Values all;
    for (const Value& a : x)
      for (const Value& part : lu(a)) all.push_back(part);
    return all;
  });
}

TEST_F(OpenClLinearSystems, TreatsSingularMatricesAsTheCpu) {
  const Array tied = array_of(f32, {3, 3}, {1, 2, 3, -1, 5, 6, 1, 8, 9}), zero(f32, {2, 3, 3}),
              halved = array_of(f32, {3, 3}, {1, 2, 3, 2, 4, 6, 1, 1, 1}), broken = array_of(f32, {2, 2}, {NAN, 1, 2, 3});
  expect_cpu(backend(), {tied, zero, halved, broken}, 4, [](const Values& x) {
    Values all;
    for (const Value& a : x)
      for (const Value& part : lu(a)) all.push_back(part);
    all.push_back(triangular_solve(x[2], x[0], true, false));
    all.push_back(cholesky(x[0]));
    all.push_back(cholesky(x[1]));
    return all;
  });
}

TEST_F(OpenClLinearSystems, SolvesEveryTriangle) {
  std::mt19937 random(2);
  for (const DType type : {f32, c64}) {
    const std::vector<Array> operands{with_diagonal(random_array({type, {70, 70}}, -0.1, 0.1, random), 1),
                                      random_array({type, {70, 70}}, -1, 1, random)};
    expect_cpu(backend(), operands, 32, [](const Values& x) {
      Values all;
      for (const bool left : {true, false})
        for (const bool lower : {true, false})
          for (const bool transposed : {true, false}) all.push_back(triangular_solve(x[0], x[1], left, lower, transposed, lower == left));
      return all;
    });
  }
}

TEST_F(OpenClLinearSystems, FactorsPositiveDefiniteMatrices) {
  std::mt19937 random(3);
  const std::vector<Array> operands{
      with_diagonal(random_array({f32, {90, 90}}, -1, 1, random), 90), with_diagonal(random_array({c64, {3, 33, 33}}, -1, 1, random), 66),
      with_diagonal(random_array({f64, {64, 32, 32}}, -1, 1, random), 40), with_diagonal(random_array({f32, {90, 90}}, -1, 1, random), 3)};
  expect_cpu(backend(), operands, 64, [](const Values& x) {
    Values all;
    for (const Value& a : x) all.push_back(cholesky(a));
    return all;
  });
}

TEST_F(OpenClLinearSystems, TakesSizesThatAreSymbols) {
  std::mt19937 random(4);
  const Dim n = Dim::symbol("n", 16), count = Dim::symbol("count", 8);
  const std::vector<Array> operands{with_diagonal(random_array({f64, {3, 7, 7}}, -1, 1, random), 9)};
  expect_cpu(backend(), operands, 64,
             [](const Values& x) {
               Values all = lu(x[0]);
               all.push_back(triangular_solve(x[0], x[0]));
               all.push_back(cholesky(x[0]));
               return all;
             },
             {{f64, {count, n, n}}});
}

/// A recurrence is the derivative of a running product. Its first factor counts for nothing.
TEST_F(OpenClLinearSystems, RecurrencesRunOnTheDevice) {
  std::mt19937 random(5);
  for (const std::int64_t n : {1, 64, 1000}) {
    Array a = random_array({f32, {2, n, 3}}, -1.1, 1.1, random);
    a.set_double(0, INFINITY);
    const std::vector<Array> operands{a, random_array({f32, {2, n, 3}}, -1, 1, random)};
    expect_cpu(backend(), operands, 16,
               [](const Values& x) { return Values{linear_recurrence(x[0], x[1], 1, false), linear_recurrence(x[1], x[1], 1, true)}; });
  }
}

}  // namespace
}  // namespace rlx::test
