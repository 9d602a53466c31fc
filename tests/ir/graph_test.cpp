#include "rlx/graph.h"
#include "message.h"

#include <bit>
#include <limits>

#include <gtest/gtest.h>

#include "ir/graph_data.h"
#include "ir/op.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx {
namespace {

using test::error_of;

TEST(Graph, EqualNodesAreOneNode) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, f32), y = graph.input("y", {2, 3}, f32);
  const Value sum = x + y;
  const std::size_t size = graph.size();
  EXPECT_EQ(x + y, sum);
  EXPECT_EQ(softmax(sum, 1), softmax(sum, -1)) << "axes are counted from the front";
  EXPECT_EQ(graph.size(), size + 1);
  EXPECT_FALSE(y + x == sum) << "operands are ordered";
  EXPECT_FALSE(softmax(sum, 0) == softmax(sum, 1));
}

TEST(Graph, ValuesDoNotOutliveTheirGraph) {
  Value x, leaked;
  const std::string gone =
      "a value is used after its graph is gone: it belonged to a region that has ended, or the last copy of its Graph is";
  {
    Graph graph;
    x = graph.input("x", {2, 3}, f32);
    const Values sums = scan(
        [&](const Values& carry, const Values& slice) {
          leaked = slice[0] * 2;
          return std::pair{Values{carry[0] + slice[0]}, Values{}};
        },
        {sum(x, {0})}, {x});
    EXPECT_EQ(error_of([&] { sums[0] + leaked; }), gone);
    EXPECT_EQ(error_of([&] { graph.output("y", leaked); }), gone);
    vmap([&](const Values& v) { return Values{leaked = v[0] * 2}; }, {x}, {0});
    EXPECT_EQ(error_of([&] { exp(leaked); }), gone);
  }
  EXPECT_EQ(error_of([&] { exp(x); }), gone);
  EXPECT_EQ(error_of([&] { x.type(); }), gone);
}

TEST(Graph, NullOperandsAreErrorsOfTheCaller) {
  Graph graph;
  const Value x = graph.input("x", {2, 3}, f32);
  EXPECT_EQ(error_of([&] { matmul(x, Value()); }), "a null value is used where an operand is needed");
  EXPECT_NE(test::whole_error_of([&] { x + Value(); }).find("graph_test.cpp"), std::string::npos);
}

TEST(Graph, NumbersMustFitTheTypeBesideThem) {
  Graph graph;
  const Value i = graph.input("i", {2}, i32), u = graph.input("u", {2}, u8), f = graph.input("f", {2}, f16);
  EXPECT_EQ(error_of([&] { i * 0.5; }),
            "rlx.mul: 0.5 is not a number of i32 (allowed: one that it holds; or cast the i32 operand to a float first)");
  EXPECT_NE(error_of([&] { u + -1; }), "no error");
  EXPECT_NE(error_of([&] { u + 256; }), "no error");
  EXPECT_EQ((i * 2.0).dtype(), i32);
  EXPECT_EQ((u - 255).dtype(), u8);
  EXPECT_EQ((f * 0.1).dtype(), f16) << "a float rounds";
}

TEST(Graph, ASnapshotDoesNotSeeWhatIsAddedLater) {
  Graph graph;
  const Value x = graph.input("x", {2}, f32);
  graph.output("y", exp(x));
  const Graph before = graph.snapshot();
  EXPECT_TRUE(structurally_equal(before, graph));
  graph.output("z", graph.input("w", {2}, f32) + x);
  EXPECT_EQ(before.inputs().size(), 1u);
  EXPECT_EQ(before.outputs().size(), 1u);
  EXPECT_FALSE(structurally_equal(before, graph));
}

TEST(Graph, SizesOfAnyIntegerType) {
  const std::vector<float> values(3);
  Graph graph;
  EXPECT_EQ(graph.input("x", {values.size(), 2LL, 4u}, f32).type().to_string(), "f32[3,2,4]");
  EXPECT_EQ(error_of([&] { Dim(std::size_t{1} << 63); }), "a size leaves the range of 64-bit integers");
}

