// Composites are replaced by their bodies; claimed ones stay.
#include "passes/expand.h"

#include <gtest/gtest.h>

#include "ir/op.h"
#include "ops/evaluated.h"
#include "rlx/text.h"

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

/// x + x, of which others are told how.
struct Twice {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "twice", not_differentiable = "it is of a test";
  static auto fields() { return Fields<>{}; }
  static Type infer(const Twice&, const Type& x) { return x; }
  static void evaluate(const Twice&, std::span<const Array> x, std::span<Array> y) {
    for (std::int64_t i = 0; i < y[0].size(); ++i) y[0].set_double(i, 2 * x[0].get_double(i));
  }
  static Value expansion(const Twice&, Value x) { return softmax(x) * 0 + x + x; }
  static std::vector<Sample> samples() { return {}; }
};

Value twice(const Value& x) { return apply(Op<Twice>::def(), {}, std::vector{x})[0]; }

int primitives_named(const Graph& graph, std::string_view name) {
  int count = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) count += graph.node(static_cast<std::int32_t>(i)).op->name == name;
  return count;
}

TEST(Expand, ReplacesPrimitivesThatTheTargetDoesNotCompute) {
  Graph graph("loop");
  const Value x = graph.input("x", {3, 4}, f32);
  graph.output("y", while_loop([](const Values& c) { return lt(sum_all(c[0]), 100.0); },
                               [](const Values& c) { return Values{twice(c[0])}; }, Values{twice(x)})[0]);
  const Graph kept = expand(graph, nothing_claimed),
              replaced = expand(graph, nothing_claimed, [](const Graph&, const Node&) { return false; });
  EXPECT_EQ(primitives_named(kept, "twice"), 1);
  EXPECT_EQ(primitives_named(replaced, "twice") + composites(replaced), 0);
  EXPECT_EQ(to_text(replaced).find("twice"), std::string::npos);
  const std::map<std::string, Array> inputs{{"x", uniform(f32, {3, 4}, 0, 2, 1)}};
  EXPECT_EQ(evaluate(kept, inputs), evaluate(replaced, inputs));
}

}  // namespace
}  // namespace rlx::test
