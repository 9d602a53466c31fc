// Special functions against values computed with 40 digits, and their values at poles and borders.
#include "ops/near.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace special_test {

constexpr double infinity = std::numeric_limits<double>::infinity();

Doubles of(Value (*op)(Operand), const Doubles& x) {
  return run({array_of(f64, {static_cast<std::int64_t>(x.size())}, x)}, [op](const Values& v) { return op(v[0]); });
}
Doubles of(Value (*op)(Operand, Operand), const Doubles& a, const Doubles& x) {
  const auto size = static_cast<std::int64_t>(a.size());
  return run({array_of(f64, {size}, a), array_of(f64, {size}, x)}, [op](const Values& v) { return op(v[0], v[1]); });
}
/// d op(a, x) / da.
Doubles slope_in_first(Value (*op)(Operand, Operand), const Doubles& a, const Doubles& x) {
  const auto size = static_cast<std::int64_t>(a.size());
  return run({array_of(f64, {size}, a), array_of(f64, {size}, x), array_of(f64, {size}, Doubles(a.size(), 1))},
             [op](const Values& v) { return jvp({op(v[0], v[1])}, {v[0]}, {v[2]})[0]; });
}

TEST(Special, LogGamma) {
  // A few roundings of terms up to ten times the result.
  expect_near(of(lgamma, {1e-300, 1e-5, 0.3, 3, 9.5, 10.5, 171.5, 1e10, 1e300, -0.5, -2.25, -30.75}),
              {690.7755278982137, 11.512919692895826, 1.0957979948180756, 0.6931471805599453, 11.689333420797269, 13.940625219403763,
               709.1431630309282, 220258509288.81058, 6.897755278982137e+302, 1.2655121234846454, 0.5555015450206475, -75.73940730906097},
              1e-14);
  expect_near(of(lgamma, {1, 2, 0.99999999, 2.00001}), {0, 0, 5.772156760265731e-09, 4.22787559764836e-06}, 1e-14);
  expect_near(of(lgamma, {0, -0.0, -1, -7, infinity, -infinity, nan}), {infinity, infinity, infinity, infinity, infinity, infinity, nan},
              0);
}

constexpr double four_ulps = 4 * std::numeric_limits<double>::epsilon();

/// With 60 digits, at the numbers nearest to some roots, far from others and beside poles.
TEST(Special, LogGammaBetweenNegativeIntegers) {
  expect_near(
      of(lgamma, {-2.4570247, -2.457024738220801, -2.7476826467274127, -2.62, -2.55, -3.14358088834998, -3.955294284858598, -4.0393618398,
                  -5.991781, -10.000000275573013, -17.000000000000004, -24.000001, -2.0000000000000004, -2.9999999999999996, -24.6}),
      {5.792758455100296e-08, -6.168712140884665e-16, 1.733509244024501e-16, -0.11815946067133064, -0.09942418386840478,
       1.6978655906121085e-15, -4.14382750757705e-16, -1.5930388397784991e-09, -1.7624461330703989, 1.2668051387565237e-09,
       -0.2340087832595242, -40.96922203991689, 34.657359027997266, 33.55874673932916, -55.516349922557104},
      four_ulps);
}

TEST(Special, DigammaNearItsRoots) {
  expect_near(of(digamma, {1.4616321449683622, 1.4616321449683625, 1.46, -0.5040830082644554, -0.504083, -0.3, -1.5734984731623904,
                           -2.6107208684441447, -9.702672540001863, -24.737, -24.99, -7.7}),
              {-9.241265521729427e-17, 1.2245374622004068e-16, -0.0015805619870834522, 7.289763902976895e-17, 7.388256696842615e-08,
               2.113309779635399, 1.5649788481838454e-16, -1.0720275936410002e-15, 4.939256869086382e-15, 0.33345651461102466,
               -96.7287488244621, -0.17774844371896933},
              four_ulps);
}

