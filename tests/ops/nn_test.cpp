// Functions, activations, softmax, statistics, layers and losses: numbers from the C library and by hand, and behaviour at the edges of
// types.
#include <numbers>

#include "ops/near.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace {

/// The values of an elementwise function at some points.
Doubles at(DType dtype, const Doubles& points, Value (*function)(Operand)) {
  return values_of(run_all({array_of(dtype, {static_cast<std::int64_t>(points.size())}, points)},
                           [&](const Values& x) { return Values{function(x[0])}; })[0]);
}

struct Named {
  const char* name;
  Value (*build)(Operand);
  double (*wanted)(double);
  Doubles points;
};

/// Against the C library in f64. 1e-14: some dozens of roundings.
TEST(Functions, AgreeWithTheCLibrary) {
  const Doubles any{-700, -30, -2.5, -1e-9, -0.0, 0, 1e-9, 0.3, 2.5, 30, 700},
      inside{-1, -0.999999, -0.3, -1e-9, 0, 1e-9, 0.3, 0.999999, 1};
  const std::vector<Named> cases{{"ceil", ceil, std::ceil, any},
                                 {"trunc", trunc, std::trunc, any},
                                 {"exp2", exp2, std::exp2, any},
                                 {"cbrt", cbrt, std::cbrt, any},
                                 {"tan", tan, std::tan, inside},
                                 {"sinh", sinh, std::sinh, any},
                                 {"cosh", cosh, std::cosh, any},
                                 {"atanh", atanh, std::atanh, inside},
                                 {"asin", asin, std::asin, inside},
                                 {"erfc", erfc, std::erfc, {-30, -3, -0.5, -1e-9, 0, 0.4999, 0.5, 1, 3, 8}},
                                 {"asinh", asinh, std::asinh, {-1e300, -1e12, -3, -1e-9, 0, 1e-9, 2, 1e9, 1e12, 1e300}},
                                 {"acosh", acosh, std::acosh, {0.5, 1, 1 + 1e-9, 2, 1e9, 1e12, 1e300}},
                                 {"log2", log2, std::log2, {0, 1e-300, 0.5, 1, 8, 1e300}},
                                 {"log10", log10, std::log10, {0, 1e-300, 0.5, 1, 1000, 1e300}}};
  for (const Named& c : cases) {
    SCOPED_TRACE(c.name);
    Doubles wanted;
    for (double x : c.points) wanted.push_back(c.wanted(x));
    expect_near(at(f64, c.points, c.build), wanted, 1e-14);
  }
  // Beyond, the exponent -x^2 carries the rounding of 676 into the result: 676 * 2^-52.
  expect_near(at(f64, {20, 26}, erfc), {std::erfc(20), std::erfc(26)}, 1.5e-13);
  // acos is 0 at 1, and its argument there carries the rounding of 1 - x.
  expect_near(at(f64, {-1, -0.3, 0, 0.3, 0.999999, 1}, acos),
              {std::acos(-1), std::acos(-0.3), std::acos(0), std::acos(0.3), std::acos(0.999999), 0}, 1e-14);
}

TEST(Functions, Atan2KeepsSignedZerosAndInfinities) {
  const Doubles special{-INFINITY, -2, -0.0, 0, 1, INFINITY};
  Doubles y, x, wanted;
  for (double a : special)
    for (double b : special) y.push_back(a), x.push_back(b), wanted.push_back(std::atan2(a, b));
  const auto n = static_cast<std::int64_t>(y.size());
  const auto seen =
      values_of(run_all({array_of(f64, {n}, y), array_of(f64, {n}, x)}, [](const Values& v) { return Values{atan2(v[0], v[1])}; })[0]);
  expect_near(seen, wanted, 1e-15);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(std::signbit(seen[i]), std::signbit(wanted[i])) << y[i] << " " << x[i];
}

TEST(Functions, OfTwoOperandsDoNotOverflow) {
  const std::vector<Array> large{array_of(f32, {4}, {3e30, 0, -INFINITY, 3}), array_of(f32, {4}, {4e30, 0, 1, 4})};
  expect_near(values_of(run_all(large, [](const Values& v) { return Values{hypot(v[0], v[1])}; })[0]), {5e30, 0, INFINITY, 5}, 1e-6);
  const std::vector<Array> logs{array_of(f64, {4}, {1000, -INFINITY, INFINITY, 0}), array_of(f64, {4}, {1000, -INFINITY, 3, 1})};
  expect_near(values_of(run_all(logs, [](const Values& v) { return Values{logaddexp(v[0], v[1])}; })[0]),
              {1000 + std::numbers::ln2, -INFINITY, INFINITY, std::log1p(std::exp(1))}, 1e-15);
}

TEST(Functions, TestsOfFloatsSeeEveryKind) {
  const Doubles points{nan, INFINITY, -INFINITY, 0, 1e30};
  EXPECT_EQ(at(f32, points, isnan), (Doubles{1, 0, 0, 0, 0}));
  EXPECT_EQ(at(f32, points, isinf), (Doubles{0, 1, 1, 0, 0}));
  EXPECT_EQ(at(f32, points, is_finite), (Doubles{0, 0, 0, 1, 1}));
}

