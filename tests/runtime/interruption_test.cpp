// Work that its caller breaks off, and begins again.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "rlx/interruption.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "runtime/fresh_session.h"

namespace rlx::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Kernels of which no two are equal.
Graph many_kernels(int count) {
  Graph graph("many");
  Value x = graph.input("x", {4, 8}, f32);
  for (int i = 0; i < count; ++i) x = sort({tanh(x * (1.0 + i))}, 1, 1)[0];
  graph.output("y", x);
  return graph;
}

TEST(Interruption, EndsACompilationThatMayBeBegunAgain) {
  const Graph graph = many_kernels(300);
  Clock::time_point asked;
  {
    const Interruptible interruptible([&] {
      asked = Clock::now();
      throw std::runtime_error("enough");
    });
    EXPECT_THROW(session().compile(graph), std::runtime_error);
    EXPECT_LT(Clock::now() - asked, std::chrono::seconds(1));
  }
  const Graph small = many_kernels(3);
  const std::vector<float> x(32, 1);
  for (float y : session().compile(small).run({{"x", x}}).at("y").floats())
    EXPECT_NEAR(y, std::tanh(3 * std::tanh(2 * std::tanh(1.0))), 1e-6);
}

TEST(Interruption, AsksTheInnermostOftenAndOnlyWhileItLives) {
  int outer = 0, inner = 0;
  const Interruptible first([&] { ++outer; });
  {
    const Interruptible second([&] { ++inner; });
    session().compile(many_kernels(60));
  }
  EXPECT_EQ(outer, 0);
  EXPECT_GE(inner, 5);
}

}  // namespace
}  // namespace rlx::test
