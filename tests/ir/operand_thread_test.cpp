// An error thrown while a graph is built names the line of the caller.
#include <gtest/gtest.h>

#include <atomic>
#include <source_location>
#include <thread>

#include "message.h"
#include "rlx/rlx.h"

namespace rlx {
namespace {

using test::whole_error_of;

/// What a message ends in when it names a line of this file.
std::string built_at(std::uint_least32_t line) { return ", built at ir/operand_thread_test.cpp:" + std::to_string(line); }

/// The line on which this is called.
std::uint_least32_t here(std::source_location at = std::source_location::current()) { return at.line(); }

void expect_place(const std::string& message, std::uint_least32_t line) {
  EXPECT_TRUE(message.ends_with(built_at(line))) << message << "\nwanted" << built_at(line);
  EXPECT_EQ(message.find(", built at "), message.rfind(", built at ")) << message;
}

class OperandTest : public testing::Test {
 protected:
  Graph graph_;
  Value x_ = graph_.input("x", {2, 8}, f32);
  Value n_ = graph_.input("n", {3}, i32);
  Value far_ = graph_.input("far", {5, 7}, f32);
};

TEST_F(OperandTest, WholeMessage) {
  const auto line = here() + 1;
  const std::string message = whole_error_of([&] { softmax(x_, 4); });
  EXPECT_EQ(message, "rlx.softmax: axis 4 is out of range for f32[2,8] (allowed: -2..1)" + built_at(line));
}

TEST_F(OperandTest, NamesTheLineOfEachKindOfBuilder) {
  expect_place(whole_error_of([&] { exp(n_); }), here());
  expect_place(whole_error_of([&] { x_ + far_; }), here());
  expect_place(whole_error_of([&] { add(x_, far_); }), here());
  expect_place(whole_error_of([&] { lgamma(n_); }), here());
  expect_place(whole_error_of([&] { matmul(x_, far_); }), here());
  expect_place(whole_error_of([&] { concat({x_, n_}, 0); }), here());
  expect_place(whole_error_of([&] { stack({x_, far_}); }), here());
  expect_place(whole_error_of([&] { einsum("ij,jk->ik", {x_, far_}); }), here());
  expect_place(whole_error_of([&] { while_loop([](const Values& c) { return c[0]; }, [](const Values& c) { return c; }, {x_}); }), here());
  expect_place(whole_error_of([&] { grad(x_, {x_}); }), here());
  expect_place(whole_error_of([&] { vmap([](const Values& v) { return v; }, {x_}, {2}); }), here());
}

TEST_F(OperandTest, NamesTheLineOfTheCallerWhenABodyThrows) {
  // The mean inside refuses the axis, or the product inside the shapes.
  expect_place(whole_error_of([&] { layer_norm(x_, {}, {}, {5}); }), here());
  expect_place(whole_error_of([&] { linear(x_, far_); }), here());
  expect_place(whole_error_of([&] { mse(x_, far_); }), here());
}

TEST_F(OperandTest, NamesTheLineOfInputsAndOutputs) {
  expect_place(whole_error_of([&] { graph_.input("x", {2}, f32); }), here());
  expect_place(whole_error_of([&] { graph_.param("", {2}, f32); }), here());
  expect_place(whole_error_of([&] { graph_.state("x", {2}, f32); }), here());
  expect_place(whole_error_of([&] { graph_.output("y", Value()); }), here());
}

TEST_F(OperandTest, NamesTheCallThatThrowsAmongNestedOnes) {
  const auto line = here();
  const std::string outer = whole_error_of([&] {
    softmax(      //
        exp(x_),  //
        4);
  });
  EXPECT_NE(outer.find("rlx.softmax"), std::string::npos) << outer;
  const std::string inner = whole_error_of([&] {
    tanh(x_ +  //
         softmax(x_, 4));
  });
  // A compiler may give a call that spans lines any one of them.
  auto within = [&](const std::string& message, std::uint_least32_t first, std::uint_least32_t last) {
    for (auto i = first; i <= last; ++i)
      if (message.ends_with(built_at(i))) return true;
    return false;
  };
  EXPECT_TRUE(within(outer, line + 2, line + 4)) << outer;
  EXPECT_TRUE(within(inner, line + 8, line + 9)) << inner;
}

const std::uint_least32_t line_before_block = here();
Value block(Value x) { return softmax(exp(x), 7); }

TEST_F(OperandTest, NamesTheInnermostLineOfTheCaller) {
  const std::string message = whole_error_of([&] { block(relu(x_)); });
  expect_place(message, line_before_block + 1);
  std::uint_least32_t line = 0;
  auto step = [&](Value, const Values& carry) {
    line = here() + 1;
    return Values{softmax(carry[0], 9)};
  };
  const std::string in_loop = whole_error_of([&] { fori_loop(3, step, {x_}); });
  expect_place(in_loop, line);
}

TEST_F(OperandTest, NothingStaysBehind) {
  whole_error_of([&] { softmax(x_, 4); });
  Operand kept = x_;
  Operand copy = kept;
  copy = tanh(kept);
  EXPECT_EQ(in_call(""), built_at(here() - 3));
  expect_place(whole_error_of([&] { exp(n_); }), here());
  {
    auto first = std::make_unique<Operand>(x_), second = std::make_unique<Operand>(far_);
    first.reset();
  }
  EXPECT_EQ(in_call(""), built_at(here() - 9));
}

TEST_F(OperandTest, ErrorsThatAreNotOfBuildersNameNoLine) {
  whole_error_of([&] { softmax(x_, 4); });
  EXPECT_EQ(in_call(""), "");
  EXPECT_EQ(whole_error_of([] { fail("file.npy: too short"); }), "file.npy: too short");
  const std::string graph = "graph g {\n  %0: f32[2,8] = input {label=\"x\"}\n  %1 = softmax(%0) {axis=7}\n}";
  const std::string text = whole_error_of([&] { parse_graph(graph, "bad.rlx"); });
  EXPECT_TRUE(text.starts_with("bad.rlx:")) << text;
  EXPECT_EQ(text.find("built at"), std::string::npos) << text;
  Graph empty("empty");
  EXPECT_EQ(whole_error_of([&] { Session().compile(empty); }).find("built at"), std::string::npos);
}

TEST_F(OperandTest, ThreadsNameTheirOwnLines) {
  std::atomic<int> wrong = 0;
  std::uint_least32_t lines[2] = {};
  auto build = [&](std::size_t which) {
    Graph graph;
    Value x = graph.input("x", {2, 8}, f32);
    for (int i = 0; i < 200; ++i) {
      std::string message;
      if (which == 0) message = whole_error_of([&] { lines[0] = here(), softmax(exp(x), 4); });
      else message = whole_error_of([&] { lines[1] = here(), reshape(x * 2, {3}); });
      if (!message.ends_with(built_at(lines[which])) || !in_call("").empty()) ++wrong;
    }
  };
  std::thread first([&] { build(0); }), second([&] { build(1); });
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_NE(lines[0], lines[1]);
}

}  // namespace
}  // namespace rlx
