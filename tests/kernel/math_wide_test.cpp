// The formulas of f64 against the C library's functions of long double, which has at least eleven more bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/machine/denormals.h"
#include "emit/emit.h"
#include "kernel/compiled.h"
#include "kernel/exact_functions.h"
#include "kernel/math/math.h"

namespace rlx {
namespace {

Kernel formula(ScalarOp op, int operands = 1) {
  Kernel kernel = test::pointwise(op, std::vector<DType>(static_cast<std::size_t>(operands), f64), f64);
  expand_math(kernel);
  return kernel;
}

std::vector<double> run_wide(KernelFunction function, const std::vector<double>& x, const std::vector<double>* z = nullptr) {
  std::vector<double> y(x.size());
  void* buffers[] = {const_cast<double*>(x.data()), z ? const_cast<double*>(z->data()) : y.data(), y.data()};
  function(buffers, nullptr, 0, static_cast<std::int64_t>(x.size()));
  return y;
}

/// Distance of y from the exact value in units of the last place of f64; infinity when a special value is wrong.
double ulps(double y, long double exact) {
  const auto rounded = static_cast<double>(exact);
  if (std::isnan(rounded) || std::isnan(y)) return std::isnan(rounded) && std::isnan(y) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(y) || exact == 0) return y == rounded && std::signbit(y) == std::signbit(rounded) ? 0 : INFINITY;
  if (std::fabs(exact) < std::numeric_limits<double>::min() && y == 0) return 0;  // kernels flush subnormal numbers
  int exponent = 0;
  std::frexp(exact, &exponent);
  return static_cast<double>(std::fabs(y - exact) / std::ldexp(1.0L, std::max(exponent, -1021) - 53));
}

/// A generator of 64 random bits (Marsaglia's xorshift): the same arguments in every run.
class RandomBits {
 public:
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  /// From -limit to limit.
  double within(double limit) { return static_cast<double>(static_cast<std::int64_t>((*this)())) * 0x1p-63 * limit; }

 private:
  std::uint64_t state_ = 88172645463325252;
};

/// Random numbers of all sizes, denser where functions are curved; numbers next to those where a formula changes or a result vanishes,
/// overflows or becomes subnormal; and multiples of pi/2 with the f64 that are closest to one: 5319372648326541 * 2^202 and
/// 6381956970095103 * 2^797 (Muller, Elementary Functions).
std::vector<double> wide_arguments() {
  std::vector<double> x;
  RandomBits random;
  for (int i = 0; i < 150000; ++i) x.push_back(std::bit_cast<double>(random()));
  for (int exponent = -60; exponent <= 60; ++exponent)
    for (int i = 0; i < 1000; ++i) x.push_back(std::ldexp(random.within(1), exponent));
  for (int i = 0; i < 200000; ++i) x.push_back(random.within(8));
  for (double center : {0x1p-54,
                        0.17328679513998632,
                        0.34657359027997264,
                        0.625,
                        0.70710678118654757,
                        1.0,
                        1.4142135623730951,
                        1.5707963267948966,
                        2.0,
                        3.1415926535897931,
                        6.0,
                        9.75,
                        19.06,
                        22.0,
                        36.7,
                        50.0,
                        708.39641853226408,
                        709.78271289338397,
                        710.0,
                        745.13,
                        0x1p30,
                        0x1p51,
                        0x1p52,
                        0x1p53,
                        0x1p105,
                        0x1p157,
                        5319372648326541 * 0x1p202,
                        6381956970095103 * 0x1p797}) {
    const auto middle = std::bit_cast<std::uint64_t>(center);
    for (std::uint64_t bits = middle - 1000; bits < middle + 1000; ++bits) {
      x.push_back(std::bit_cast<double>(bits));
      x.push_back(-x.back());
    }
  }
  for (int i = 1; i < 20000; ++i) x.push_back(i * 1.5707963267948966);
  for (double special : {0.0, static_cast<double>(INFINITY), static_cast<double>(NAN), std::numeric_limits<double>::max(),
                         std::numeric_limits<double>::min(), std::numeric_limits<double>::denorm_min()})
    for (double sign : {1.0, -1.0}) x.push_back(sign * special);
  // A NaN whose payload fills every bit.
  x.push_back(std::bit_cast<double>(0x7fffffffffffffff));
  return x;
}

void expect_near(const char* what, const std::vector<double>& x, const std::vector<double>& y, const std::vector<long double>& exact) {
  double worst = 0, at = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const double error = ulps(y[i], exact[i]); error > worst) worst = error, at = x[i];
  fmt::print("{}: at most {:.3f} ulp, at {}\n", what, worst, at);
  EXPECT_LE(worst, 2) << what << " at " << at;
}

