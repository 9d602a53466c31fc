// Compiled qr, eigh and svd: what the factors multiply to, vectors that are orthonormal, matrices without full rank, batches.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "ops/sample_operands.h"
#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace decompositions_test {

constexpr DType types[] = {f32, f64, c64, c128};
double rounding_of(DType type) { return type == f32 || type == c64 ? 0x1p-24 : 0x1p-53; }

std::vector<Array> compiled(const Array& a, const std::function<Values(Value)>& function) {
  Graph graph;
  const Values results = function(inputs_for(graph, std::vector<Type>{type_of(a)})[0]);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output(std::to_string(i), results[i]);
  const Outputs outputs = Session(Device::cpu()).compile(graph).run({{"x0", a}});
  std::vector<Array> all;
  for (const auto& [name, array] : outputs) all.push_back(array);
  return all;
}

Value adjoint_of(Value x) { return conj(swap_axes(x, -1, -2)); }
/// How far the columns of x are from orthonormal ones.
Value bend(Value x) {
  const Value product = matmul(adjoint_of(x), x);
  return reduce_max(abs(product - cast(eq(iota(x, product.shape(), i32, -2), iota(x, product.shape(), i32, -1)), x.dtype())), {0, 1});
}
Value distance(Value a, Value b) { return reduce_max(abs(a - b), {0, 1}); }
Value times_columns(Value x, Value s) { return x * cast(expand_dims(s, {-2}), x.dtype()); }

/// Backward errors of the factors are a few n roundings of the norm (Higham, Accuracy and Stability, 19.3); both bounds are ten times what
/// is seen.
void check_all(const Array& a, double norm) {
  const std::int64_t rows = a.shape()[0], columns = a.shape()[1];
  const double allowed = 10 * static_cast<double>(std::max(rows, columns)) * rounding_of(a.dtype());
  SCOPED_TRACE(type_of(a).to_string());
  for (const bool whole : {false, true}) {
    const auto by_qr = compiled(a, [&](Value x) {
      const Values f = qr(x, whole);
      return Values{distance(matmul(f[0], f[1]), x), bend(f[0]), distance(f[1], triu(f[1]))};
    });
    EXPECT_LE(by_qr[0].get_double(0), allowed * norm);
    EXPECT_LE(by_qr[1].get_double(0), allowed);
    EXPECT_EQ(by_qr[2].get_double(0), 0);
    const auto by_svd = compiled(a, [&](Value x) {
      const Values f = svd(x, whole);
      const Dim k = f[1].dim(-1);
      const Value product = matmul(times_columns(slice_axis(f[0], 1, 0, k), f[1]), slice_axis(f[2], 0, 0, k));
      return Values{distance(product, x), bend(f[0]), bend(adjoint_of(f[2])), f[1]};
    });
    EXPECT_LE(by_svd[0].get_double(0), allowed * norm);
    EXPECT_LE(by_svd[1].get_double(0), allowed);
    EXPECT_LE(by_svd[2].get_double(0), allowed);
    for (std::int64_t i = 0; i < by_svd[3].size(); ++i) {
      EXPECT_GE(by_svd[3].get_double(i), 0);
      if (i > 0) {
        EXPECT_GE(by_svd[3].get_double(i - 1), by_svd[3].get_double(i));
      }
    }
  }
  if (rows != columns) return;
  const auto by_eigh = compiled(a, [&](Value x) {
    const Value even = (x + adjoint_of(x)) * 0.5;
    const Values f = eigh(even);
    return Values{distance(matmul(even, f[1]), times_columns(f[1], f[0])), bend(f[1]), f[0]};
  });
  EXPECT_LE(by_eigh[0].get_double(0), allowed * norm);
  EXPECT_LE(by_eigh[1].get_double(0), allowed);
  for (std::int64_t i = 1; i < rows; ++i) EXPECT_LE(by_eigh[2].get_double(i - 1), by_eigh[2].get_double(i));
}

