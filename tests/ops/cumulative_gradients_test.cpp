// Derivatives of running products against sums of products written out, with zeros among the elements, and those of running extremes.
#include <gtest/gtest.h>

#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

struct Form {
  bool exclusive, reverse;
};
constexpr Form forms[] = {{false, false}, {false, true}, {true, false}, {true, true}};

/// Whether element `j` is a factor of the running product at `i`.
bool counts(Form form, std::size_t j, std::size_t i) { return (form.reverse ? j > i : j < i) || (j == i && !form.exclusive); }

/// The running product at `i` without some of its elements; 0 where one of them is none of its factors.
double product_without(const Doubles& x, Form form, std::size_t i, const std::vector<std::size_t>& without) {
  double product = 1;
  for (std::size_t j : without) product *= counts(form, j, i);
  for (std::size_t j = 0; j < x.size(); ++j)
    if (counts(form, j, i) && std::find(without.begin(), without.end(), j) == without.end()) product *= x[j];
  return product;
}

const Doubles weights{1, -2, 0.5, 3, 1.5, -1};
const std::vector<Doubles>& rows() {
  static const std::vector<Doubles> all{
      {2, -3, 0.5, 4, -1, 3}, {2, 0, 0.5, 4, -1, 3}, {0, 3, 2, 0, -1, 3}, {0, 0, 0, 2, 1, 0}, {2, 3, 1, 1, 2, 0}};
  return all;
}

/// The gradient of the weighted sum of the running products of v[0]; v[1] are the weights.
Value gradient(const Values& v, Form form) { return grad(sum(cumprod(v[0], 0, form.exclusive, form.reverse) * v[1], {0}), {v[0]})[0]; }

TEST(CumulativeProduct, ItsGradientIsTheSumOfProductsWithoutEachElement) {
  for (const Form form : forms)
    for (const Doubles& x : rows()) {
      Doubles wanted(6, 0);
      for (std::size_t j = 0; j < 6; ++j)
        for (std::size_t i = 0; i < 6; ++i) wanted[j] += weights[i] * product_without(x, form, i, {j});
      EXPECT_EQ(run({array_of(f64, {6}, x), array_of(f64, {6}, weights)}, [&](const Values& v) { return gradient(v, form); }), wanted)
          << form.exclusive << form.reverse;
    }
}

TEST(CumulativeProduct, ItsSecondDerivativesAreRightWithAnyNumberOfZeros) {
  for (const Form form : forms)
    for (const Doubles& x : rows())
      for (std::size_t k = 0; k < 6; ++k) {
        Doubles wanted(6, 0);
        for (std::size_t j = 0; j < 6; ++j)
          for (std::size_t i = 0; i < 6 && j != k; ++i) wanted[j] += weights[i] * product_without(x, form, i, {j, k});
        const auto row_of_hessian = [&](const Values& v) {
          const auto at = static_cast<std::int64_t>(k);
          return grad(sum(slice_axis(gradient(v, form), 0, at, at + 1), {0}), {v[0]})[0];
        };
        EXPECT_EQ(run({array_of(f64, {6}, x), array_of(f64, {6}, weights)}, row_of_hessian), wanted)
            << form.exclusive << form.reverse << " by " << k;
      }
}

TEST(CumulativeProduct, ItsGradientHasLinearTimeAndALengthThatIsASymbol) {
  Graph graph;
  const Value x = graph.input("x", {Dim::symbol("N", 1 << 20)}, f64);
  graph.output("y", grad(sum(cumprod(x, 0) + cummax(x, 0) + cummin(x, 0, true), {0}), {x})[0]);
  EXPECT_LT(graph.size(), 60u);
  Array ones(f64, {200000});
  for (std::int64_t i = 0; i < ones.size(); ++i) ones.set_double(i, 1 + 1e-6 * static_cast<double>(i % 7 == 0 ? i : -i) / 200000);
  const Array gradient = evaluate(graph, {{"x", ones}})[0];
  EXPECT_TRUE(std::isfinite(gradient.get_double(0)));
  EXPECT_GT(gradient.get_double(0), 150000);
}

// Elements 1, 2, 5 and 6 are the largest: pairs (0, 1), (2, 3), (4, 5), then pairs of those, as associative_scan goes.
TEST(CumulativeMax, TiesSplitByPairs) {
  const Array x = floats({7}, {1, 4, 4, 2, 3, 4, 4});
  const auto share_of_last = [&](const Values& v) { return grad(sum(slice_axis(cummax(v[0], 0), 0, 6, 7), {0}), {v[0]})[0]; };
  EXPECT_EQ(run({x}, share_of_last), (Doubles{0, 0.125, 0.125, 0, 0, 0.25, 0.5}));
  const auto negated = [&](const Values& v) { return grad(sum(slice_axis(cummin(-v[0], 0), 0, 6, 7), {0}), {v[0]})[0]; };
  EXPECT_EQ(run({x}, negated), (Doubles{-0.0, -0.125, -0.125, -0.0, -0.0, -0.25, -0.5}));
}

TEST(CumulativeMax, InfinitiesOfOtherElementsDoNotReachAGradient) {
  const Array x = floats({4}, {-INFINITY, 2, INFINITY, 1});
  const auto tangent = [&](const Values& v) { return jvp({cummax(v[0], 0)}, {v[0]}, {v[1]})[0]; };
  EXPECT_EQ(run({x, floats({4}, {INFINITY, 2, 3, INFINITY})}, tangent), (Doubles{INFINITY, 2, 3, 3}));
}

}  // namespace
}  // namespace rlx::test
