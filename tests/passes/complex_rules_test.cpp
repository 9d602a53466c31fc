// Complex numbers in generated kernels at the edges: huge, tiny, infinite, on the cuts.
#include <gtest/gtest.h>

#include <numbers>

#include "ir/op.h"
#include "passes/kernels_only.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

/// Every pair of these numbers, times the scale of the type.
Array edge_numbers(DType t) {
  const double huge = t == c64 ? 3e38 : 1e308, tiny = t == c64 ? 2e-38 : 3e-308;
  const std::vector<double> parts{0.0, 1.0, -1.0, 0.75, -2.5, 1e-3, 1.0000001, huge, -huge, tiny, 1e19, -1e-19, 88.0, -95.0, 10.0};
  Array all(t, {static_cast<std::int64_t>(parts.size() * parts.size())});
  std::int64_t i = 0;
  for (double re : parts)
    for (double im : parts) all.set_complex(i++, {re, im});
  return all;
}

void expect_near_reference(const Graph& graph, const std::map<std::string, Array>& inputs, double roundings) {
  const Array seen = kernels_only().compile(graph).run(feeds(inputs)).at("y"), wanted = evaluate(graph, inputs)[0];
  const double eps = wanted.dtype() == c64 ? 0x1p-23 : 0x1p-52, smallest = wanted.dtype() == c64 ? 0x1p-126 : 0x1p-1022;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const std::complex<double> a = seen.get_complex(i), b = wanted.get_complex(i);
    // The reference's own quotients overflow before the result does: (1e308 + 1e308i) / (1 + i). It judges finite results only.
    if (!std::isfinite(b.real()) || !std::isfinite(b.imag())) continue;
    const double size = std::hypot(b.real() / 4, b.imag() / 4);  // not infinite for two huge parts
    ASSERT_LE(std::hypot((a.real() - b.real()) / 4, (a.imag() - b.imag()) / 4), roundings * eps * size + smallest)
        << "element " << i << " of " << inputs.begin()->second.get_complex(i) << ": " << a << ", must be " << b;
  }
}

TEST(Complex, NothingOverflowsBeforeTheResult) {
  using Build = Value (*)(Value);
  const std::map<std::string, Build> ops{
      {"exp", [](Value x) { return exp(x); }},   {"log", [](Value x) { return log(x); }}, {"sqrt", [](Value x) { return sqrt(x); }},
      {"tanh", [](Value x) { return tanh(x); }}, {"neg", [](Value x) { return -x; }},
  };
  for (DType t : {c64, c128})
    for (const auto& [name, build] : ops) {
      SCOPED_TRACE(name + " of " + std::string(rlx::name(t)));
      const Array x = edge_numbers(t);
      Graph graph;
      graph.output("y", build(graph.input("x", {Dim(x.size())}, t)));
      expect_near_reference(graph, {{"x", x}}, 8);
    }
}

TEST(Complex, QuotientsOfEveryScale) {
  for (DType t : {c64, c128}) {
    const Array one = edge_numbers(t);
    const std::int64_t n = one.size();
    Array x(t, {n * n}), y(t, {n * n});
    for (std::int64_t i = 0; i < n * n; ++i) {
      x.set_complex(i, one.get_complex(i / n));
      y.set_complex(i, one.get_complex(i % n));
    }
    Graph graph;
    graph.output("y", graph.input("x0", {Dim(n * n)}, t) / graph.input("x1", {Dim(n * n)}, t));
    expect_near_reference(graph, named(std::vector{x, y}), 8);
  }
}

