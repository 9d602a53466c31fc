#include "kernel/math/math.h"
#include "kernel/exact_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "base/small_float.h"
#include "kernel/compiled.h"

namespace rlx {
namespace {

/// Else LLVM, which takes their conversion for dear, makes vectors of 4.
TEST(Halves, AreConvertedInWholeVectors) {
  const auto has = [](DType dtype, VectorMasks masks, const std::string& width) {
    const std::string text = emit_llvm(test::pointwise(ScalarOp::add, {dtype, dtype}, dtype), masks).text;
    return text.find("\"llvm.loop.vectorize.width\", i32 " + width) != std::string::npos;
  };
  EXPECT_TRUE(has(f16, VectorMasks::all, "16"));
  EXPECT_TRUE(has(f16, VectorMasks::last, "8"));
  EXPECT_FALSE(has(f16, VectorMasks::none, ""));
  EXPECT_FALSE(has(f32, VectorMasks::all, ""));
}

KernelFunction vector_code(ScalarOp op, int operands = 1, DType dtype = f32, bool has_f64 = true) {
  Kernel kernel = test::pointwise(op, std::vector<DType>(static_cast<std::size_t>(operands), dtype), dtype);
  expand_math(kernel, has_f64);
  for (const Expr& e : kernel.exprs) EXPECT_TRUE(has_f64 || e.dtype != f64) << name(op);
  return test::compile_llvm(kernel);
}

std::vector<float> run(KernelFunction function, const std::vector<float>& x, const std::vector<float>* z = nullptr) {
  std::vector<float> y(x.size());
  void* pair[] = {const_cast<float*>(x.data()), z ? const_cast<float*>(z->data()) : y.data(), y.data()};
  function(pair, nullptr, 0, static_cast<std::int64_t>(x.size()));
  return y;
}

/// Distance of y from the exact value in units of the last place of f32; infinity when a special value is wrong.
double ulps(float y, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(y)) return std::isnan(rounded) && std::isnan(y) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(y) || exact == 0) return y == rounded && std::signbit(y) == std::signbit(rounded) ? 0 : INFINITY;
  if (std::fabs(exact) < std::numeric_limits<float>::min() && y == 0) return 0;  // kernels flush subnormal numbers
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(y - exact) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

struct Worst {
  double error = 0;
  float at = 0;
  void add(double e, float x) {
    if (e > error) error = e, at = x;
  }
};

/// Every 997th of all f32, and every f32 of some neighbourhoods where formulas change or results vanish: 16367173 * 2^72 is the f32 closest
/// to a multiple of pi/2.
std::vector<float> arguments() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 997) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (float center : {0.5f, 0.6f, 1.0f, 2.0f, 0.34657359f, 0.70710678f, 1.41421356f, 3.14159265f, 1.57079633f, 88.7228317f, 87.3365402f,
                       103.97f, 9.01f, 3.92f, 0x1p47f, 0x1p68f, 0x1p89f, 0x1p110f, 16367173 * 0x1p72f}) {
    const auto middle = std::bit_cast<std::uint32_t>(center);
    for (std::uint32_t bits = middle - 20000; bits < middle + 20000; ++bits) {
      x.push_back(std::bit_cast<float>(bits));
      x.push_back(-x.back());
    }
  }
  for (float special : {0.0f, INFINITY, NAN, std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                        std::numeric_limits<float>::denorm_min()})
    for (float sign : {1.0f, -1.0f}) x.push_back(sign * special);
  // A NaN whose payload fills every bit.
  x.push_back(std::bit_cast<float>(0x7fffffffu));
  return x;
}

class Math : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Formulas, Math, testing::Bool(), [](const auto& info) { return info.param ? "WithF64" : "WithoutF64"; });

TEST_P(Math, StaysWithinTwoUnitsInTheLastPlaceOverAllArguments) {
  const std::vector<float> x = arguments();
  for (const auto& f : test::math_functions<double>()) {
    const std::vector<float> y = run(vector_code(f.op, 1, f32, GetParam()), x);
    Worst worst;
    for (std::size_t i = 0; i < x.size(); ++i) worst.add(ulps(y[i], f.exact(x[i])), x[i]);
    fmt::print("{}: at most {:.3f} ulp, at {}\n", name(f.op), worst.error, worst.at);
    EXPECT_LE(worst.error, 2) << name(f.op) << " at " << worst.at;
  }
}

