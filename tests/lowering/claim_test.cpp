// A target's list of claims is all that lowering knows of what is computed otherwise than by pulled kernels.
#include "lowering/claim.h"

#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "ir/op.h"
#include "lowering/lowered.h"
#include "message.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// Takes softmax whole.
struct SoftmaxClaim final : Claim {
  struct OnGraph final : GraphClaim {
    explicit OnGraph(const Graph& of) : graph(of) {}
    std::optional<Launch> launch(ValueId value) override {
      const Node& node = graph.node(value.node);
      if (node.op->name != "softmax") return std::nullopt;
      return Launch{Launch::Kind::claim, "mine", node.operands, {value}, {}, "mine", value};
    }
    const Graph& graph;
  };
  bool takes(const Graph& /*graph*/, const Node& node, const Caps& /*caps*/) const override { return node.op->name == "softmax"; }
  std::unique_ptr<GraphClaim> start(Draft& draft) const override { return std::make_unique<OnGraph>(draft.graph); }
};

TargetDevice target_with(std::vector<const Claim*> claims) {
  TargetDevice target = cpu::target_of();
  target.claims = std::move(claims);
  return target;
}

TEST(Claim, TakesACompositeWholeBetweenKernelsThatAreFusedAroundIt) {
  Graph graph;
  const Value x = graph.input("x", {4, 8}, f32);
  graph.output("y", softmax(exp(x) + 1) * 2);
  const SoftmaxClaim mine;
  const Program program = test::lowered(graph, target_with({&mine}));
  ASSERT_EQ(program.launches.size(), 3u);
  EXPECT_EQ(program.launches[1].name, "mine");
  EXPECT_EQ(program.launches[1].reads, program.launches[0].writes);
  EXPECT_EQ(program.launches[2].reads, program.launches[1].writes);
  EXPECT_EQ(test::lowered(graph, target_with({})).launches.size(), 1u) << "without it, its body is fused with what is around";
}

TEST(Claim, WhatNobodyComputesIsLeftToTheHostOrAnError) {
  Graph graph;
  graph.output("y", sort({graph.input("x", {8}, f32)})[0]);
  TargetDevice target = target_with({});
  target.complete = false;
  const Program program = test::lowered(graph, target);
  ASSERT_EQ(program.launches.size(), 1u);
  EXPECT_EQ(program.launches[0].kind, Launch::Kind::host);
  target.complete = true;
  EXPECT_EQ(test::error_of([&] { test::lowered(graph, target); }), "no kernel: sort<f32[8]> on cpu");
}

}  // namespace
}  // namespace rlx