/// Every pair of the parts 0, 1.5, -2 and both infinities.
std::vector<std::complex<double>> with_infinities() {
  std::vector<std::complex<double>> all;
  for (double re : {0.0, 1.5, -2.0, inf, -inf})
    for (double im : {0.0, 1.5, -2.0, inf, -inf}) all.emplace_back(re, im);
  return all;
}
bool is_number(std::complex<double> z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

TEST(Complex, InfinityGivesTheLimitsThatAreNumbers) {
  using Build = Value (*)(Value, Value);
  const std::map<std::string, Build> ops{{"exp", [](Value x, Value) { return exp(x); }},
                                         {"tanh", [](Value x, Value) { return tanh(x); }},
                                         {"quotient", [](Value x, Value y) { return x / y; }}};
  const auto numbers = with_infinities();
  const auto count = static_cast<std::int64_t>(numbers.size());
  for (DType t : {c64, c128}) {
    Array x(t, {count * count}), y(t, {count * count});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      x.set_complex(i, numbers[static_cast<std::size_t>(i / count)]);
      y.set_complex(i, numbers[static_cast<std::size_t>(i % count)]);
    }
    for (const auto& [name, build] : ops) {
      SCOPED_TRACE(name + " of " + std::string(rlx::name(t)));
      Graph graph;
      const Value a = graph.input("x0", {Dim(x.size())}, t), b = graph.input("x1", {Dim(x.size())}, t);
      graph.output("y", build(a, b));
      graph.output("x1", b);
      const auto operands = named(std::vector{x, y});
      const Array seen = kernels_only().compile(graph).run(feeds(operands)).at("y"), wanted = evaluate(graph, operands)[0];
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const std::complex<double> number = wanted.get_complex(i);
        if (!is_number(number)) continue;
        // A few roundings of f32; the largest number is e^1.5.
        EXPECT_LE(std::abs(seen.get_complex(i) - number), 2e-6) << x.get_complex(i) << " and " << y.get_complex(i);
      }
    }
  }
}

TEST(Complex, RootsOfInfinityAreInfinite) {
  for (std::complex<double> z : with_infinities()) {
    if (is_number(z)) continue;
    Array x(c64, {1});
    x.set_complex(0, z);
    Graph graph;
    graph.output("y", sqrt(graph.input("x", {1}, c64)));
    const std::complex<double> seen = kernels_only().compile(graph).run({{"x", x}}).at("y").get_complex(0), wanted = std::sqrt(z);
    EXPECT_EQ(seen, wanted) << z;
  }
}

TEST(Complex, PowersOfZeroAndZerothPowers) {
  using Z = std::complex<double>;
  const std::vector<std::tuple<Z, Z, Z>> cases{{0, 0, 1}, {0, 2, 0}, {0, {0.5, 3}, 0}, {{2, -1}, 0, 1}, {INFINITY, 0, 1}, {0, -1, NAN}};
  for (DType t : {c64, c128})
    for (const auto& [base, exponent, wanted] : cases) {
      Graph graph;
      graph.output("y", pow(graph.input("x", {1}, t), graph.input("z", {1}, t)));
      Array x(t, {1}), z(t, {1});
      x.set_complex(0, base);
      z.set_complex(0, exponent);
      for (const Z& seen : {Session().compile(graph).run({{"x", x}, {"z", z}}).at("y").get_complex(0),
                            evaluate(graph, {{"x", x}, {"z", z}})[0].get_complex(0)}) {
        if (is_number(wanted)) {
          EXPECT_EQ(seen, wanted) << base << " to the " << exponent;
        } else {
          EXPECT_FALSE(is_number(seen)) << base << " to the " << exponent;
        }
      }
    }
}

/// What C's Annex G says of a function of one number. Its sign is not given where C leaves it open, and any NaN is one.
struct AnnexG {
  std::string_view op;
  std::complex<double> of, wanted;
  bool any_sign = false;
};

void expect_part(double seen, double wanted, bool any_sign) {
  if (std::isnan(wanted)) EXPECT_TRUE(std::isnan(seen)) << seen;
  else if (any_sign) expect_part(std::abs(seen), std::abs(wanted), false);
  else {
    EXPECT_NEAR(std::isinf(wanted) ? 0 : seen, std::isinf(wanted) ? 0 : wanted, 1e-6);
    EXPECT_TRUE(!std::isinf(wanted) || seen == wanted) << seen;
    EXPECT_EQ(std::signbit(seen), std::signbit(wanted)) << seen;
  }
}