/// By mpmath, of the numbers of f64 next to roots and others between poles.
TEST(Special, DigammaNearItsRootsFarLeft) {
  expect_near(
      of(digamma, {-25.756275080771037, -27.759811695826706, -30.76453858671817, -63.79424045325521, -127.81717272937543,
                   -1000.8641588557814, -123456.91666034167, -30.76, -25.9, -40.6, -9999999999.0625, -1099511627775.999, -1000000.4}),
      {-2.68244023155807e-14, 2.352288511952029e-15, 2.288913282845823e-14, -2.6020659291153963e-14, -6.646434318064533e-14,
       1.7752260239314121e-12, -1.0244523108413178e-09, 0.09692557430234552, -6.395404211870856, 2.6952674546184183, 38.81970374546111,
       -996.2709000137364, 14.836276788401781},
      four_ulps);
}

TEST(Special, DigammaHasADerivativeOnBothSidesOfZero) {
  const Doubles x{-0.3, -2.6, -7.25, 0.3, 2.5, 1e-3, 1e6}, ones(7, 1);
  const Doubles slopes =
      run({array_of(f64, {7}, x), array_of(f64, {7}, ones)}, [](const Values& v) { return jvp({digamma(v[0])}, {v[0]}, {v[1]})[0]; });
  expect_near(slopes,
              {13.945160267805722, 10.591688362390217, 19.61035453929327, 12.245364546107732, 0.49035775610023485, 1000001.6425331958,
               1.0000005000001667e-06},
              1e-14);
}

TEST(Special, Digamma) {
  expect_near(of(digamma, {1e-5, 0.3, 2, 9.5, 1e6, -0.5, -2.25, -30.75}),
              {-100000.57719921567, -3.502524222200133, 0.42278433509846713, 2.1977378764029494, 13.815510057964191, 0.03648997397857652,
               4.158583564657972, 0.30046938161754044},
              1e-13);  // at -0.5 terms of about 3 cancel
  expect_close(of(digamma, {1.4616321449683622}), {0}, 1e-14);
  expect_near(of(digamma, {0, -0.0, -3, infinity, nan}), {nan, nan, nan, infinity, nan}, 0);
}

TEST(Special, Zeta) {
  // pow to a few units in the last place, of exponents up to 100.
  expect_near(of(zeta, {2, 1.01, 1.5, 3, 30, 100, 2.5, 7}, {1, 1, 0.25, 100, 10, 1, 1e6, 2.5}),
              {1.6449340668482264, 100.57794333849678, 10.213055360466601, 5.0502499916675e-05, 1.0619503904151228e-30, 1.0,
               6.66667166666875e-10, 0.0018305640382639378},
              2e-14);
  expect_near(slope_in_first(zeta, {2, 1.5, 7}, {1, 0.25, 2.5}), {-0.9375482543158438, 7.06005081904969, -0.0017541347816030475}, 1e-12);
  expect_near(of(zeta, {1, 1, 0.5, 2, 4, 3, 2.5, 2, 3, 2, 1e4, 1e38, 1e300, nan},
                 {2, -2, 1, 0, -1, 0, -0.5, -11.5, infinity, 1e300, 0.01, 0.5, 2, 1}),
              {infinity, infinity, nan, infinity, infinity, nan, nan, nan, 0, 1e-300, infinity, infinity, 0, nan}, 1e-15);
  expect_near(slope_in_first(zeta, {nan, 2, 0.5, 3}, {1, nan, 1, infinity}), {nan, nan, nan, 0}, 0);
  const Array q = array_of(f64, {4}, {nan, -0.5, infinity, 1});
  expect_near(run({q}, [](const Values& v) { return grad(sum_all(zeta(full_like(v[0], 2.5), v[0])), {v[0]})[0]; }),
              {nan, nan, 0, -2.81683466829264}, 1e-13);
  expect_near(of(zeta, {2, 2, 3, 3, 5}, {-0.5, -1.5, -0.5, -2.25, -9.75}),
              {8.934802200544679, 9.379246644989124, 0.41439832211716, -61.94847488703008, 1020.0656384221169}, 2e-14);
}

