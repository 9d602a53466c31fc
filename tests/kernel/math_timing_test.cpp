#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "kernel/compiled.h"
#include "kernel/exact_functions.h"
#include "kernel/math/math.h"
#include "ops/evaluated.h"
#include "rlx/ops.h"
#include "rlx/session.h"

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
  const bool half_the_lanes = cpu::cpu_level() == cpu::CpuLevel::avx2;  // sin and cos were 2.9 to 4.3 times as fast, others 5.7 and more
  for (const auto& rival : test::math_functions<float>())
    expect_faster<float>(test::pointwise(rival.op, {f32}, f32), name(rival.op), half_the_lanes ? 2 : 4, rival.exact);
  // Half the lanes and twice the digits; sin and cos reduce every argument as if it were huge. Measured: 2.7 times (pow) to 9.8 (tanh) with
  // AVX-512, and 1.5 (pow), 1.7 (sin, cos), 2.1 (log) to 5.4 (tanh) with AVX2.
  const double times = half_the_lanes ? 1.25 : 2;
  for (const auto& rival : test::math_functions<double>())
    expect_faster<double>(test::pointwise(rival.op, {f64}, f64), name(rival.op), times, rival.exact);
  expect_faster<double>(test::pointwise(ScalarOp::pow, {f64, f64}, f64), "pow", times, [](double x) { return std::pow(x, x); });
}

/// Softmax of rows of `length` elements, ready to run.
Executable softmax_of_rows(std::int64_t length) {
  Graph graph("rows");
  graph.output("y", softmax(graph.input("x", {512, length}, f32), 1));
  return Session(Device::cpu(), {.threads = 1, .cache_folder = ""}).compile(graph);
}

/// What is left of a row behind its whole vectors takes no more than as much again: rows are no slower than twice those that vectors fill.
/// Measured: 0.8 to 1.5 times (255 elements with AVX-512: 1.8), where elements one by one took 2.7.
TEST(RowTiming, RaggedRowsTakeAtMostTwiceTheTimeOfWholeOnes) {
  if (cpu::cpu_level() == cpu::CpuLevel::portable) GTEST_SKIP() << "the portable level has no vectors that can be masked";
  for (std::int64_t length : {17, 24, 31, 47, 95, 127, 200, 759}) {
    const std::int64_t whole = (length + 15) / 16 * 16;
    const Executable ragged = softmax_of_rows(length), filled = softmax_of_rows(whole);
    const Array x = test::uniform(f32, {512, length}, -1, 1, 1), y = test::uniform(f32, {512, whole}, -1, 1, 1);
    double of_ragged = std::numeric_limits<double>::infinity(), of_filled = of_ragged;
    for (int round = 0; round < 5; ++round) {
      of_ragged = std::min(of_ragged, nanoseconds([&] { ragged.run({{"x", x}}); }));
      of_filled = std::min(of_filled, nanoseconds([&] { filled.run({{"x", y}}); }));
    }
    fmt::print("softmax of {} elements: {:.2f} times the time of {} ({:.0f} {:.0f} ns)\n", length, of_ragged / of_filled, whole, of_ragged,
               of_filled);
    EXPECT_LT(of_ragged, 2 * of_filled) << length;
  }
}

}  // namespace
}  // namespace rlx