void expect_as_annex_g(const AnnexG& row, DType t) {
  SCOPED_TRACE(std::string(row.op) + " of " + std::to_string(row.of.real()) + " and " + std::to_string(row.of.imag()) + " i");
  Graph graph;
  graph.output("y", apply(find_op(row.op), {}, std::array{graph.input("x", {1}, t)})[0]);
  Array x(t, {1});
  x.set_complex(0, row.of);
  const std::complex<double> seen = kernels_only().compile(graph).run({{"x", x}}).at("y").get_complex(0);
  expect_part(seen.real(), row.wanted.real(), row.any_sign);
  expect_part(seen.imag(), row.wanted.imag(), row.any_sign);
}

constexpr double half_turn = std::numbers::pi, right_angle = half_turn / 2, eighth = half_turn / 4;
const std::vector<AnnexG> annex_g{
    {"exp", {inf, inf}, {inf, nan}, true},
    {"exp", {inf, nan}, {inf, nan}, true},
    {"exp", {inf, -0.0}, {inf, -0.0}},
    {"exp", {-inf, 2}, {-0.0, 0}},
    {"exp", {-inf, nan}, {0, 0}, true},
    {"exp", {-1e30, inf}, {nan, nan}},
    {"exp", {nan, 0}, {nan, 0}},
    {"expm1", {-inf, -0.0}, {-1, -0.0}},
    {"log", {-inf, inf}, {inf, 3 * eighth}},
    {"log", {inf, nan}, {inf, nan}},
    {"log", {nan, -inf}, {inf, nan}},
    {"log", {-0.0, 0}, {-inf, half_turn}},
    {"log1p", {nan, inf}, {inf, nan}},
    {"log2", {0, 0}, {-inf, 0}},
    {"log10", {inf, 1}, {inf, 0}},
    {"sqrt", {nan, -inf}, {inf, -inf}},
    {"sqrt", {-inf, nan}, {nan, inf}, true},
    {"sqrt", {inf, nan}, {inf, nan}},
    {"sqrt", {-inf, -1}, {0, -inf}},
    {"rsqrt", {0, 0}, {inf, nan}},
    {"rsqrt", {inf, -1}, {0, 0}},
    {"sinh", {0, inf}, {0, nan}, true},
    {"sinh", {-0.0, -0.0}, {-0.0, -0.0}},
    {"sinh", {inf, nan}, {inf, nan}, true},
    {"sinh", {nan, -0.0}, {nan, -0.0}},
    {"cosh", {-inf, 0}, {inf, -0.0}},
    {"cosh", {0, nan}, {nan, 0}, true},
    {"cosh", {inf, inf}, {inf, nan}, true},
    {"sin", {0.5, -0.0}, {0.479425538604203, -0.0}},
    {"sin", {nan, inf}, {nan, inf}, true},
    {"cos", {-0.5, 0}, {0.8775825618903728, 0}},
    {"cos", {0, -inf}, {inf, 0}},
    {"tanh", {-0.0, inf}, {-0.0, nan}},
    {"tanh", {inf, 2}, {1, -0.0}},
    {"tanh", {-inf, nan}, {-1, 0}, true},
    {"tanh", {1e30, inf}, {nan, nan}},
    {"tanh", {nan, -0.0}, {nan, -0.0}},
    {"tan", {2, -inf}, {-0.0, -1}},
    {"asinh", {inf, inf}, {inf, eighth}},
    {"asinh", {1, inf}, {inf, right_angle}},
    {"asinh", {nan, -0.0}, {nan, -0.0}},
    {"asinh", {nan, inf}, {inf, nan}, true},
    {"asin", {inf, -1}, {right_angle, -inf}},
    {"acos", {-inf, inf}, {3 * eighth, -inf}},
    {"acos", {-inf, 1}, {half_turn, -inf}},
    {"acos", {0, nan}, {right_angle, nan}},
    {"acos", {inf, nan}, {nan, inf}, true},
    {"acosh", {-inf, inf}, {inf, 3 * eighth}},
    {"acosh", {0, nan}, {nan, right_angle}, true},
    {"acosh", {nan, inf}, {inf, nan}},
    {"atanh", {1, 0}, {inf, 0}},
    {"atanh", {inf, inf}, {0, right_angle}},
    {"atanh", {nan, inf}, {0, right_angle}, true},
    {"atanh", {0, nan}, {0, nan}},
    {"atan", {-inf, 3}, {-right_angle, 0}},
    {"square", {-1, 1}, {0, -2}},
};

