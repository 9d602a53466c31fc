// How far from 0 the index arithmetic of kernels gets: what decides between 32 and 64 bits.
#include "kernel/reach.h"

#include <gtest/gtest.h>

#include "kernel/graph_kernel.h"
#include "passes/expand.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

bool is_narrow_kernel(const std::function<Value(Graph&)>& make) {
  Graph graph;
  graph.output("y", make(graph));
  return is_narrow(kernel_of(expand(graph, [](const Graph&, const Node&) { return false; })));
}

constexpr std::int64_t beyond = most_narrow + 1;

TEST(Reach, KnownSizesAreNarrowUpToALimit) {
  const auto doubled = [](Dims shape) { return is_narrow_kernel([&](Graph& g) { return g.input("x", std::move(shape), f32) * 2.0; }); };
  EXPECT_TRUE(doubled({1 << 14, 1 << 15}));
  EXPECT_FALSE(doubled({1 << 16, 1 << 15}));
  EXPECT_FALSE(doubled({0, std::int64_t{1} << 40})) << "a loop goes there, although nothing is in it";
  for (const int sign : {1, -1}) {
    EXPECT_TRUE(is_narrow(Index(Dim(sign * most_narrow))));
    EXPECT_FALSE(is_narrow(Index(Dim(sign * beyond))));
  }
}

TEST(Reach, IsAtTheBoundsOfSymbols) {
  const auto of = [](std::int64_t tokens) {
    const Dim t = Dim::symbol("T", tokens), s = Dim::symbol("S", 1 << 10);
    return is_narrow_kernel([&](Graph& g) { return reshape(g.input("x", {s, t, 3}, f32), {s * t, 3}) + g.input("z", {3}, f32); });
  };
  EXPECT_TRUE(of(1 << 18));
  EXPECT_FALSE(of(1 << 20));
  EXPECT_FALSE(of(std::int64_t{1} << 45));
}

TEST(Reach, SumsAreOfMagnitudes) {
  const Index i = Index::variable(0, most_narrow / 2);
  EXPECT_TRUE(is_narrow(i + Index(9)));
  EXPECT_FALSE(is_narrow(i + Index(beyond / 2 + 9))) << "the last place is beyond";
  EXPECT_TRUE(is_narrow(i * Dim(-1) + Index(9)));
  EXPECT_FALSE(is_narrow(i * Dim(-2) + Index(9))) << "so is the first one";
}

TEST(Reach, WhatIsDividedCounts) {
  const Index product = Index::variable(0, 1 << 10) * Dim(1 << 22) + Index::variable(1, 1 << 22);
  EXPECT_FALSE(is_narrow(Index::quotient(product, 3 << 21))) << "the quotient is small, what is divided is not";
  EXPECT_FALSE(is_narrow(Index::remainder(product, 3 << 21)));
  const Index small = Index::variable(0, 1 << 10) * Dim(1 << 12) + Index::variable(1, 1 << 12);
  EXPECT_EQ(reach(Index::quotient(small, 3 << 11) * Dim(1 << 20)), (((1 << 22) - 1) / (3 << 11) + 1) * 0x1p20);
  EXPECT_EQ(reach(Index::remainder(small, 3 << 11)), 0x1p22 + (1 << 12)) << "each term has its most";
  const Index down = Index(5) - Index::variable(0, 1 << 10);
  EXPECT_EQ(reach(Index::quotient(down, 3)), (1 << 10) + 5) << "its extent does not count what is below 0";
}

TEST(Reach, IndicesThatWereReadCountAsTheyAreClamped) {
  const auto of_rows = [](std::int64_t rows) {
    return is_narrow_kernel([&](Graph& g) { return embedding(g.input("table", {rows, 64}, f32), g.input("ids", {100}, i64)); });
  };
  EXPECT_TRUE(of_rows(1 << 20));
  EXPECT_FALSE(of_rows(1 << 26));
}

TEST(Reach, DecidesOfWhatTheCpuMakesFloats) {
  const auto ramp = [](const Dim& size) {
    Graph graph;
    graph.output("y", iota(graph.input("x", {1}, f32), {size}, f32));
    return emit_llvm(kernel_of(graph)).text;
  };
  for (const Dim& size : {Dim(1000), Dim::symbol("S", 1000)}) EXPECT_NE(ramp(size).find("sitofp i32"), std::string::npos) << ramp(size);
  for (const Dim& size : {Dim(std::int64_t{1} << 31), Dim::symbol("S", std::int64_t{1} << 31)})
    EXPECT_NE(ramp(size).find("sitofp i64"), std::string::npos) << ramp(size);
}

TEST(Reach, LoopsAreCountedTogether) {
  EXPECT_FALSE(is_narrow_kernel([](Graph& g) { return sum(broadcast_to(g.input("x", {1}, f32), {1 << 16, 1 << 16}), {0, 1}); }));
  EXPECT_FALSE(is_narrow_kernel([](Graph& g) { return broadcast_to(g.input("x", {1}, f32), {1 << 16, 1 << 16}); }));
}

}  // namespace
}  // namespace rlx::test