TEST(Activations, HaveTheirLimitsAtLargeMagnitudes) {
  const Doubles points{-3e38, -200, 200, 3e38};
  expect_near(at(f32, points, sigmoid), {0, 0, 1, 1}, 1e-7);
  expect_near(at(f32, points, softplus), {0, 0, 200, 3e38}, 1e-7);
  expect_near(at(f32, points, log_sigmoid), {-3e38, -200, 0, 0}, 1e-7);
  for (auto function : {silu, gelu, gelu_tanh, mish}) {
    const auto seen = at(f32, {-1e15, -200, 200, 1e15}, function);
    EXPECT_NEAR(seen[0], 0, 1e-30);
    EXPECT_NEAR(seen[1], 0, 1e-30);
    EXPECT_NEAR(seen[2], 200, 1e-4);
    EXPECT_NEAR(seen[3], 1e15, 1e9);
  }
}

/// Numbers from PyTorch's documentation formulas, computed by hand in f64.
TEST(Activations, AgreeWithTheirFormulas) {
  const Doubles points{-4, -1.5, -0.25, 0, 0.5, 2, 7};
  auto expect = [&](Value (*build)(Operand), auto wanted) {
    Doubles values;
    for (double x : points) values.push_back(wanted(x));
    expect_near(at(f64, points, build), values, 1e-14);
  };
  expect(relu, [](double x) { return x > 0 ? x : 0; });
  expect(relu6, [](double x) { return std::clamp(x, 0.0, 6.0); });
  expect(silu, [](double x) { return x / (1 + std::exp(-x)); });
  expect(gelu, [](double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; });
  expect(gelu_tanh, [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); });
  expect(mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
  expect(hardsigmoid, [](double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); });
  expect(hardswish, [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; });
  expect(softsign, [](double x) { return x / (1 + std::abs(x)); });
  expect(selu, [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); });
}

TEST(Softmax, OfARowOfMinusInfinityIsZeroOnlyWhenAsked) {
  const Array rows = array_of(f32, {2, 2}, {-INFINITY, -INFINITY, 0, 0});
  expect_near(values_of(run_all({rows}, [](const Values& x) { return Values{softmax(x[0])}; })[0]), {nan, nan, 0.5, 0.5}, 0);
  expect_near(values_of(run_all({rows}, [](const Values& x) { return Values{softmax(x[0], -1, true)}; })[0]), {0, 0, 0.5, 0.5}, 0);
  expect_near(values_of(run_all({rows}, [](const Values& x) { return Values{logsumexp(x[0], {1})}; })[0]), {-INFINITY, std::numbers::ln2},
              1e-7);
}

TEST(Softmax, LogSumExpPassesInfinityAndNaNOnToItsDerivative) {
  const Array rows = floats({5, 3}, {INFINITY, 1, 2, 1, NAN, 2, -INFINITY, 0, 0, -INFINITY, -INFINITY, -INFINITY, 1e9, 1e9, 0});
  expect_near(run({rows}, [](const Values& x) { return grad(sum_all(logsumexp(x[0], {1})), {x[0]})[0]; }),
              {NAN, 0, 0, NAN, NAN, NAN, 0, 0.5, 0.5, 0, 0, 0, 0.5, 0.5, 0}, 1e-6);
}

