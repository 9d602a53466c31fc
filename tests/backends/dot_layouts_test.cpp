// Dots in every layout against the reference: axes in any order, operands that are moved, repeated, widened or computed, and what follows.
#include <gtest/gtest.h>

#include <random>

#include "ir/reference.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/text.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

void expect_same(const Graph& graph, const std::map<std::string, Array>& inputs, const std::map<std::string, Array>& params) {
  std::map<std::string, Array> all = inputs;
  all.insert(params.begin(), params.end());
  const std::vector<Array> wanted = evaluate(graph, all);
  static const Session session(Device::cpu(), {.threads = 2, .cache_folder = ""});
  Executable program = session.compile(graph);
  program.set_params(params);
  const Outputs seen = program.run({inputs.begin(), inputs.end()});
  for (std::size_t out = 0; out < wanted.size(); ++out)
    for (std::int64_t i = 0; i < wanted[out].size(); ++i)
      ASSERT_EQ(seen[out].get_double(i), wanted[out].get_double(i)) << "element " << i << " of output " << out << " of\n" << to_text(graph);
}

/// The graph on small integers; symbols are 33.
void expect_same(const Graph& graph) {
  std::map<std::string, Array> values;
  std::mt19937 random(1);
  for (const auto& [input, value] : graph.inputs()) {
    Ints shape;
    for (const Dim& size : input.type.shape) shape.push_back(size.is_static() ? size.value() : 33);
    Array array(input.type.dtype, shape);
    for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, static_cast<double>(random() % 7) - 3);
    values.emplace(input.name, array);
  }
  expect_same(graph, values, {});
}

// Between cast and dot the narrow operand repeats what is a column of the result, or a row where only the other operand has the batch.
TEST(Dots, WidenNarrowOperandsWhoseElementsAreRepeated) {
  for (const auto& [narrow, wide] : {std::pair{i8, i32}, {bf16, f32}}) {
    Graph graph;
    const Value x = graph.input("x", {64, 64}, narrow), w = graph.input("w", {64, 8}, narrow);
    graph.output("columns", dot(cast(x, wide), broadcast(cast(w, wide), {64, 8, 16}, {0, 1}), {1}, {0}));
    graph.output("batch", dot(broadcast(cast(x, wide), {64, 64, 64}, {1, 2}), cast(x, wide), {2}, {1}, {0}, {0}));
    expect_same(graph);
  }
}

TEST(Dots, ReadNarrowOperandsThroughMovesThatAreOutputs) {
  for (const auto& [narrow, wide] : {std::pair{i8, i32}, {bf16, f32}}) {
    Graph graph;
    const Value x = graph.input("x", {64, 64}, narrow), w = graph.input("w", {64, 64}, narrow);
    const Value moved = transpose(cast(x, wide), {1, 0});
    graph.output("moved", moved);
    graph.output("sum", sum(moved, {1}));
    graph.output("y", dot(moved, cast(w, wide), {1}, {0}));
    expect_same(graph);
  }
}

TEST(Dots, RepeatARightOperandWhereTheLeftIsAnInput) {
  Graph graph;
  const Value a = graph.input("a", {8, 64, 16}, f32), b = graph.input("b", {8, 16, 8}, f32);
  graph.output("y", dot(a, broadcast(b, {8, 16, 8, 16}, {0, 1, 2}), {0, 2}, {0, 1}));
  expect_same(graph);
}

}  // namespace
}  // namespace rlx