TEST(Complex, CornersAreThoseOfAnnexG) {
  for (DType t : {c64, c128})
    for (const AnnexG& row : annex_g) expect_as_annex_g(row, t);
}

// Wanted: mpmath with 60 digits.
TEST(Complex, FunctionsOfHugeTinyAndCancellingNumbers) {
  const std::vector<AnnexG> rows{{"sqrt", {1e200, 1e-200}, {1e100, 5e-301}},
                                 {"asin", {1.7e308, 1.7e308}, {0.78539816339744831, 710.766557664068159}},
                                 {"atan", {1e200, 2e200}, {1.5707963267948966, 4e-201}},
                                 {"atan", {1e-200, 1}, {0.78539816339744831, 230.605082889684541}},
                                 {"log", {0.6, 0.8}, {2.2204460492503131e-17, 0.92729521800161219}},
                                 {"log1p", {-0.02, 0.2}, {0.000199960010663469502, 0.201317108374640771}}};
  for (const AnnexG& row : rows) {
    SCOPED_TRACE(row.op);
    Graph graph;
    graph.output("y", apply(find_op(row.op), {}, std::array{graph.input("x", {1}, c128)})[0]);
    Array x(c128, {1});
    x.set_complex(0, row.of);
    const std::complex<double> seen = kernels_only().compile(graph).run({{"x", x}}).at("y").get_complex(0);
    EXPECT_LE(std::abs(seen.real() - row.wanted.real()), 4 * 0x1p-52 * std::abs(row.wanted.real())) << seen;
    EXPECT_LE(std::abs(seen.imag() - row.wanted.imag()), 4 * 0x1p-52 * std::abs(row.wanted.imag())) << seen;
  }
}

TEST(Complex, RootsAndLogarithmsKnowTheSideOfTheCut) {
  Array x(c64, {4});
  const std::vector<std::complex<double>> numbers{{-4, 0.0}, {-4, -0.0}, {0.0, -0.0}, {9, -0.0}};
  for (std::int64_t i = 0; i < 4; ++i) x.set_complex(i, numbers[static_cast<std::size_t>(i)]);
  Graph graph;
  const Value z = graph.input("x", {4}, c64);
  graph.output("root", sqrt(z));
  graph.output("angle", imag(log(z)));
  const Outputs seen = kernels_only().compile(graph).run({{"x", x}});
  EXPECT_EQ(seen.at("root").get_complex(0), std::complex<double>(0, 2));
  EXPECT_EQ(seen.at("root").get_complex(1), std::complex<double>(0, -2));
  EXPECT_EQ(seen.at("root").get_complex(2), std::complex<double>(0, 0));
  EXPECT_EQ(seen.at("root").get_complex(3), std::complex<double>(3, 0));
  EXPECT_NEAR(seen.at("angle").get_double(0), 3.14159265358979, 2e-7);
  EXPECT_NEAR(seen.at("angle").get_double(1), -3.14159265358979, 2e-7);
}

}  // namespace
}  // namespace rlx::test