TEST(Graph, AttributesAreComparedByTheirBits) {
  Graph graph;
  const Value x = graph.input("x", {2}, f32);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(leaky_relu(x, 0.0) == leaky_relu(x, -0.0));
  EXPECT_EQ(leaky_relu(x, nan), leaky_relu(x, nan));
  Array zero(f32, {1}), minus_zero(f32, {1});
  minus_zero.set_double(0, -0.0);
  EXPECT_FALSE(graph.constant(zero) == graph.constant(minus_zero));
  EXPECT_EQ(graph.constant(zero), graph.constant(Array(f32, {1})));
  EXPECT_FALSE(graph.constant(Array(f32, {1})) == graph.constant(Array(i32, {1}))) << "same bytes, other type";
}

TEST(Graph, InputsHaveUniqueNamesAndSizes) {
  Graph graph("g");
  graph.input("x", {2}, f32);
  EXPECT_EQ(error_of([&] { graph.param("x", {3}, f32); }), "graph 'g': input 'x' exists already");
  EXPECT_EQ(error_of([&] { graph.input("", {3}, f32); }), "graph 'g': an input needs a name");
  EXPECT_EQ(error_of([&] { graph.input("y", {-3}, f32); }), "graph 'g': input 'y': size -3 is negative");
  EXPECT_EQ(error_of([&] { graph.input("y", {Dim::symbol("B", 4) - 2}, f32); }), "graph 'g': input 'y': size B-2 is negative");
}

TEST(Graph, ASymbolHasOneBound) {
  Graph graph;
  graph.input("x", {Dim::symbol("B", 4)}, f32);
  EXPECT_EQ(error_of([&] { graph.input("y", {Dim::symbol("B", 8)}, f32); }), "symbol 'B' has two bounds: 4 and 8");
  graph.input("y", {Dim::symbol("S", 8), Dim::symbol("B", 4)}, f32);
  EXPECT_EQ(graph.symbols(), (std::map<std::string, std::int64_t>{{"B", 4}, {"S", 8}}));
}

TEST(Graph, OutputsAreValuesOfTheGraphWithUniqueNames) {
  Graph graph("g"), other("other");
  const Value x = graph.input("x", {}, f32);
  graph.output("y", x);
  EXPECT_EQ(error_of([&] { graph.output("y", x); }), "graph 'g': output 'y' exists already");
  EXPECT_EQ(error_of([&] { graph.output("z", Value()); }), "graph 'g': output 'z' is null");
  EXPECT_EQ(error_of([&] { graph.output("z", other.input("x", {}, f32)); }), "graph 'g': output 'z' belongs to graph 'other'");
}

TEST(Graph, BuildersNameWhatTheySawAndWhatIsAllowed) {
  Graph graph("g"), other("other");
  const Value x = graph.input("x", {2, 8}, f32), y = other.input("y", {2, 8}, f32);
  EXPECT_EQ(error_of([&] { softmax(x, 4); }), "rlx.softmax: axis 4 is out of range for f32[2,8] (allowed: -2..1)");
  EXPECT_EQ(error_of([&] { softmax(sum(x, {0, 1}), 0); }), "rlx.softmax: axis 0 is out of range: f32[] has no axes");
  EXPECT_EQ(error_of([&] { sum(x, {1, -1}); }), "rlx.sum: an axis is named twice in [1,1]");
  EXPECT_NE(error_of([&] { x + y; }).find("operands belong to different graphs 'g' and 'other'"), std::string::npos);
  EXPECT_NE(error_of([&] { abs(Value()); }).find("rlx.abs: "), std::string::npos);
}