/// Where functions level off they reach their limit, so that what is computed from the distance to it vanishes too.
TEST(MathOfKernels, LimitsAreExact) {
  const std::vector<float> x{4, 9.5f, 1e4f, 1e30f, INFINITY, -4, -9.5f, -1e4f, -1e30f, -INFINITY};
  for (const ScalarOp op : {ScalarOp::erf, ScalarOp::tanh}) {
    const std::vector<float> y = run(vector_code(op), x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (op == ScalarOp::tanh && std::fabs(x[i]) < 9.1f) continue;  // 1 - 7e-4 at 4
      EXPECT_EQ(y[i], std::copysign(1.0f, x[i])) << name(op) << " of " << x[i];
    }
  }
  EXPECT_EQ(run(vector_code(ScalarOp::expm1), {-INFINITY, -50})[0], -1);
}

#ifdef __x86_64__
/// As kernels run: subnormal numbers are zeros, as operands and as results.
TEST(MathOfKernels, StaysWithinTwoUnitsWhereSubnormalNumbersAreFlushed) {
  const std::vector<float> x = arguments();
  for (const auto& f : test::math_functions<double>()) {
    const auto function = vector_code(f.op);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);  // results and operands
    const std::vector<float> y = run(function, x);
    _mm_setcsr(before);
    Worst worst;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float read = std::fabs(x[i]) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x[i]) : x[i];
      const double exact = f.exact(read);
      const bool passed_on = y[i] == x[i] && std::fpclassify(x[i]) == FP_SUBNORMAL;  // f(x) = x, copied without arithmetic
      if (!passed_on) worst.add(ulps(y[i], exact), x[i]);
    }
    EXPECT_LE(worst.error, 2) << name(f.op) << " at " << worst.at;
  }
}
#endif

TEST_P(Math, PowStaysWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x, z;
  const std::vector<float> specials{0.0f,
                                    -0.0f,
                                    1.0f,
                                    -1.0f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    2.0f,
                                    -2.0f,
                                    3.0f,
                                    -3.0f,
                                    0.5f,
                                    -0.5f,
                                    1.5f,
                                    -1.5f,
                                    16777216.0f,
                                    16777215.0f,
                                    -16777215.0f,
                                    1e30f,
                                    1e-30f,
                                    -1e30f,
                                    std::numeric_limits<float>::max(),
                                    std::numeric_limits<float>::min(),
                                    std::numeric_limits<float>::denorm_min()};
  for (float a : specials)
    for (float b : specials) x.push_back(a), z.push_back(b);
  std::uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  for (int i = 0; i < 3'000'000; ++i) {
    const float base = std::bit_cast<float>(next() & 0x7fffffffu);
    // Exponents that keep the result in range, and bases next to 1.
    const float limit = std::fabs(std::log2(base));
    x.push_back(i % 3 == 0 ? 1 + (static_cast<float>(next()) - 2147483648.0f) * 0x1p-32f * 0.5f : base);
    z.push_back(i % 3 == 0 ? (static_cast<float>(next()) - 2147483648.0f) * 0x1p-31f * 250
                           : (static_cast<float>(next()) - 2147483648.0f) * 0x1p-31f * 150 / std::max(limit, 1e-3f));
    if (i % 3 == 1) x.back() = -x.back(), z.back() = std::nearbyint(z.back());
  }
  const std::vector<float> y = run(vector_code(ScalarOp::pow, 2, f32, GetParam()), x, &z);
  Worst worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = ulps(y[i], std::pow(static_cast<double>(x[i]), static_cast<double>(z[i])));
    if (e > 2) ADD_FAILURE() << "pow(" << x[i] << ", " << z[i] << ") = " << y[i] << ", off by " << e << " ulp";
    worst.add(e, x[i]);
  }
  fmt::print("pow: at most {:.3f} ulp, at base {}\n", worst.error, worst.at);
}

TEST(MathOfKernels, PowOfPlainExponentsIsExactUpToRounding) {
  for (double exponent : {1.0, 2.0, 3.0, -1.0, 0.5}) {
    Kernel kernel = test::pointwise(ScalarOp::neg, {f32}, f32);
    kernel.stores[0].value =
        kernel.scalar(ScalarOp::pow, {kernel.exprs[0].kind == Expr::Kind::load ? 0 : 1, kernel.constant(exponent, f32)}, f32);
    expand_math(kernel);
    const std::vector<float> x{0.0f, -0.0f, 1.5f, -1.5f, 0.3f, 7e11f, -2e-9f, INFINITY, -INFINITY, NAN},
        y = run(test::compile_llvm(kernel), x);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_LE(ulps(y[i], std::pow(static_cast<double>(x[i]), exponent)), 1.5) << x[i] << " ^ " << exponent;
  }
}