TEST(Special, IncompleteBeta) {
  const auto betainc_of = [](const Doubles& a, const Doubles& b, const Doubles& x, const std::function<Value(const Values&)>& f) {
    const auto size = static_cast<std::int64_t>(a.size());
    return run({array_of(f64, {size}, a), array_of(f64, {size}, b), array_of(f64, {size}, x), array_of(f64, {size}, Doubles(a.size(), 1))},
               f);
  };
  const auto value = [](const Values& v) { return betainc(v[0], v[1], v[2]); };
  const Doubles a{2.5, 80, 0.25, 7}, b{0.75, 30, 300, 7}, x{0.5, 0.75, 0.001, 0.25};
  expect_near(betainc_of(a, b, x, value), {0.12408240258168674, 0.69543417444795766, 0.77121729793263247, 0.024290144443511963}, 1e-12);
  const std::vector<Doubles> slopes{{-0.094877391733592671, -0.019810394263842493, -0.89654877168975213, -0.0202379935585224},
                                    {0.20370101780465816, 0.056206548489494212, 0.00050471786106651131, 0.011922124505254983},
                                    {0.6579700492858666, 8.5398150169700217, 151.30192847753458, 0.5219428539276123}};
  for (std::size_t by = 0; by < 3; ++by)
    expect_near(betainc_of(a, b, x, [&](const Values& v) { return jvp({value(v)}, {v[by]}, {v[3]})[0]; }), slopes[by], 1e-10);
  expect_near(betainc_of({2, 2, -1, 2, 2, nan, 1e-300}, {3, 3, 2, 3, 3, 1, 1}, {0, 1, 0.5, -0.1, 1.1, 0.5, 0.5}, value),
              {0, 1, nan, nan, nan, nan, 1}, 0);
  // As in JAX: all of the distribution lies at 0, or all of it at 1, or nowhere.
  expect_near(betainc_of({0, 0, 2, 2, 2, 2, infinity, infinity, 0, infinity, 0, infinity},
                         {3, 3, infinity, infinity, 0, 0, 3, 3, 0, infinity, infinity, 0},
                         {0, 0.5, 0, 0.5, 0.5, 1, 0.5, 1, 0.5, 0.5, 0.5, 0.5}, value),
              {0, 1, 0, 1, 0, 1, 0, 1, nan, nan, 1, 0}, 0);
  // The density at the ends: b x^0, 0 or infinity.
  expect_near(betainc_of({1, 2, 0.5, 4, 4, 4}, {3, 3, 3, 1, 2, 0.5}, {0, 0, 0, 1, 1, 1},
                         [&](const Values& v) { return jvp({value(v)}, {v[2]}, {v[3]})[0]; }),
              {3, 0, infinity, 4, 0, infinity}, 0);
}

TEST(Special, BesselFunctions) {
  expect_near(of(bessel_i0e, {0, 1e-8, 0.5, 5, 19.9, 20.1, 100, 1e6, -5, infinity}),
              {1, 0.99999999, 0.6450352704491501, 0.18354081260932836, 0.0900085888643896, 0.08955376362061344, 0.03994437929909668,
               0.00039894233026924577, 0.18354081260932836, 0},
              1e-14);
  expect_near(of(bessel_i1e, {0, 1e-8, 0.5, 5, 19.9, 20.1, -100, 1e6, -infinity, 1e-300}),
              {0, 4.99999995e-09, 0.1564208031848717, 0.16397226694454237, 0.0877171021317061, 0.08729685184320159, -0.03974415302513025,
               0.0003989421307980308, 0, 5e-301},
              1e-14);
}

