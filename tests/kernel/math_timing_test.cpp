#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "kernel/compiled.h"
#include "kernel/exact_functions.h"
#include "kernel/math.h"

namespace rlx {
namespace {

template <class Body>
double nanoseconds(const Body& body) {
  double best = INFINITY;
  for (int repeat = 0; repeat < 40; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// A kernel of one loop, against the same loop over a function of the C library.
template <class T, class Libm>
void expect_faster(Kernel kernel, std::string_view op, double times, const Libm& libm) {
  std::vector<T> x(4096), y(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(0.01 + static_cast<double>(i) * 0.001);
  expand_math(kernel);
  const auto function = test::compile_llvm(kernel);
  void* buffers[] = {x.data(), y.data(), y.data()};
  if (kernel.buffers.size() > 2) buffers[1] = x.data();
  const auto count = static_cast<double>(x.size());
  const double ours = nanoseconds([&] { function(buffers, nullptr, 0, static_cast<std::int64_t>(x.size())); });
  const double theirs = nanoseconds([&] {
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = libm(x[i]);
  });
  fmt::print("{} of {}: {:.2f} elements/ns, C library {:.2f}, {:.1f} times as fast\n", op, sizeof(T) == 8 ? "f64" : "f32", count / ours,
             count / theirs, theirs / ours);
  EXPECT_GE(theirs / ours, times) << op;
}

TEST(MathTiming, LoopsAreVectorCode) {
  if (cpu::cpu_level() == cpu::CpuLevel::portable) GTEST_SKIP() << "the portable level has neither wide registers nor fma";
  for (const auto& rival : test::math_functions<float>())
    expect_faster<float>(test::pointwise(rival.op, {f32}, f32), name(rival.op), 4, rival.exact);
  // Half the lanes and twice the digits; sin and cos reduce every argument as if it were huge. Measured: 2.7 times (pow) to 9.8 (tanh) with
  // AVX-512, and 1.5 (pow), 1.7 (sin, cos), 2.1 (log) to 5.4 (tanh) with AVX2.
  const double times = cpu::cpu_level() == cpu::CpuLevel::avx2 ? 1.25 : 2;
  for (const auto& rival : test::math_functions<double>())
    expect_faster<double>(test::pointwise(rival.op, {f64}, f64), name(rival.op), times, rival.exact);
  expect_faster<double>(test::pointwise(ScalarOp::pow, {f64, f64}, f64), "pow", times, [](double x) { return std::pow(x, x); });
}

}  // namespace
}  // namespace rlx
