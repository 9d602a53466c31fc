// Inputs, parameters and states as callers give them, and outputs as they take them.
#include <gtest/gtest.h>

#include "ops/evaluated.h"
#include "rlx/session.h"
#include "runtime/fresh_session.h"

namespace rlx::test {
namespace {

/// y = x * scale for x: f32[B,2] with B <= 8, and a parameter scale: f32[2].
Executable scaled() {
  Graph graph("scaled");
  const Value x = graph.input("x", {Dim::symbol("B", 8), 2}, f32);
  graph.output("y", x * graph.param("scale", {2}, f32));
  return session().compile(graph);
}

TEST(Binding, ErrorsNameWhatDoesNotFit) {
  Executable program = scaled();
  const Array x = counting(f32, {3, 2});
  EXPECT_EQ(program.missing_params(), std::vector<std::string>{"scale"});
  expect_error(error_of([&] { program.run({{"x", x}}); }), {"no value is bound to parameter 'scale' (f32[2])"});
  expect_error(error_of([&] { program.set_param("scael", counting(f32, {2})); }), {"parameter 'scael' is unknown", "scale"});
  expect_error(error_of([&] { program.set_param("x", counting(f32, {2})); }), {"'x' is an input, not a parameter"});
  expect_error(error_of([&] { program.set_param("scale", counting(f64, {2})); }), {"parameter 'scale'", "f64", "f32"});
  expect_error(error_of([&] { program.set_param("scale", counting(f32, {3})); }), {"parameter 'scale'", "[3]", "f32[2]"});
  program.set_param("scale", array_of(f32, {2}, {10, 100}));
  EXPECT_TRUE(program.missing_params().empty());
  expect_error(error_of([&] { program.run({}); }), {"input 'x'", "f32[B,2]", "missing"});
  expect_error(error_of([&] { program.run({{"x", x}, {"z", x}}); }), {"input 'z' is unknown"});
  expect_error(error_of([&] { program.run({{"x", x}, {"scale", x}}); }), {"'scale' is a parameter, not an input"});
  expect_error(error_of([&] { program.run({{"x", counting(i32, {3, 2})}}); }), {"input 'x'", "i32", "f32"});
  expect_error(error_of([&] { program.run({{"x", counting(f32, {3, 3})}}); }), {"input 'x'", "[3,3]", "axis 1 is 3", "2"});
  expect_error(error_of([&] { program.run({{"x", counting(f32, {6})}}); }), {"input 'x'", "rank 1", "rank 2"});
  expect_error(error_of([&] { program.run({{"x", counting(f32, {9, 2})}}); }), {"B would be 9", "1..8"});
  expect_error(error_of([&] { program.run({{"x", counting(f32, {0, 2})}}); }), {"B would be 0", "1..8"});
  expect_near(program.run({{"x", x}}).at("y"), {0, 100, 20, 300, 40, 500}, 0);
}

TEST(Binding, ARangeTellsTheSizeOfOneSymbol) {
  Executable program = scaled();
  program.set_param("scale", array_of(f32, {2}, {10, 100}));
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  const Outputs y = program.run({{"x", x}});
  EXPECT_EQ(y.at("y").shape(), (Shape{3, 2}));
  expect_near(y.at("y"), {10, 200, 30, 400, 50, 600}, 0);
  expect_error(error_of([&] { program.run({{"x", std::vector<float>{1, 2, 3}}}); }), {"input 'x': 3 values for f32[B,2]"});
  expect_error(error_of([&] { program.run({{"x", std::vector<float>(18)}}); }), {"B would be 9", "1..8"});
  Graph two("two");
  two.output("y", exp(two.input("x", {Dim::symbol("A", 8), Dim::symbol("B", 8)}, f32)));
  const Executable open = session().compile(two);
  expect_error(error_of([&] { open.run({{"x", x}}); }), {"6 values of f32[A,B] is not clear", "Array::of(shape, values)"});
}

TEST(Binding, ResultsAreWrittenWhereTheCallerWants) {
  Graph graph("two");
  const Value x = graph.input("x", {Dim::symbol("B", 8), 2}, f32);
  graph.output("double", x * 2);
  graph.output("sum", sum(x, {0, 1}));
  graph.output("again", x * 2);
  const Executable program = session().compile(graph);
  const Array values = counting(f32, {3, 2});
  std::vector<float> doubled(6), again(6);
  const Outputs rest = program.run({{"x", values}}, {{"double", doubled}, {"again", again}});
  EXPECT_EQ(doubled, (std::vector<float>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(again, doubled);
  EXPECT_EQ(rest.size(), 1u);
  expect_near(rest.at("sum"), {15}, 0);
  std::vector<double> wide(6);
  std::vector<float> small(5);
  expect_error(error_of([&] { program.run({{"x", values}}, {{"double", wide}}); }), {"output 'double': elements are f64, must be f32"});
  expect_error(error_of([&] { program.run({{"x", values}}, {{"double", small}}); }),
               {"output 'double': memory for 5 values, 6 are computed"});
  expect_error(error_of([&] { program.run({{"x", values}}, {{"doubl", doubled}}); }), {"output 'doubl' is unknown", "double"});
}

TEST(Binding, ResultsDoNotOverwriteWhatIsRead) {
  Graph graph("step");
  const Value w = graph.input("w", {4}, f32);
  graph.output("next", reverse(w, {0}));
  graph.output("other", w * 2);
  const Executable program = session().compile(graph);
  std::vector<float> values{1, 2, 3, 4}, result(5);
  expect_error(error_of([&] { program.run({{"w", values}}, {{"next", values}}); }), {"output 'next'", "also that of an input"});
  const std::span<float> left(result.data(), 4), right(result.data() + 1, 4);
  expect_error(error_of([&] { program.run({{"w", values}}, {{"next", left}, {"other", right}}); }), {"another output"});
}

TEST(Binding, AnArrayThatWasNeverMadeIsAnError) {
  Graph graph("scalar");
  graph.output("y", exp(graph.input("x", {}, f32)) + graph.param("p", {}, f32));
  Executable program = session().compile(graph);
  expect_error(error_of([&] { program.set_param("p", Array()); }), {"parameter 'p'", "no value"});
  program.set_param("p", Array(f32, {}));
  expect_error(error_of([&] { program.run({{"x", Array()}}); }), {"input 'x'", "no value"});
}

TEST(Binding, ASizeThatNoInputShowsIsAnError) {
  Graph graph("open");
  const Value x = graph.input("x", {8}, f32);
  graph.output("y", cast(iota(x, {Dim::symbol("Z", 4)}, i32), f32));
  expect_error(error_of([&] { session().compile(graph); }), {"iota gives i32[Z]", "no input", "Z"});
}

TEST(Binding, AProgramIsOfTheGraphAsItWasCompiled) {
  Graph graph("growing");
  const Value x = graph.input("x", {2}, f32);
  graph.output("y", x * 2);
  const Executable before = session().compile(graph);
  graph.output("z", x + graph.param("w", {2}, f32));
  graph.output("n", graph.state("n", {2}, f32) + 1);
  Executable after = session().compile(graph);
  after.set_param("w", array_of(f32, {2}, {5, 6}));
  EXPECT_EQ(before.run({{"x", counting(f32, {2})}}).size(), 1u);
  EXPECT_EQ(after.run({{"x", counting(f32, {2})}}).size(), 3u);
}

TEST(Binding, ParametersThatAreBoundAgainCount) {
  Graph graph("product");
  graph.output("y", matmul(graph.input("x", {16, 64}, f32), graph.param("w", {64, 64}, f32)));
  Executable first = session().compile(graph), second = session().compile(graph);
  Array w(f32, {64, 64}), x(f32, {16, 64});
  const auto expect_sums = [&](double wanted) {
    for (Executable* program : {&first, &second}) {
      program->set_param("w", w);
      EXPECT_EQ(program->run({{"x", x}}).at("y").get_double(5), wanted);
    }
  };
  for (float& v : x.mutable_values<float>()) v = 1;
  for (float& v : w.mutable_values<float>()) v = 1;
  expect_sums(64);
  for (float& v : w.mutable_values<float>()) v = 2;
  expect_sums(128);
}

TEST(Binding, OutputsByName) {
  Executable program = scaled();
  program.set_param("scale", array_of(f32, {2}, {1, 1}));
  const Outputs y = program.run({{"x", counting(f32, {1, 2})}});
  EXPECT_EQ(y.size(), 1u);
  EXPECT_EQ(y.begin()->first, "y");
  expect_error(error_of([&] { y.at("z"); }), {"output 'z' is unknown"});
}

TEST(Binding, ParametersAreSharedNotCopied) {
  Executable program = scaled();
  const Array scale = array_of(f32, {2}, {1, 2});
  const auto owners = scale.owner().use_count();
  program.set_param("scale", scale);
  EXPECT_EQ(scale.owner().use_count(), owners + 1);
}

/// total = state + x * w + b, for two parameters and a state named as the output.
Executable affine() {
  Graph graph("affine");
  const Value x = graph.input("x", {2}, f32), w = graph.param("w", {2}, f32), b = graph.param("b", {2}, f32);
  graph.output("total", graph.state("total", {2}, f32) + x * w + b);
  return session().compile(graph);
}

TEST(Binding, AllParametersAndStatesInOneCall) {
  Executable program = affine();
  const Array x = array_of(f32, {2}, {1, 2});
  program.set_params({{"w", array_of(f32, {2}, {10, 10})}, {"b", array_of(f32, {2}, {1, 2})}, {"total", array_of(f32, {2}, {100, 200})}});
  expect_near(program.run({{"x", x}}).at("total"), {111, 222}, 0);
  program.set_params({{"b", array_of(f32, {2}, {0, 0})}});  // w is bound already
  expect_near(program.run({{"x", x}}).at("total"), {121, 242}, 0);
}

TEST(Binding, OneErrorListsAllNamesThatDoNotFit) {
  Executable program = affine();
  const Array ones = array_of(f32, {2}, {1, 1});
  EXPECT_EQ(error_of([&] { program.set_params({{"bb", ones}, {"x", ones}}); }),
            "graph 'affine': parameters without a value: 'w', 'b'; no parameter or state: 'bb', 'x'");
  EXPECT_EQ(error_of([&] { program.set_params({{"w", ones}, {"bb", ones}, {"b", ones}}); }),
            "graph 'affine': no parameter or state: 'bb' (near: 'b')");
  expect_error(error_of([&] { program.set_params({{"w", ones}, {"b", array_of(f32, {3}, {1, 1, 1})}}); }),
               {"parameter 'b'", "[3]", "f32[2]"});
  EXPECT_EQ(program.missing_params(), (std::vector<std::string>{"w", "b", "total"})) << "a call that fails binds nothing";
}

// A range, or an array without an owner, may be gone when the program runs.
TEST(Binding, WhatNobodyOwnsIsCopied) {
  Executable program = scaled();
  std::vector<float> scale{1, 2};
  program.set_param("scale", scale);
  std::fill(scale.begin(), scale.end(), 9.0f);
  const Array x = array_of(f32, {1, 2}, {1, 1});
  expect_near(program.run({{"x", x}}).at("y"), {1, 2}, 0);
  program.set_param("scale", Array(f32, {2}, std::as_bytes(std::span(scale)), nullptr));
  std::fill(scale.begin(), scale.end(), 0.0f);
  expect_near(program.run({{"x", x}}).at("y"), {9, 9}, 0);

  Graph graph;
  graph.output("y", graph.state("s", {2}, f32) + graph.input("x", {2}, f32));
  Executable stateful = session().compile(graph);
  std::vector<float> start{3, 4};
  stateful.set_state("s", start);
  std::fill(start.begin(), start.end(), 0.0f);
  expect_near(stateful.run({{"x", array_of(f32, {2}, {1, 1})}}).at("y"), {4, 5}, 0);
}

TEST(Binding, ShapesAreCheckedWhereTheyAreGiven) {
  Graph graph("sized");
  const Dim b = Dim::symbol("B", 8);
  const Value x = graph.input("x", {b}, f32), p = graph.param("p", {b}, f32), s = graph.state("s", {2}, f32);
  graph.output("y", x + p + sum(s, {0}));
  Executable program = session().compile(graph);
  expect_error(error_of([&] { program.set_param("p", counting(f32, {9})); }), {"parameter 'p'", "[9]", "f32[B]"});
  expect_error(error_of([&] { program.set_param("p", counting(f32, {1, 1})); }), {"parameter 'p'", "[1,1]", "f32[B]"});
  expect_error(error_of([&] { program.set_state("s", counting(f32, {3})); }), {"state 's'", "[3]", "f32[2]"});
  program.set_param("p", counting(f32, {3}));
  expect_error(error_of([&] { program.run({{"x", counting(f32, {4})}}); }), {"parameter 'p'", "[3]", "4"});
}

TEST(Binding, AFlatRangeTakesTheShapeOfAStaticType) {
  Graph graph;
  graph.output("y", transpose(graph.input("x", {2, 3}, f32), {1, 0}));
  const Executable program = session().compile(graph);
  expect_near(program.run({{"x", std::vector<float>{0, 1, 2, 3, 4, 5}}}).at("y"), {0, 3, 1, 4, 2, 5}, 0);
  expect_error(error_of([&] { program.run({{"x", std::vector<float>(5)}}); }), {"5 values", "f32[2,3]", "6"});
}

}  // namespace
}  // namespace rlx::test