TEST(Softmax, AxisOutOfRangeNamesWhatIsAllowed) {
  Graph graph;
  Value x = graph.input("x", {2, 8}, f32);
  try {
    softmax(x, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(without_place(error.what()), "rlx.softmax: axis 4 is out of range for f32[2,8] (allowed: -2..1)");
  }
}

TEST(Statistics, CountTheSizesOfSymbolicAxes) {
  Graph graph;
  Value x = graph.input("x", {Dim::symbol("S", 64), 2}, f32);
  graph.output("mean", mean(x, {0}));
  graph.output("var", var(x, {0, 1}, 1));
  const auto results = evaluate(graph, {{"x", array_of(f32, {3, 2}, {1, 2, 3, 4, 5, 9})}});
  expect_near(values_of(results[0]), {3, 5}, 1e-7);
  expect_near(values_of(results[1]), {8}, 1e-7);  // sum of squares 40 about the mean 4, over 5
}

TEST(Statistics, NormsAndTests) {
  const Array x = array_of(f32, {4}, {3, 0, -4, 0});
  auto norm_of = [&](double p) { return values_of(run_all({x}, [&](const Values& v) { return Values{norm(v[0], {0}, p)}; })[0])[0]; };
  EXPECT_FLOAT_EQ(norm_of(0), 2);
  EXPECT_FLOAT_EQ(norm_of(1), 7);
  EXPECT_FLOAT_EQ(norm_of(2), 5);
  EXPECT_FLOAT_EQ(norm_of(3), std::cbrt(91.0f));
  EXPECT_FLOAT_EQ(norm_of(INFINITY), 4);
  EXPECT_FLOAT_EQ(norm_of(-INFINITY), 0);
  const auto tests = run_all({x}, [](const Values& v) { return Values{all(v[0], {0}), any(v[0], {0}), count_nonzero(v[0], {0})}; });
  EXPECT_EQ(tests[0].get_double(0), 0);
  EXPECT_EQ(tests[1].get_double(0), 1);
  EXPECT_EQ(tests[2].get_int(0), 2);
}

TEST(Layers, SmallNumbersByHand) {
  const Array x = array_of(f32, {2, 2}, {1, 2, 3, 4}), w = array_of(f32, {3, 2}, {1, 0, 0, 1, 1, 1}), b = array_of(f32, {3}, {10, 20, 30});
  EXPECT_EQ(values_of(run_all({x, w, b}, [](const Values& v) { return Values{linear(v[0], v[1], v[2])}; })[0]),
            (Doubles{11, 22, 33, 13, 24, 37}));
  const Array ids = array_of(i32, {3}, {2, 0, 9});
  EXPECT_EQ(values_of(run_all({w, ids}, [](const Values& v) { return Values{embedding(v[0], v[1])}; })[0]), (Doubles{1, 1, 1, 0, 1, 1}));
  EXPECT_EQ(values_of(run_all({ids}, [](const Values& v) { return Values{one_hot(v[0], 3)}; })[0]), (Doubles{0, 0, 1, 1, 0, 0, 0, 0, 0}));
  const Array experts = array_of(f32, {2, 2, 1}, {1, 1, 10, 100}), chosen = array_of(i32, {2}, {1, 0});
  EXPECT_EQ(values_of(run_all({x, experts, chosen}, [](const Values& v) { return Values{grouped_matmul(v[0], v[1], v[2])}; })[0]),
            (Doubles{210, 7}));
  const Array down = array_of(f32, {2, 1}, {1, 1}), up = array_of(f32, {1, 2}, {1, 2}), square = array_of(f32, {2, 2}, {1, 0, 0, 1});
  EXPECT_EQ(values_of(run_all({x, square, down, up}, [](const Values& v) { return Values{lora_matmul(v[0], v[1], v[2], v[3], 0.5)}; })[0]),
            (Doubles{2.5, 5, 6.5, 11}));
}

TEST(Norms, Bf16IsRoundedOnce) {
  // 512 ones and one 3: a mean kept in bf16 would stop counting at 256.
  Doubles row(512, 1);
  row[0] = 3;
  const double mean = 514.0 / 512, var = (511 * (1 - mean) * (1 - mean) + (3 - mean) * (3 - mean)) / 512;
  const auto seen =
      values_of(run_all({array_of(bf16, {1, 512}, row)}, [](const Values& x) { return Values{layer_norm(x[0], {}, {}, {-1}, 0)}; })[0]);
  EXPECT_NEAR(seen[0], (3 - mean) / std::sqrt(var), 0x1p-8 * 23);
  EXPECT_NEAR(seen[1], (1 - mean) / std::sqrt(var), 0x1p-8 * 0.045);
}

TEST(Losses, IgnoredTargetsDoNotCount) {
  const Array x = array_of(f32, {3, 2}, {0, 0, 5, nan, 0, INFINITY}), t = array_of(i64, {3}, {1, -100, 7});
  const auto seen =
      run_all({x, t}, [](const Values& v) { return Values{cross_entropy(v[0], v[1]), cross_entropy(v[0], v[1], Reduction::none)}; });
  expect_near(values_of(seen[0]), {std::numbers::ln2}, 1e-7);
  expect_near(values_of(seen[1]), {std::numbers::ln2, 0, 0}, 1e-7);
  // A negative ignore_index does not wrap into an unsigned class.
  const Array bytes = array_of(u8, {3}, {0, 0, 0});
  expect_near(values_of(run_all({x, bytes}, [](const Values& v) { return Values{cross_entropy(v[0], v[1], Reduction::none)}; })[0]),
              {std::numbers::ln2, nan, nan}, 1e-7);
}

TEST(Losses, BinaryCrossEntropyIsBoundedAtCertainty) {
  const Array p = array_of(f32, {3}, {0, 1, 0.5}), t = array_of(f32, {3}, {1, 1, 0});
  expect_near(values_of(run_all({p, t}, [](const Values& v) { return Values{bce(v[0], v[1], Reduction::none)}; })[0]),
              {100, 0, std::numbers::ln2}, 1e-6);
  const Array logits = array_of(f32, {3}, {-200, 200, 0});
  expect_near(values_of(run_all({logits, t}, [](const Values& v) { return Values{bce_with_logits(v[0], v[1], {}, Reduction::none)}; })[0]),
              {200, 0, std::numbers::ln2}, 1e-6);
}

TEST(Losses, KlDivergenceOfNothingIsNothing) {
  const Array x = array_of(f32, {2}, {-1, -2}), t = array_of(f32, {2}, {0, 0.5});
  expect_near(values_of(run_all({x, t}, [](const Values& v) { return Values{kl_div(v[0], v[1], false, Reduction::none)}; })[0]),
              {0, 0.5 * (std::log(0.5) + 2)}, 1e-6);
}

}  // namespace
}  // namespace rlx::test
