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

}  // namespace
}  // namespace rlx::test
