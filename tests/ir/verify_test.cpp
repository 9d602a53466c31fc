#include "ir/verifier.h"

#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// A sound graph that each test breaks in one way: %0 x, %1 y, %2 add, %3 softmax.
class Verify : public testing::Test {
 protected:
  Verify() {
    const Value x = graph.input("x", {2, 3}, f32), y = graph.input("y", {2, 3}, f32);
    graph.output("z", softmax(x + y, 1));
  }
  Node& node(std::size_t id) { return graph.data().nodes[id]; }
  std::string error() const {
    try {
      verify(graph, "expand");
    } catch (const InternalError& error) {
      return error.what();
    }
    return "sound";
  }

  Graph graph{"g"};
};

TEST_F(Verify, ASoundGraphPasses) { EXPECT_EQ(error(), "sound"); }

TEST_F(Verify, OperandsComeFirst) {
  node(2).operands[1] = {3, 0};
  EXPECT_EQ(error(), "expand: graph 'g': %2 add: operand %3 does not come before it");
  node(2).operands[1] = {-1, 0};
  EXPECT_EQ(error(), "expand: graph 'g': %2 add: operand %-1 does not come before it");
  node(2).operands[1] = {1, 1};
  EXPECT_EQ(error(), "expand: graph 'g': %2 add: %1 has no result 1 (it has 1)");
  node(2).operands = {{0, 0}};
  EXPECT_EQ(error(), "expand: graph 'g': %2 add: has 1 operands, takes 2");
}

TEST_F(Verify, TypesAreThoseOfTheRule) {
  node(2).results[0].shape[0] = 5;
  EXPECT_EQ(error(), "expand: graph 'g': %2 add: result 0 is f32[5,3], its rule gives f32[2,3]");
}

TEST_F(Verify, TheRuleAcceptsTheOperands) {
  node(1).results[0].dtype = f64;
  std::get<DType>(node(1).attrs[2]) = f64;
  EXPECT_EQ(error().find("expand: graph 'g': %2 add: rlx.add: "), 0u) << error();
}

TEST_F(Verify, ResultsAreAsManyAsTheRuleGives) {
  node(3).results.push_back(node(3).results[0]);
  EXPECT_EQ(error(), "expand: graph 'g': %3 softmax: has 2 results, its rule gives 1");
  node(3).results.clear();
  EXPECT_EQ(error(), "expand: graph 'g': %3 softmax: has no results");
}

TEST_F(Verify, AttributesHaveTheirKinds) {
  node(3).attrs[0] = 1.0;
  EXPECT_EQ(error(), "expand: graph 'g': %3 softmax: attribute 'axis' has the wrong type: 1");
  node(3).attrs.clear();
  EXPECT_EQ(error().find("expand: graph 'g': %3 softmax: has 0 attributes, needs "), 0u) << error();
}

TEST_F(Verify, EnumerationsHoldTheirWords) {
  std::get<std::string>(node(0).attrs[1]) = "weight";
  EXPECT_EQ(error(), "expand: graph 'g': %0 input: attribute 'role' is 'weight'");
}

TEST_F(Verify, OpsAreRegistered) {
  OpDef copy = *node(2).op;
  node(2).op = &copy;
  EXPECT_EQ(error(), "expand: graph 'g': %2 add: is not in the registry");
  node(2).op = nullptr;
  EXPECT_EQ(error(), "expand: graph 'g': %2 without op: has no op");
}

TEST_F(Verify, OutputsAreValuesOfTheGraph) {
  Graph other;
  graph.data().outputs[0].second = other.input("x", {}, f32);
  EXPECT_EQ(error(), "expand: graph 'g': 'z' is a value of another graph");
  graph.data().outputs[0].second = Value(&graph.data(), {7, 0});
  EXPECT_EQ(error(), "expand: graph 'g': 'z' is %7, which does not exist");
  graph.data().outputs[0].second = Value(&graph.data(), {3, 0});
  graph.data().outputs.push_back(graph.data().outputs[0]);
  EXPECT_EQ(error(), "expand: graph 'g': output name 'z' is taken");
}

TEST_F(Verify, InputsAreListedOnceWithTheirNodes) {
  auto& inputs = graph.data().inputs;
  inputs[1].first.name = "x";
  EXPECT_EQ(error(), "expand: graph 'g': input name 'x' is empty or taken");
  inputs[1].first.name = "w";
  EXPECT_EQ(error(), "expand: graph 'g': input 'w' f32[2,3] is listed, its node is 'y' f32[2,3]");
  inputs[1].second = Value(&graph.data(), {2, 0});
  EXPECT_EQ(error(), "expand: graph 'g': input 'w' is %2, a add");
  inputs.pop_back();
  EXPECT_EQ(error(), "expand: graph 'g': 1 inputs are listed, 2 nodes are inputs");
}

TEST_F(Verify, RegionsAreSoundAndClosed) {
  const Value x = graph.inputs()[0].second;
  const Value loop = while_loop([](const Values& s) { return lt(sum(s[0], {0, 1}), scalar(s[0], 9, f32)); },
                                [&](const Values& s) { return Values{s[0] + x}; }, {x})[0];
  graph.output("w", loop);
  EXPECT_EQ(error(), "sound");
  Node& node = graph.data().nodes[static_cast<std::size_t>(loop.id().node)];
  for (Attr& attr : node.attrs)
    if (const auto* region = std::get_if<Region>(&attr)) {
      Graph broken = **region;
      const Value own = broken.inputs()[0].second;
      Graph open("open");
      open.data().captures.push_back(own);
      attr = std::make_shared<const Graph>(open);
    }
  EXPECT_NE(error().find("while: region 'open' is not closed"), std::string::npos) << error();
}

}  // namespace
}  // namespace rlx
