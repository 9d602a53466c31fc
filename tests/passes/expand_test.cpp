// Composites are replaced by their bodies; claimed ones stay.
#include "passes/expand.h"

#include <gtest/gtest.h>

#include "ir/op.h"
#include "ops/evaluated.h"

namespace rlx::test {
namespace {

Graph normalised() {
  Graph graph("normalised");
  const Value x = graph.input("x", {3, 4}, f32), unused = graph.param("unused", {2}, f32);
  (void)gelu(unused);
  graph.output("y", softmax(gelu(x)));
  graph.output("same", x);
  return graph;
}

int composites(const Graph& graph) {
  int count = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) count += graph.node(static_cast<std::int32_t>(i)).op->kind == OpKind::composite;
  return count;
}

TEST(Expand, LeavesOnlyPrimitivesWithTheSameValues) {
  const Graph graph = normalised(), primitives = expand(graph, [](const Graph&, const Node&) { return false; });
  EXPECT_GT(composites(graph), 0);
  EXPECT_EQ(composites(primitives), 0);
  ASSERT_EQ(primitives.inputs().size(), 2u);
  EXPECT_EQ(primitives.inputs()[1].first.name, "unused");
  ASSERT_EQ(primitives.outputs().size(), 2u);
  EXPECT_EQ(primitives.outputs()[1].first, "same");
  const std::map<std::string, Array> inputs{{"x", uniform(f32, {3, 4}, -2, 2, 1)}, {"unused", counting(f32, {2})}};
  EXPECT_EQ(evaluate(graph, inputs), evaluate(primitives, inputs));
}

TEST(Expand, KeepsWhatIsClaimed) {
  const Graph kept = expand(normalised(), [](const Graph&, const Node& node) { return node.op->name == "softmax"; });
  EXPECT_EQ(composites(kept), 1);
}

TEST(Expand, IsTheIdentityOnPrimitives) {
  const auto none = [](const Graph&, const Node&) { return false; };
  const Graph once = expand(normalised(), none);
  EXPECT_TRUE(structurally_equal(once, expand(once, none)));
}

}  // namespace
}  // namespace rlx::test
