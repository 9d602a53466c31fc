#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "kernel/compiled.h"
#include "kernel/math.h"

namespace rlx {
namespace {

struct Rival {
  ScalarOp op;
  float (*libm)(float);
};

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

TEST(MathTiming, LoopsAreVectorCode) {
  if (cpu::cpu_level() == cpu::CpuLevel::portable) GTEST_SKIP() << "the portable level has neither wide registers nor fma";
  std::vector<float> x(4096), y(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01f + static_cast<float>(i) * 0.001f;
  const std::vector<Rival> rivals{{ScalarOp::exp, std::exp},     {ScalarOp::expm1, std::expm1}, {ScalarOp::log, std::log},
                                  {ScalarOp::log1p, std::log1p}, {ScalarOp::tanh, std::tanh},   {ScalarOp::sin, std::sin},
                                  {ScalarOp::cos, std::cos},     {ScalarOp::atan, std::atan},   {ScalarOp::erf, std::erf}};
  for (const Rival& rival : rivals) {
    Kernel kernel = test::pointwise(rival.op, {f32}, f32);
    expand_math(kernel);
    const auto function = test::compile_llvm(kernel);
    void* buffers[] = {x.data(), y.data()};
    const auto count = static_cast<double>(x.size());
    const double ours = nanoseconds([&] { function(buffers, nullptr, 0, static_cast<std::int64_t>(x.size())); });
    const double libm = nanoseconds([&] {
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = rival.libm(x[i]);
    });
    fmt::print("{}: {:.2f} elements/ns, C library {:.2f}, {:.1f} times as fast\n", name(rival.op), count / ours, count / libm, libm / ours);
    EXPECT_GE(libm / ours, 4) << name(rival.op);
  }
}

}  // namespace
}  // namespace rlx
