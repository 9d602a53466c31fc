// Loops of kernels: neighbours merge, invariants are hoisted, reductions are not repeated.
#include "kernel/schedule.h"

#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "lowering/lowering.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

/// The only kernel of a graph with one output.
Kernel kernel_of(const Graph& graph) {
  const Program program = lower(graph, cpu::target_of());
  EXPECT_EQ(program.launches.size(), 1u);
  return program.launches.at(0).kernels.at(0).kernel;
}

int count(const Block& block, Statement::Kind kind) {
  int total = 0;
  for (const Statement& s : block) total += (s.kind == kind) + count(s.body, kind);
  return total;
}

TEST(Schedule, PointwiseLoopsMergeIntoOne) {
  Graph graph;
  graph.output("y", graph.input("x", {4, 5, 6}, f32) + 1);
  const Kernel kernel = kernel_of(graph);
  ASSERT_EQ(kernel.loops.size(), 1u);
  EXPECT_EQ(kernel.extent(kernel.loops[0]), Dim(120));
}

TEST(Schedule, ATransposeKeepsItsLoops) {
  Graph graph;
  graph.output("y", transpose(graph.input("x", {4, 5}, f32), {1, 0}));
  EXPECT_EQ(kernel_of(graph).loops.size(), 2u);
}

TEST(Schedule, LoopsOfOneStepDisappear) {
  Graph graph;
  graph.output("y", transpose(graph.input("x", {1, 5}, f32), {1, 0}) + 1);
  EXPECT_EQ(kernel_of(graph).loops.size(), 1u);
}

/// The rounds of a kernel's loops as they are counted for a device with lanes.
double counted_rounds(const Graph& graph, std::int64_t n) {
  const Kernel kernel = kernel_of(graph);
  double rounds = 0;
  for (const auto& [size, share] : rounds_of(kernel, schedule(kernel, {.lanes = true, .products = false}).body))
    rounds += static_cast<double>(size.evaluate({{"N", n}})) * share;
  return rounds;
}

TEST(Schedule, RoundsOfALoopAreItsStepsAndALook) {
  Graph graph;
  graph.output("y", reduce_max(graph.input("x", {Dim::symbol("N", 1000)}, f32), {0}));
  for (const std::int64_t n : {1, 33, 1000}) EXPECT_EQ(counted_rounds(graph, n), static_cast<double>(n + 1));
}

/// Runs of 16 terms and what is behind them; runs of three rows of five terms, the last of which may be shorter.
TEST(Schedule, RoundsOfRunsAreCountedAtMost) {
  Graph row, rows;
  const Dim size = Dim::symbol("N", 1000);
  row.output("y", sum(row.input("x", {size}, f32), {0}));
  rows.output("y", sum(rows.input("x", {size, 3, 5}, f32), {0, 2}));
  for (std::int64_t n = 1; n <= 1000; n += 37) {
    const std::int64_t of_row = (n / 16 + 1) + n / 16 * 17 + (n % 16 + 1), runs = (n + 2) / 3, of_rows = (runs + 1) + (n + runs) + n * 6;
    EXPECT_GE(counted_rounds(row, n), static_cast<double>(of_row)) << n;
    EXPECT_LT(counted_rounds(row, n), static_cast<double>(of_row + 3)) << n;  // a run has two rounds of its own
    EXPECT_GE(counted_rounds(rows, n), static_cast<double>(of_rows)) << n;
    EXPECT_LE(counted_rounds(rows, n), static_cast<double>(of_rows + 2)) << n;
  }
}

