// The functions of one float over their whole range, in kernels of every level of this CPU and in the reference, against wider arithmetic.
#include "ops/function_sweep.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace function_ranges_test {

TEST(FunctionRanges, OfF32) { expect_whole_range<float, double>(2); }
TEST(FunctionRanges, OfF64) { expect_whole_range<double, long double>(1); }

/// Where most roundings meet, as the errors of a few thousand arguments are not the largest ones.
TEST(FunctionRanges, OfTailsAndRoots) {
  std::mt19937_64 random(11);
  std::vector<double> x;
  for (int i = 0; i < 300000; ++i) x.push_back(static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-63 * (i % 3 == 0 ? 1 : 40));
  for (const auto& f : exact_functions<long double>())
    if (f.name == "erfc" || f.name == "gelu" || f.name == "lgamma")
      expect_within(f, x, by_kernel(f.build, x, cpu::allowed_levels(cpu::cpu_features()).back()), "dense");
}

std::vector<double> at(DType t, const std::vector<double>& x, const std::function<Value(Value)>& build) {
  return values_of(computed({array_of(t, {static_cast<std::int64_t>(x.size())}, x)}, [&](const Values& v) { return build(v[0]); }));
}
constexpr double infinity = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST(FunctionEdges, AcoshIsNotANumberBelowOne) {
  for (const DType t : {f32, f64})
    for (const double y : at(t, {0.999, 0.5, 0, -0.0, -1, -1.5, -2, -1e5, -1e30, -infinity}, [](Value x) { return acosh(x); }))
      EXPECT_TRUE(std::isnan(y)) << y;
}

TEST(FunctionEdges, RootsOfCubesAreWhole) {
  std::vector<double> cubes, roots;
  for (int i = -100; i <= 100; ++i) cubes.push_back(i * i * i), roots.push_back(i);
  for (const DType t : {f32, f64}) EXPECT_EQ(at(t, cubes, [](Value x) { return cbrt(x); }), roots);
}

TEST(FunctionEdges, RootsOfDenormalNumbersAreNumbers) {
  for (const double x : {1e-45, -1e-45, 1e-39})
    for (const float y :
         by_kernel<float>([](Value v) { return cbrt(v); }, {static_cast<float>(x)}, cpu::allowed_levels(cpu::cpu_features()).back()))
      EXPECT_TRUE(y == 0 || std::fabs(y - std::cbrt(static_cast<float>(x))) < 1e-6 * std::fabs(y)) << y;
}

TEST(FunctionEdges, HypotOfInfinityIsInfiniteBesideNaN) {
  const std::vector<double> x{infinity, -infinity, not_a_number, not_a_number, 3, 0}, z{not_a_number, not_a_number, infinity, 1, -4, -0.0};
  for (const DType t : {f32, f64}) {
    const auto y = values_of(computed({array_of(t, {6}, x), array_of(t, {6}, z)}, [](const Values& v) { return hypot(v[0], v[1]); }));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(y[i], infinity);
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 5);
    EXPECT_EQ(y[5], 0);
  }
}

TEST(FunctionEdges, LogarithmsHaveOneDerivativeOnBothSidesOfZero) {
  for (const DType t : {f32, f64})
    for (Value (*f)(Operand) : {log2, log10}) {
      const auto slopes = at(t, {0.5, -0.5, 0, infinity}, [=](Value x) { return grad(sum(f(x), {0}), {x})[0]; });
      EXPECT_NEAR(slopes[0], f == log2 ? 2 / std::numbers::ln2 : 2 / std::numbers::ln10, 1e-6);
      EXPECT_EQ(slopes[1], -slopes[0]);
      EXPECT_EQ(slopes[2], infinity);
      EXPECT_EQ(slopes[3], 0);
    }
}

TEST(FunctionEdges, SincOfWholeNumbersIsZero) {
  for (const DType t : {f32, f64})
    for (const double y : at(t, {1, -1, 2, 125, 1e5, 8388608, 1e20}, [](Value x) { return sinc(x); })) EXPECT_EQ(y, 0);
}

TEST(FunctionEdges, HardswishIsFiniteForFiniteNumbers) {
  for (const auto& [t, largest] : {std::pair{f32, 3e38}, std::pair{f64, 1e308}, std::pair{bf16, 3e38}, std::pair{f16, 65504.0}}) {
    const Array given = array_of(t, {4}, {largest, -largest, 3, -3});
    const double rounded = given.get_double(0);
    EXPECT_EQ(at(t, {largest, -largest, 3, -3}, [](Value x) { return hardswish(x); }), (std::vector<double>{rounded, 0, 3, 0}));
    EXPECT_EQ(at(t, {largest, -largest, infinity, -infinity, 3, -3}, [](Value x) { return grad(sum(hardswish(x), {0}), {x})[0]; }),
              (std::vector<double>{1, 0, 1, 0, 1, 0}));
  }
}

/// The parts of the unit vector, and those of the angle's gradient, also where squares overflow or vanish.
TEST(FunctionEdges, DerivativesOfHypotAndAtan2HoldOverTheWholeRange) {
  for (const DType t : {f32, f64}) {
    const double far = t == f32 ? 1e30 : 1e250;
    const std::vector<double> x{3 * far, 3 / far, infinity, 1, infinity, 0, 2, 0}, y{4 * far, 4 / far, 1, -infinity, infinity, 0, 0, 5};
    const auto slopes = [&](Value (*function)(Operand, Operand), std::size_t by) {
      return values_of(computed({array_of(t, {8}, x), array_of(t, {8}, y)},
                                [&](const Values& v) { return grad(sum(function(v[0], v[1]), {0}), {v[by]})[0]; }));
    };
    const std::vector<double> along_x{0.6, 0.6, 1, 0, std::sqrt(0.5), 0, 1, 0}, along_y{0.8, 0.8, 0, -1, std::sqrt(0.5), 0, 0, 1};
    const auto by_x = slopes(hypot, 0), by_y = slopes(hypot, 1), angle_by_first = slopes(atan2, 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(by_x[i], along_x[i], 1e-6) << i;
      EXPECT_NEAR(by_y[i], along_y[i], 1e-6) << i;
    }
    // atan2(x, y) by x: y / (x^2 + y^2)
    EXPECT_NEAR(angle_by_first[0] * far, 0.16, 1e-6);
    EXPECT_NEAR(angle_by_first[1] / far, 0.16, 1e-6);
    for (const std::size_t i : {2, 3, 4}) EXPECT_EQ(angle_by_first[i], 0) << i;
    EXPECT_TRUE(std::isnan(angle_by_first[5]));
  }
}

/// Derivatives that level off are finite far out, where a factor overflows and another vanishes; what JAX has there is NaN for some.
TEST(FunctionEdges, DerivativesFarOutAreFinite) {
  using Function = Value (*)(Operand);
  for (const Function f : {Function(silu), Function(gelu), Function(gelu_tanh), Function(mish), Function(softplus), Function(sigmoid),
                           Function(log_sigmoid), Function(softsign), Function(tanhshrink), Function(asinh), Function(erf), Function(erfc),
                           Function(tanh), Function(atan), Function(cbrt)})
    for (const DType t : {f32, f64}) {
      const auto slopes =
          at(t, {-3e38, -1e20, -1000, -104, -89, 89, 104, 1000, 1e20, 3e38}, [&](Value x) { return grad(sum(f(x), {0}), {x})[0]; });
      for (const double slope : slopes) EXPECT_LE(std::fabs(slope), 1.0001);
    }
}

}  // namespace function_ranges_test
}  // namespace rlx::test