/// Every value of bf16, computed in f32 and rounded once.
TEST(MathOfKernels, NarrowFloatsAreRoundedWhenTheyAreStored) {
  std::vector<std::uint16_t> x(65536), y(65536);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
  for (const auto& f : test::math_functions<double>()) {
    void* buffers[] = {x.data(), y.data()};
    vector_code(f.op, 1, bf16)(buffers, nullptr, 0, 65536);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = f.exact(decode(bf16_format, x[i]));
      if (std::isnan(exact) || std::fabs(exact) < std::numeric_limits<float>::min()) continue;
      // The error in f32 can move a value over the middle between two bf16: one unit.
      EXPECT_LE(std::abs(static_cast<int>(y[i]) - static_cast<int>(encode(bf16_format, exact))), 1)
          << name(f.op) << " of bf16 pattern " << i;
    }
  }
}

TEST(MathOfKernels, BothDialectsGiveTheSameBits) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 99991) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  std::vector<float> z(x.rbegin(), x.rend());
  std::vector<KernelText> texts;
  std::vector<KernelFunction> by_llvm;
  const auto add = [&](ScalarOp op, int operands) {
    Kernel kernel = test::pointwise(op, std::vector<DType>(static_cast<std::size_t>(operands), f32), f32);
    expand_math(kernel);
    texts.push_back(emit_c(kernel));
    by_llvm.push_back(test::compile_llvm(kernel));
  };
  for (const auto& f : test::math_functions<double>()) add(f.op, 1);
  add(ScalarOp::pow, 2);
  const test::CompiledC by_c(texts);
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const bool two = t + 1 == texts.size();
    const std::vector<float> a = run(by_llvm[t], x, two ? &z : nullptr), b = run(by_c.function(texts[t].name), x, two ? &z : nullptr);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool same = std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i]) || (std::isnan(a[i]) && std::isnan(b[i]));
      ASSERT_TRUE(same) << "function " << t << " of " << x[i] << ": " << a[i] << " by LLVM, " << b[i] << " by C";
    }
  }
}

TEST(MathOfKernels, LeavesNoCallOfTheCLibrary) {
  for (const auto& f : test::math_functions<double>()) {
    Kernel kernel = test::pointwise(f.op, {f32}, f32);
    expand_math(kernel);
    EXPECT_EQ(emit_llvm(kernel).text.find("@" + std::string(name(f.op))), std::string::npos) << name(f.op);
  }
}

/// y[i] = exp(w[i]) + x[round-trip index]: expressions that indices name are renumbered with the rest.
TEST(MathOfKernels, KeepsIndicesThatAreReadFromMemory) {
  Kernel kernel;
  const Dim count(5);
  kernel.loops = {kernel.add_variable(count)};
  const Index at = Index::variable(0, count);
  const auto load = [&](DType t, const Index& index) {
    Expr e;
    e.kind = Expr::Kind::load;
    e.dtype = t;
    e.buffer = static_cast<int>(kernel.buffers.size());
    e.index = index;
    e.last = count - Dim(1);
    kernel.buffers.push_back({{}, t, false});
    return kernel.add(std::move(e));
  };
  const ExprId power = kernel.scalar(ScalarOp::exp, {load(f32, at)}, f32);
  const ExprId where = load(i64, at), value = load(f32, Index::loaded(where, count));
  kernel.stores.push_back({3, at, kernel.scalar(ScalarOp::add, {power, value}, f32)});
  kernel.buffers.push_back({{}, f32, true});
  expand_math(kernel);
  std::vector<float> w(5, 0.0f), x{10, 20, 30, 40, 50}, y(5);
  std::vector<std::int64_t> order{4, 2, 0, 1, 3};
  void* buffers[] = {w.data(), order.data(), x.data(), y.data()};
  test::compile_llvm(kernel)(buffers, nullptr, 0, 5);
  EXPECT_EQ(y, (std::vector<float>{51, 31, 11, 21, 41}));
}

}  // namespace
}  // namespace rlx