TEST(Graph, ApplyRefusesWrongOperandsAndAttributes) {
  Graph graph("g");
  const Value x = graph.input("x", {2, 8}, f32);
  const Value two[] = {x, x};
  const OpDef &softmax_def = find_op("softmax"), &constant = find_op("constant");
  const Attrs constant_attrs{Array(f32, {})};
  EXPECT_EQ(error_of([&] { apply(find_op("abs"), {}, two); }), "rlx.abs: takes 1 operand, given 2");
  EXPECT_EQ(error_of([&] { apply(graph.data(), find_op("add"), {}); }), "rlx.add: takes 2 operands, given 0");
  EXPECT_EQ(error_of([&] { apply(graph.data(), find_op("concat"), {std::int64_t{0}}); }), "rlx.concat: needs at least one operand");
  EXPECT_EQ(error_of([&] { apply(constant, constant_attrs, two); }), "rlx.constant: takes no operands, given 2");
  EXPECT_EQ(error_of([&] { apply(graph.data(), constant, {Array()}); }), "rlx.constant: has no value");
  Attrs attrs;
  for (const Field& field : softmax_def.fields) attrs.push_back(field.initial);
  attrs[0] = 1.5;
  EXPECT_EQ(error_of([&] { apply(softmax_def, attrs, {two, 1}); }), "rlx.softmax: attribute 'axis' has the wrong type: 1.5");
  EXPECT_EQ(error_of([] { find_op("sofmax"); }), "op 'sofmax' is unknown (near: 'softmax')");
}

TEST(Graph, ValuesOfEnclosingGraphsBecomeCaptures) {
  Graph outer("outer");
  const Value x = outer.input("x", {2}, f32), y = outer.input("y", {2}, f32);
  Graph middle("middle", outer.data()), inner("inner", middle.data());
  const Value z = inner.input("z", {2}, f32);
  const Value sum = z + x, again = z + x;
  EXPECT_EQ(sum, again) << "captured once";
  EXPECT_EQ(&sum.graph(), &inner.data());
  inner.output("s", sum * y);
  ASSERT_EQ(inner.captures().size(), 2u);
  ASSERT_EQ(middle.captures(), (Values{x, y})) << "lifted through every region between";
  EXPECT_EQ(&inner.captures()[0].graph(), &middle.data());
  EXPECT_EQ(inner.inputs().size(), 3u);
  EXPECT_EQ(outer.size(), 2u) << "nothing is added outside";
}

TEST(Graph, ACaptureIsNoDeclaredInputOfTheSameName) {
  Graph outer("outer");
  const Value x = outer.input("x", {2}, f32);
  Graph inner("inner", outer.data());
  const Value declared = inner.input("capture0", {2}, f32);
  const Value sum = declared + x;
  ASSERT_EQ(inner.inputs().size(), 2u);
  EXPECT_FALSE(inner.node(sum.id().node).operands[0] == inner.node(sum.id().node).operands[1]);
}

TEST(Graph, RegionsSideBySideDoNotMix) {
  Graph outer("outer");
  Graph left("left", outer.data()), right("right", outer.data());
  const Value a = left.input("a", {2}, f32), b = right.input("b", {2}, f32);
  EXPECT_NE(error_of([&] { a + b; }).find("different graphs 'left' and 'right'"), std::string::npos);
  EXPECT_EQ(error_of([&] { outer.output("y", a); }), "graph 'outer': output 'y' belongs to graph 'left'");
}

TEST(Graph, StructuralEqualitySeesInputsNodesAndOutputs) {
  const auto build = [](std::string input, std::string output, double slope) {
    Graph graph;
    graph.output(std::move(output), leaky_relu(graph.input(std::move(input), {2}, f32), slope));
    return graph;
  };
  const Graph graph = build("x", "y", 0.5);
  EXPECT_TRUE(structurally_equal(graph, build("x", "y", 0.5)));
  EXPECT_EQ(structural_hash(graph), structural_hash(build("x", "y", 0.5)));
  EXPECT_FALSE(structurally_equal(graph, build("z", "y", 0.5)));
  EXPECT_FALSE(structurally_equal(graph, build("x", "z", 0.5)));
  EXPECT_FALSE(structurally_equal(graph, build("x", "y", 0.25)));
}

}  // namespace
}  // namespace rlx
