// Lowering takes no more time than a graph has nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "backends/cpu/backend.h"
#include "ir/op.h"
#include "kernel/starts.h"
#include "lowering/claim.h"
#include "lowering/lowered.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

std::atomic<int> prints;
KernelText counted_print(const Kernel& kernel, const Caps& caps) {
  ++prints;
  return cpu::target_of().print(kernel, caps);
}

TEST(Lowering, KernelsThatDifferInTheirValuesAloneArePrintedOnce) {
  Graph graph;
  const Value weight = graph.input("weight", {32}, f32);
  Value x = graph.input("x", {Dim::symbol("N", 64), 32}, f32);
  for (int layer = 0; layer < 12; ++layer) x = tanh(x * weight) - 0.5;
  graph.output("y", x);
  TargetDevice target = cpu::target_of();
  target.claims = {};
  target.print = counted_print;
  prints = 0;
  const Program program = lower(graph, target, false);
  EXPECT_GE(program.launches.size(), 12u * 3);
  std::set<std::string> texts;
  for (const Launch& launch : program.launches) {
    const GeneratedKernel& generated = launch.kernels.at(0);
    texts.insert(generated.text.text);
    EXPECT_EQ(generated.text.text, counted_print(counted_from(generated.kernel, generated.first), target.caps).text);
    EXPECT_TRUE(std::ranges::any_of(generated.kernel.buffers, [&](const auto& b) { return b.written && b.value == launch.writes[0]; }));
  }
  EXPECT_EQ(prints, static_cast<int>(texts.size() + program.launches.size())) << "those above among them";
}

/// Each step reads both results of the step before.
TEST(Lowering, WhatIsReadTwiceAtEachOfManyStepsIsLookedAtOnce) {
  Graph graph;
  Value a = graph.input("a", {64}, f32), b = graph.input("b", {64}, f32);
  a = tanh(a), b = tanh(b);
  for (int step = 0; step < 200; ++step) {
    const Value sum = a + b;
    b = a - b, a = sum;
  }
  graph.output("a", a), graph.output("b", b);
  EXPECT_GT(test::lowered(graph, cpu::target_of()).launches.size(), 1u);
}

}  // namespace
}  // namespace rlx