TEST(Decompositions, MultiplyToTheMatrix) {
  std::mt19937 random(1);
  for (const DType type : types)
    for (const Dims& shape : {Dims{1, 1}, Dims{2, 2}, Dims{33, 33}, Dims{5, 20}, Dims{20, 5}})
      check_all(random_array({type, shape}, -1, 1, random), std::sqrt(static_cast<double>(shape[0].value() * shape[1].value())));
}

TEST(Decompositions, OfMatricesWithoutFullRankHaveOrthonormalVectors) {
  Array ones(f32, {6, 6}), zeros(f64, {4, 4}), one(c64, {4, 3});
  for (std::int64_t i = 0; i < 36; ++i) ones.set_double(i, 1);
  one.set_complex(7, {0, 3});
  check_all(ones, 6);
  check_all(zeros, 0);
  check_all(one, 3);
}

TEST(Decompositions, SizesOfElementsNeitherOverflowNorVanish) {
  for (const double size : {1e-30, 1e30}) {
    const Array a = floats({2, 2}, {static_cast<float>(3 * size), 0, 0, static_cast<float>(-4 * size)});
    const auto all = compiled(a, [](Value x) { return Values{svd(x)[1], eigh(x)[0], qr(x)[1]}; });
    EXPECT_NEAR(all[0].get_double(0) / size, 4, 4e-6);
    EXPECT_NEAR(all[1].get_double(0) / size, -4, 4e-6);
    EXPECT_NEAR(all[2].get_double(3) / size, -4, 4e-6);
  }
}

TEST(Decompositions, AMatrixOfABatchIsTheMatrixAlone) {
  std::mt19937 random(2);
  const Array batch = random_array({f32, {3, 9, 9}}, -1, 1, random);
  const auto all = [](Value x) {
    Values results = eigh(x);
    for (const Values& more : {svd(x), qr(x)}) results.insert(results.end(), more.begin(), more.end());
    return results;
  };
  const auto together = compiled(batch, all);
  for (std::int64_t item = 0; item < 3; ++item) {
    Array one(f32, {9, 9});
    for (std::int64_t i = 0; i < 81; ++i) one.set_double(i, batch.get_double(item * 81 + i));
    const auto alone = compiled(one, all);
    for (std::size_t result = 0; result < alone.size(); ++result)
      for (std::int64_t i = 0; i < alone[result].size(); ++i)
        ASSERT_EQ(alone[result].get_double(i), together[result].get_double(item * alone[result].size() + i)) << result;
  }
}

TEST(Decompositions, DerivativesAtEqualValuesAreFinite) {
  Array unit(f64, {3, 3});
  for (std::int64_t i = 0; i < 3; ++i) unit.set_double(4 * i, 2);
  const auto all = compiled(unit, [](Value x) {
    const Values f = eigh(x), g = svd(x);
    return Values{grad(sum_all(f[0] * f[0]) + sum_all(g[1]), {x})[0], grad(sum_all(f[1] + g[0] + g[2]), {x})[0]};
  });
  for (std::int64_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(all[0].get_double(i), i % 4 == 0 ? 5 : 0, 1e-12);
    EXPECT_TRUE(std::isfinite(all[1].get_double(i)));
  }
}

TEST(Decompositions, RefuseOtherShapes) {
  Graph graph;
  const std::vector<Type> shapes{{f32, {4}}, {i32, {2, 2}}, {f32, {2, 3}}, {f32, {Dim::symbol("N", 9), 3}}};
  const Values x = inputs_for(graph, shapes);
  EXPECT_THROW(qr(x[0]), Error);
  EXPECT_THROW(svd(x[1]), Error);
  EXPECT_THROW(eigh(x[2]), Error);
  EXPECT_THROW(svd(x[3]), Error);
  EXPECT_THROW(pinv(x[3]), Error);
}

}  // namespace decompositions_test
}  // namespace rlx::test
