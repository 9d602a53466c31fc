// The attention claim where numbers or operands are of an unusual kind.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

/// Of attention alone: the program's only launch is the claim's.
Array claimed(const Graph& graph, const std::map<std::string, Array>& inputs) {
  const Session session(Device::cpu(), {.threads = 2, .cache_folder = ""});
  const Executable program = session.compile(graph);
  const std::map<std::string, Feed> feeds(inputs.begin(), inputs.end());
  const auto launches = program.profile(feeds, 0);
  EXPECT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].name, "attention");
  return program.run(feeds).at("y");
}

std::map<std::string, Array> random_inputs(const Graph& graph) {
  std::mt19937 random(5);
  std::map<std::string, Array> inputs;
  for (const auto& [input, value] : graph.inputs()) inputs[input.name] = random_array(input.type, -2, 2, random);
  return inputs;
}

// One query over many keys is computed in chunks; a chunk whose largest score is NaN counts wherever it is, as it does in the reference.
TEST(AttentionEdges, ANaNInOneChunkOfKeysReachesTheResult) {
  constexpr std::int64_t keys = 3000;
  Graph graph;
  const Value q = graph.input("q", {1, 1, 1, 4}, f32), k = graph.input("k", {1, 1, keys, 4}, f32),
              v = graph.input("v", {1, 1, keys, 4}, f32);
  graph.output("y", attention(q, k, v));
  for (const std::int64_t key : {std::int64_t{0}, std::int64_t{127}, std::int64_t{1023}, std::int64_t{1500}, keys - 1}) {
    std::map<std::string, Array> inputs = random_inputs(graph);
    for (std::int64_t d = 0; d < 4; ++d) inputs["k"].set_double(key * 4 + d, NAN);
    const Array seen = claimed(graph, inputs), wanted = evaluate(graph, inputs)[0];
    for (std::int64_t d = 0; d < 4; ++d) {
      EXPECT_TRUE(std::isnan(wanted.get_double(d)));
      EXPECT_TRUE(std::isnan(seen.get_double(d))) << "key " << key;
    }
  }
}

/// Scores and sums are rounded to f32: as in attention_test.
constexpr double tolerance = 4e-6;

TEST(AttentionEdges, AMaskMayBeAConstantOfOneElement) {
  for (const double keep : {1.0, 0.0}) {
    Graph graph;
    const Value q = graph.input("q", {1, 1, 1, 4}, f32), k = graph.input("k", {1, 1, 1025, 4}, f32),
                v = graph.input("v", {1, 1, 1025, 4}, f32);
    graph.output("y", attention(q, k, v, {.mask = graph.constant(array_of(boolean, {1, 1, 1, 1}, {keep}))}));
    const auto inputs = random_inputs(graph);
    EXPECT_LE(difference(claimed(graph, inputs), evaluate(graph, inputs)[0]), tolerance);
  }
}

TEST(AttentionEdges, QueriesMayBeAConstantOfOneElement) {
  Graph graph;
  const Value k = graph.input("k", {1, 5, 1}, f32), v = graph.input("v", {1, 5, 4}, f32);
  graph.output("y", attention(graph.constant(floats({1, 1, 1}, {2})), k, v));
  const auto inputs = random_inputs(graph);
  EXPECT_LE(difference(claimed(graph, inputs), evaluate(graph, inputs)[0]), tolerance);
}

TEST(AttentionEdges, BiasAndPositionsMayBeConstantsOfOneElement) {
  Graph graph;
  const Value q = graph.input("q", {1, 1, 1, 4}, f32), k = graph.input("k", {1, 1, 7, 4}, f32), v = graph.input("v", {1, 1, 7, 4}, f32);
  const Value bias = graph.constant(floats({1, 1, 1, 1}, {0.5})), positions = graph.constant(ints({1, 1}, {3}));
  graph.output("y", attention(q, k, v, {.causal = true, .bias = bias, .positions = positions}));
  const auto inputs = random_inputs(graph);
  EXPECT_LE(difference(claimed(graph, inputs), evaluate(graph, inputs)[0]), tolerance);
}