TEST(WideMath, StaysWithinTwoUnitsInTheLastPlace) {
  const std::vector<double> x = wide_arguments();
  std::vector<double> read = x;
  for (double& number : read)
    if (std::fabs(number) < std::numeric_limits<double>::min()) number = std::copysign(0.0, number);
  for (const auto& f : test::math_functions<long double>()) {
    const auto function = test::compile_llvm(formula(f.op));
    std::vector<long double> exact;
    for (double number : x) exact.push_back(f.exact(number));
    expect_near(name(f.op).data(), x, run_wide(function, x), exact);
    // As kernels run: subnormal numbers are zeros, as operands and as results.
    const cpu::FlushDenormals flush;
    exact.clear();
    for (double number : read) exact.push_back(f.exact(number));
    expect_near(name(f.op).data(), x, run_wide(function, read), exact);
  }
}

TEST(WideMath, LimitsAreExact) {
  const std::vector<double> x{6, 20, 1e4, 1e300, INFINITY};
  for (const ScalarOp op : {ScalarOp::erf, ScalarOp::tanh})
    for (const double sign : {1.0, -1.0})
      for (const double number : x) {
        if (op == ScalarOp::tanh && number < 19.1) continue;  // 1 - 1e-5 at 6
        EXPECT_EQ(run_wide(test::compile_llvm(formula(op)), {sign * number})[0], sign) << name(op) << " of " << sign * number;
      }
  EXPECT_EQ(run_wide(test::compile_llvm(formula(ScalarOp::expm1)), {-INFINITY, -50}), (std::vector<double>{-1, -1}));
}

/// Bases and exponents for pow: all pairs of special values, and random ones whose results are neither infinite nor 0.
struct Powers {
  std::vector<double> x, z;
};
Powers powers() {
  Powers p;
  std::vector<double> specials{0,
                               1,
                               2,
                               3,
                               0.5,
                               1.5,
                               INFINITY,
                               NAN,
                               0x1p53,
                               0x1p53 - 1,
                               1e30,
                               1e-30,
                               std::numeric_limits<double>::max(),
                               std::numeric_limits<double>::min(),
                               std::numeric_limits<double>::denorm_min(),
                               1 + 0x1p-52,
                               1 - 0x1p-53};
  const std::size_t positive = specials.size();
  for (std::size_t i = 0; i < positive; ++i) specials.push_back(-specials[i]);
  for (double a : specials)
    for (double b : specials) p.x.push_back(a), p.z.push_back(b);
  RandomBits random;
  for (int i = 0; i < 600000; ++i) {
    // Every third base is next to 1, where the logarithm loses digits; another third is negative.
    double base = i % 3 == 0 ? 1 + random.within(std::ldexp(0.5, -(i % 50))) : std::bit_cast<double>(random() >> 1);
    double exponent = random.within(760) / std::max(std::fabs(std::log(base)), 1e-15);
    if (i % 3 == 1) base = -base, exponent = std::nearbyint(exponent);
    p.x.push_back(base), p.z.push_back(exponent);
  }
  return p;
}

TEST(WideMath, PowStaysWithinTwoUnitsInTheLastPlace) {
  const Powers p = powers();
  std::vector<long double> exact;
  for (std::size_t i = 0; i < p.x.size(); ++i)
    exact.push_back(std::pow(static_cast<long double>(p.x[i]), static_cast<long double>(p.z[i])));
  expect_near("pow", p.x, run_wide(test::compile_llvm(formula(ScalarOp::pow, 2)), p.x, &p.z), exact);
}

TEST(WideMath, BothDialectsGiveTheSameBits) {
  const Powers p = powers();
  std::vector<KernelText> texts;
  std::vector<KernelFunction> by_llvm;
  const auto add = [&](const Kernel& kernel) {
    texts.push_back(emit_c(kernel));
    by_llvm.push_back(test::compile_llvm(kernel));
  };
  for (const auto& f : test::math_functions<long double>()) add(formula(f.op));
  add(formula(ScalarOp::pow, 2));
  const test::CompiledC by_c(texts);
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const std::vector<double>* second = t + 1 == texts.size() ? &p.z : nullptr;
    const std::vector<double> a = run_wide(by_llvm[t], p.x, second), b = run_wide(by_c.function(texts[t].name), p.x, second);
    for (std::size_t i = 0; i < p.x.size(); ++i) {
      const bool same = std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i]) || (std::isnan(a[i]) && std::isnan(b[i]));
      ASSERT_TRUE(same) << "function " << t << " of " << p.x[i] << ": " << a[i] << " by LLVM, " << b[i] << " by C";
    }
  }
}

TEST(WideMath, LeavesNoCallOfTheCLibrary) {
  for (const auto& f : test::math_functions<long double>())
    EXPECT_EQ(emit_llvm(formula(f.op)).text.find("@" + std::string(name(f.op)) + "("), std::string::npos) << name(f.op);
  EXPECT_EQ(emit_llvm(formula(ScalarOp::pow, 2)).text.find("@pow("), std::string::npos);
}

}  // namespace
}  // namespace rlx
