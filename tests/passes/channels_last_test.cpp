// The order of axes that convolutions and what follows them are computed in.
#include "passes/channels_last.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/rebuild.h"
#include "ir/reference.h"
#include "passes/expand.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

/// Small whole numbers, whose sums of products are exact in any order.
Array numbers(const Type& type, unsigned seed) {
  Ints shape;
  for (const Dim& size : type.shape) shape.push_back(size.value());
  Array array(type.dtype, std::move(shape));
  std::mt19937 bits(seed);
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, static_cast<double>(bits() % 7) - 3);
  return array;
}

Graph expanded(const Graph& graph) {
  return expand(graph, [](const Graph&, const Node&) { return false; });
}

void expect_same_values(const Graph& graph) {
  std::map<std::string, Array> inputs;
  for (const auto& [input, value] : graph.inputs()) inputs[input.name] = numbers(input.type, static_cast<unsigned>(inputs.size()));
  const std::vector<Array> wanted = evaluate(graph, inputs), seen = evaluate(channels_last(expanded(graph)), inputs);
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(seen[i], wanted[i]) << "output " << i;
}

/// How many values, but those that are repeated, have their axes moved.
std::ptrdiff_t moved(const Graph& graph) {
  const std::vector<std::int32_t> needed = needed_nodes(graph.data(), output_ids(graph));
  return std::ranges::count_if(needed, [&](std::int32_t id) {
    const Node& node = graph.node(id);
    return node.op->name == "transpose" && graph.node(node.operands[0].node).op->name != "broadcast";
  });
}

TEST(ChannelsLast, ABlockOfConvolutionsMovesNoAxes) {
  Graph graph;
  const Value x = graph.input("x", {2, 3, 13, 14}, f32), shift = graph.param("shift", {8}, f32);
  const Value stem = relu(conv(x, graph.param("w1", {8, 3, 3, 3}, f32), {2}, {1}) + reshape(shift, {1, 8, 1, 1}));
  const Value pooled = max_pool(stem, {3, 3}, {2, 2}, {1, 1});
  const Value y = conv(pooled, graph.param("w2", {8, 8, 3, 3}, f32), {1}, {1});
  const Value z = conv(pooled, graph.param("w3", {8, 4, 1, 1}, f32), {1}, {0}, {1}, 2);
  graph.output("features", sum(relu(y + z), {2, 3}));
  EXPECT_EQ(moved(channels_last(expanded(graph))), 0);
  expect_same_values(graph);
}

TEST(ChannelsLast, WhereTheLargestLieIsKeptSoToo) {
  Graph graph;
  const Value x = graph.input("x", {2, 3, 9, 10}, f32), w1 = graph.param("w1", {8, 3, 3, 3}, f32),
              w2 = graph.param("w2", {4, 8, 3, 3}, f32);
  const Value pooled = max_pool(conv(x, w1, {1}, {1}), {3, 3}, {2, 2}, {1, 1});
  const Values gradients = grad(sum(conv(pooled, w2), {0, 1, 2, 3}), {w1, w2});
  graph.output("w1", gradients[0]);
  graph.output("w2", gradients[1]);
  expect_same_values(graph);
  const Graph rewritten = channels_last(expanded(graph));
  std::vector<Dim> last;
  for (std::int32_t id : needed_nodes(rewritten.data(), output_ids(rewritten)))
    if (const Type& type = rewritten.node(id).results[0]; rewritten.node(id).op->name == "reduce" && type.dtype == i32)
      last.push_back(type.shape.back());
  EXPECT_EQ(last, std::vector<Dim>{8});
}

TEST(ChannelsLast, OpsAlongAxesFollowThem) {
  Graph graph;
  const Value x = graph.input("x", {2, 4, 7, 6}, f64), w = graph.param("w", {5, 4, 2, 2}, f64);
  const Value y = conv(x, w), lower = graph.input("z", {2, 5, 6, 5}, f64);
  graph.output("padded", pad(y, {0, 1, -1, 2}, {1, 0, 3, -2}, {0, 2, 0, 1}, 7));
  graph.output("sliced", slice(y, {0, 1, 1, 0}, {2, 5, 6, 4}, {1, 2, 3, 1}));
  graph.output("reversed", reverse(y, {1, 3}));
  graph.output("joined", concat({y, lower, y}, 1));
  graph.output("windows", window(window(y, 3, 2, 2, 1), 1, 3, 1, 2));
  graph.output("chosen", select(gt(y, lower), lower, y * 2));
  for (const Ints& axes : {Ints{1}, Ints{0, 2}, Ints{1, 2, 3}}) graph.output(fmt::format("sum{}", axes.size()), sum(y, axes));
  graph.output("flat", reshape(relu(y), {2, 150}));
  expect_same_values(graph);
}

TEST(ChannelsLast, ConvolutionsReadAnyOrderOfAxes) {
  Graph graph;
  const Value x = graph.input("x", {7, 2, 6, 4}, f32), w = graph.param("w", {4, 6, 3, 2}, f32);
  const Value y = conv_general(x, w, {{1, 3, 0, 2}, {1, 0, 2, 3}, {1, 3, 2, 0}, {2, 1}, {1, 0}, {0, 2}});
  graph.output("y", y);
  graph.output("line", conv(reduce_max(conv(y, graph.param("u", {4, 2, 1, 1}, f32)), {2}), graph.param("v", {3, 4, 2}, f32)));
  expect_same_values(graph);
}

}  // namespace
}  // namespace rlx