/// Keys or values in f32 from how they are stored: as narrow floats, or as int8 numbers with scales for runs of features.
Value widened(Graph& graph, const std::string& name, DType stored, const Dims& shape, std::int64_t run) {
  Value numbers = graph.input(name, shape, stored);
  if (stored != i8) return cast(numbers, f32);
  Dims runs = shape;
  runs.back() = shape.back().value() / run;
  runs.push_back(1);
  Value scales = graph.input(name + " scales", runs, f32);
  runs.back() = run;
  return cast(numbers, f32) * reshape(broadcast_to(scales, runs), shape);
}

// One query, few heads in a group, many; features that fill vectors and others; scales of runs and of whole rows.
TEST(AttentionEdges, NarrowKeysAndValuesAreWidenedWhereTheyAreRead) {
  struct Sizes {
    std::int64_t heads, queries, features, run;
  };
  for (const DType stored : {f16, bf16, i8})
    for (const Sizes& s : {Sizes{2, 1, 64, 32}, Sizes{12, 1, 32, 16}, Sizes{4, 40, 48, 16}, Sizes{2, 3, 20, 20}}) {
      SCOPED_TRACE(fmt::format("{}: {} heads, {} queries, {} features", name(stored), s.heads, s.queries, s.features));
      Graph graph;
      const Value q = graph.input("q", {1, s.heads, s.queries, s.features}, f32);
      const Dims rows{1, 2, 300, s.features};
      Value k = widened(graph, "k", stored, rows, s.run), v = widened(graph, "v", stored, rows, s.run);
      graph.output("y", attention(q, k, v, {.scale = stored == i8 ? 0.1 : 0, .causal = true}));
      const auto inputs = random_inputs(graph);
      EXPECT_LE(difference(claimed(graph, inputs), evaluate(graph, inputs)[0]), stored == i8 ? 2 * tolerance : tolerance);
    }
}

// As a cache of many sequences has them: a table names the pages of each, and their scales are in pages of the same numbers.
TEST(AttentionEdges, NarrowRowsMayLieInPages) {
  constexpr std::int64_t pages = 5, heads = 2, rows = 128, features = 32, items = 2, of_item = 3;
  for (const DType stored : {f16, i8}) {
    Graph graph;
    const Value table = graph.input("pages", {items, of_item, 1}, i32), positions = graph.input("positions", {items, 1}, i32);
    const auto gathered = [&](const std::string& name, DType dtype, std::int64_t size) {
      Value own = gather(graph.input(name, {pages, heads, rows, size}, dtype), table, {{2, 3, 4}, {0}, {0}}, {1, heads, rows, size});
      return reshape(transpose(own, {0, 2, 1, 3, 4}), {items, heads, of_item * rows, size});
    };
    const auto keys = [&](const std::string& name) {
      Value numbers = cast(gathered(name, stored, features), f32);
      if (stored != i8) return numbers;
      return numbers * broadcast_to(gathered(name + " scales", f32, 1), numbers.shape());
    };
    const Value q = graph.input("q", {items, 4, 1, features}, f32), k = keys("k"), v = keys("v");
    graph.output("y", attention(q, k, v, {.scale = stored == i8 ? 0.1 : 0, .causal = true, .positions = positions}));
    auto inputs = random_inputs(graph);
    inputs["pages"] = ints({items, of_item, 1}, {4, 0, 2, 1, 3, 0});
    inputs["positions"] = ints({items, 1}, {200, 383});
    EXPECT_LE(difference(claimed(graph, inputs), evaluate(graph, inputs)[0]), stored == i8 ? 2 * tolerance : tolerance);
  }
}

TEST(AttentionEdges, KeysAndValuesMayBeStoredDifferently) {
  Graph graph;
  const Value q = graph.input("q", {1, 2, 3, 16}, f32), k = cast(graph.input("k", {1, 2, 9, 16}, f16), f32);
  graph.output("y", attention(q, k, graph.input("v", {1, 2, 9, 16}, f32)));
  const auto inputs = random_inputs(graph);
  const Session session(Device::cpu(), {.threads = 1, .cache_folder = ""});
  const std::map<std::string, Feed> feeds(inputs.begin(), inputs.end());
  EXPECT_LE(difference(session.compile(graph).run(feeds).at("y"), evaluate(graph, inputs)[0]), tolerance);
}

}  // namespace
}  // namespace rlx::test