TEST(Schedule, ARowReductionRunsOncePerRow) {
  Graph graph;
  const Value x = graph.input("x", {4, 5}, f32);
  graph.output("y", x - broadcast(sum(x, {1}), {4, 5}, {0}));
  const Kernel kernel = kernel_of(graph);
  const Scheduled scheduled = schedule(kernel);
  EXPECT_EQ(scheduled.grid.size(), 1u) << "rows are split over threads";
  EXPECT_EQ(count(scheduled.body, Statement::Kind::begin), 1);
  EXPECT_EQ(count(scheduled.body, Statement::Kind::store), 1);
  // The accumulator is begun beside the loop over the columns, not in it.
  for (const Statement& s : scheduled.body)
    if (s.kind == Statement::Kind::loop && count(s.body, Statement::Kind::store) == 1) {
      EXPECT_EQ(count(s.body, Statement::Kind::begin), 0);
    }
}

TEST(Schedule, WithLanesEachResultIsAPositionUnlessItsRowSharesAReduction) {
  const auto grid_of = [](const auto& build) {
    Graph graph;
    graph.output("y", build(graph.input("x", {40, 50}, f32)));
    const Kernel kernel = kernel_of(graph);
    const Scheduled scheduled = schedule(kernel, {.lanes = true});
    EXPECT_EQ(count(scheduled.body, Statement::Kind::blocks) + count(scheduled.body, Statement::Kind::lanes), 0);
    std::vector<Dim> extents;
    for (const auto [loop, step] : scheduled.counted()) extents.push_back(kernel.extent(loop));
    return extents;
  };
  EXPECT_EQ(grid_of([](const Value& x) { return transpose(x, {1, 0}) + 1; }), (std::vector<Dim>{50, 40}));
  EXPECT_EQ(grid_of([](const Value& x) { return sum(x, {0}); }), std::vector<Dim>{50});
  EXPECT_EQ(grid_of([](const Value& x) { return x - broadcast(sum(x, {1}), {40, 50}, {0}); }), std::vector<Dim>{40});
}

TEST(Schedule, WithVectorsAPositionIsARunOfResultsOrGoesThroughItsRowByVectors) {
  const auto schedule_of = [](const auto& build) {
    Graph graph;
    graph.output("y", build(graph.input("x", {40, 50}, f32), graph.input("z", {50}, f32)));
    return schedule(kernel_of(graph), {.lanes = true, .vector = 16});
  };
  const Scheduled columns = schedule_of([](const Value& x, const Value& z) { return sum(x, {0}) + z; });
  ASSERT_EQ(columns.grid.size(), 1u);
  EXPECT_EQ(columns.grid[0].step, 16);
  const Scheduled biased = schedule_of([](const Value& x, const Value& z) { return x + broadcast(z, {40, 50}, {1}); });
  ASSERT_EQ(biased.grid.size(), 2u);
  EXPECT_EQ(biased.grid[0].step, 1);
  EXPECT_EQ(biased.grid[1].step, 16);
  const Scheduled rows = schedule_of([](const Value& x, const Value&) { return x - broadcast(sum(x, {1}), {40, 50}, {0}); });
  ASSERT_EQ(rows.grid.size(), 1u);
  EXPECT_EQ(rows.grid[0].step, 1);
  for (const Statement& s : rows.body)
    if (s.kind == Statement::Kind::loop) {
      EXPECT_EQ(s.vector, 16);
    }
}

TEST(Schedule, AReductionThatARowWouldRepeatIsAKernelOfItsOwn) {
  Graph graph;
  const Value x = graph.input("x", {40, 50}, f32);
  graph.output("y", x - broadcast(sum(x, {0}), {40, 50}, {1}));
  EXPECT_EQ(lower(graph, cpu::target_of()).launches.size(), 2u);
}

TEST(Schedule, CostCountsBytesAndOperations) {
  Graph graph;
  const Dim b = Dim::symbol("B", 100);
  graph.output("y", graph.input("x", {b, 8}, f32) + graph.input("z", {b, 8}, f32));
  const Cost c = cost(kernel_of(graph), {{"B", 10}});
  EXPECT_EQ(c.bytes, 3 * 80 * 4);
  EXPECT_EQ(c.flops, 80);
}

}  // namespace
}  // namespace rlx