/// In f32 as exact as the values: what they are made of cancels. i0e' = i1e - i0e, i1e' = i0e - i1e / x - i1e.
TEST(Special, DerivativesOfBesselFunctionsAreRoundedOnce) {
  const auto slopes = [](Value (*op)(Operand), const Doubles& x) {
    return run({floats({4}, x)}, [=](const Values& v) { return grad(sum_all(op(v[0])), {v[0]})[0]; });
  };
  expect_near(slopes(bessel_i0e, {20, 50, 1.5, 2e-38}), {-0.00227408970154, -0.000568502754559, -0.148394221633, -1}, 1e-7);
  expect_near(slopes(bessel_i1e, {1.5, 2.5, 20, 2e-38}), {0.00236796335262, -0.0191720677316, -0.00210122140763, 0.5}, 1e-7);
}

/// The second derivative of op, by the derivative of its derivative.
Doubles curvature(const std::function<Value(Value)>& op, const Doubles& x, DType dtype = f64) {
  const auto size = static_cast<std::int64_t>(x.size());
  return run({array_of(dtype, {size}, x), array_of(dtype, {size}, Doubles(x.size(), 1))}, [&](const Values& v) {
    Value slope = jvp({op(v[0])}, {v[0]}, {v[1]})[0];
    return jvp({slope}, {v[0]}, {v[1]})[0];
  });
}

/// With 60 digits: terms of derivatives that cancel, or are 0 times infinity, are summed up otherwise.
TEST(Special, SecondDerivativesKeepTheirDigits) {
  expect_near(
      curvature(bessel_i1e, {2.5e-16, 1e-8, 1e-3, 0.3, 5, -0.01}),
      {-0.9999999999999996, -0.9999999812500002, -0.9981267489067654, -0.5692120167652346, 0.0028614342819426684, 0.9814239113867611},
      2e-13);
  expect_near(curvature(bessel_i0e, {2.5e-16, 1e-8, 1e-3, 0.3, 5, -0.01}),
              {1.4999999999999993, 1.4999999750000002, 1.4975021861881013, 0.9158142602859555, 0.006342637940663521, 1.475217443493351},
              1e-13);
  expect_near(curvature(asin, {1e-8, -3e-4, 0.4, 0.75}),
              {1.0000000000000002e-08, -0.00030000004050000453, 0.5195664053237914, 2.5917563863489868}, 1e-14);
  expect_near(curvature(atanh, {1e-8, -3e-4, 0.4, 0.75}),
              {2.0000000000000004e-08, -0.0006000001080000145, 1.1337868480725624, 7.836734693877551}, 1e-14);
  expect_near(curvature(cbrt, {8, 0, -0.0, infinity, -infinity}), {-0.006944444444444444, -infinity, infinity, 0, 0}, 1e-14);
  const auto of_q = [](double s) { return [s](Value q) { return zeta(full_like(q, s), q); }; };
  expect_near(curvature(of_q(2.5), {1, -0.5}), {9.228690719162724, nan}, 1e-14);
  expect_near(curvature(of_q(2), {0.25, 1.7e308, 0}), {1538.7821440091884, 0, nan}, 1e-14);
  expect_near(curvature([](Value s) { return zeta(s, full_like(s, 1)); }, {2.5, 0.5}), {0.5819689270420682, nan}, 1e-13);
  expect_near(curvature(digamma, {0.3, -2.6, 1e100, 1.7e308, 0}), {-75.27253658872604, -22.377796580409246, -1e-200, 0, nan}, 1e-13);
}

/// bf16 has 8 digits, and a sinc of that many has none left where the cosine is subtracted.
TEST(Special, DerivativesOfSincAreRoundedOnce) {
  for (const DType dtype : {bf16, f16, f32, f64}) {
    const Array x = array_of(dtype, {2}, {0.01611328125, 0.75}), ones = array_of(dtype, {2}, {1, 1});
    expect_near(run({x, ones}, [](const Values& v) { return jvp({sinc(v[0])}, {v[0]}, {v[1]})[0]; }),
                {-0.052996987677795884, -1.3429496265407772}, info(dtype).bits == 16 ? 4e-3 : 1e-6);
  }
}

TEST(Special, IncompleteGamma) {
  const Doubles a{0.01, 0.01, 0.5, 1, 1, 2.5, 5, 50, 50, 100, 3}, x{0.005, 2, 0.3, 1, 0.001, 30, 1, 45, 80, 100, 200};
  // 1e-13 of the quadrature; Q = 1 - P has the error of P, so it is checked apart where it is 3e-4.
  expect_near(of(igamma, a, x),
              {0.9537608600421978, 0.9995033354627815, 0.5614219739190002, 0.6321205588285577, 0.0009995001666250085, 0.9999999999878454,
               0.0036598468273437122, 0.24680203440017026, 0.9998692160234086, 0.5132987982791487, 1.0},
              2e-13);
  expect_near(
      of(igammac, a, x),
      {0.046239139957802135, 0.0004966645372185268, 0.4385780260809999, 0.36787944117144233, 0.999000499833375, 1.215456977718304e-11,
       0.9963401531726563, 0.7531979655998298, 0.00013078397659141034, 0.48670120172085135, 2.7956093736608836e-83},
      1e-12);
  expect_close(of(igammac, {0.001}, {0.9}), {0.0002604296998218178}, 1e-13);
  // By SciPy, which has Temme's series for large a.
  expect_near(
      of(igamma, {1e4, 1e4, 1e4, 1e6, 1e6, 1e8}, {9700, 1e4, 10200, 997000, 1e6, 1e8}),
      {0.0012341755844684902, 0.5013298083399552, 0.9767126778664013, 0.0013381041673135986, 0.5001329807608725, 0.5000132980760141},
      1e-12);
  expect_near(slope_in_first(igamma, {0.5, 1, 5, 2.5, 50}, {0.3, 1, 1, 30, 45}),
              {-0.7705703513753519, -0.4317297106348987, -0.0063564700341843606, -3.320467967686098e-11, -0.04554329214012388}, 1e-11);
}

TEST(Special, IncompleteGammaAtTheBorders) {
  // As in JAX and SciPy.
  const Doubles a{2, 0, 2, 0, -1, 2, nan, 2, infinity, infinity, infinity, 0},
      x{0, 1, infinity, 0, 1, -1, 1, nan, 3, 0, infinity, infinity};
  expect_near(of(igamma, a, x), {0, 1, 1, nan, nan, nan, nan, nan, 0, 0, 1, 1}, 0);
  expect_near(of(igammac, a, x), {1, 0, 0, nan, nan, nan, nan, nan, 1, 1, 0, 0}, 0);
  const auto slopes = [](Value (*op)(Operand, Operand), std::size_t by) {
    return run({array_of(f64, {5}, {0.5, 1, 2, 3, -1}), array_of(f64, {5}, {0, 0, 0, infinity, 1}), array_of(f64, {5}, Doubles(5, 1))},
               [=](const Values& v) { return jvp({op(v[0], v[1])}, {v[by]}, {v[2]})[0]; });
  };
  expect_near(slopes(igamma, 1), {infinity, 1, 0, 0, nan}, 0);
  expect_near(slopes(igammac, 1), {-infinity, -1, 0, 0, nan}, 0);
  expect_near(slopes(igamma, 0), {0, 0, 0, 0, nan}, 0);
}

TEST(Special, OperandsBroadcastAndIntegersAreRefused) {
  EXPECT_EQ(run({floats({2, 1}, {2, 3}), floats({2}, {1, 2})}, [](const Values& v) { return zeta(v[0], v[1]); }).size(), 4u);
  Graph graph;
  const Value x = graph.input("x", {2}, i32);
  EXPECT_EQ(error_of([&] { lgamma(x); }), "rlx.lgamma: i32[2] is not allowed (allowed: floats)");
  EXPECT_EQ(error_of([&] { igamma(x, x); }), "rlx.igamma: i32[2] is not allowed (allowed: floats)");
}

}  // namespace special_test
}  // namespace rlx::test
