// What neither kernels nor the routines of whole ops cover in an obvious way, beside the reference; nothing is left to the ops' evaluation.
#include <gtest/gtest.h>

#include "passes/kernels_only.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace rlx::test {
namespace corners_test {

std::map<std::string, Array> random_inputs(const Graph& graph, std::int64_t size, double low, double high) {
  std::mt19937 random(7);
  std::map<std::string, Array> inputs;
  for (const auto& [input, value] : graph.inputs()) {
    Type type = input.type;
    for (Dim& dim : type.shape)
      if (!dim.is_static()) dim = size;
    inputs.emplace(input.name, random_array(type, is_unsigned_int(type.dtype) ? 0 : low, high, random));
  }
  return inputs;
}

void expect_reference(const Graph& graph, std::int64_t size = 1, double low = -2, double high = 2) {
  const auto inputs = random_inputs(graph, size, low, high);
  const std::vector<Array> wanted = evaluate(graph, inputs);
  const Outputs seen = kernels_only().compile(graph).run(feeds(inputs));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(type_of(seen[i]).to_string(), type_of(wanted[i]).to_string());
    const double eps = wanted[i].dtype() == c64 ? 0x1p-23 : is_complex(wanted[i].dtype()) ? 0x1p-52 : 0;
    EXPECT_LE(difference(seen[i], wanted[i]), 4 * eps * largest_magnitude(wanted[i])) << i;
  }
}

TEST(Corners, ProductsOfComplexNumbers) {
  for (const DType type : {c64, c128}) {
    Graph graph;
    const Dim rows = Dim::symbol("N", 40);
    const Value x = graph.input("x", {3, 7, 2}, type), y = graph.input("y", {rows, 3}, type);
    graph.output("all", prod(x, {0, 1, 2}));
    graph.output("ends", prod(x, {0, 2}));
    graph.output("middle", prod(x, {1}));
    graph.output("symbolic", prod(y, {0}) * 2);
    graph.output("none", prod(graph.input("z", {0, 3}, type), {0}));
    for (const std::int64_t size : {1, 9}) expect_reference(graph, size, -1.2, 1.2);
  }
}

TEST(Corners, PowersOfWideComplexNumbers) {
  Graph graph;
  const Value x = graph.input("x", {700}, c128), y = graph.input("y", {700}, c128);
  graph.output("z", pow(x, y) + x);
  expect_reference(graph);
}

TEST(Corners, RecurrencesOfComplexNumbers) {
  for (const DType type : {c64, c128}) {
    Graph graph;
    const Value x = graph.input("x", {3, 37}, type);
    graph.output("dx", grad(real(sum_all(cumprod(x, 1))), {x})[0]);
    expect_reference(graph, 1, 0.5, 1);
  }
}

TEST(Corners, ComplexNumbersAsBits) {
  Graph graph;
  const Value x = graph.input("x", {5}, c64);
  graph.output("bits", bitcast(x, u64));
  graph.output("again", bitcast(bitcast(x + x, i64), c64) * x);
  expect_reference(graph);
}

TEST(Corners, ExtremaOfBoolAndOfBytesInOneKernel) {
  Graph graph;
  const Value x = graph.input("x", {2, 9}, boolean), y = graph.input("y", {2, 9}, u8);
  graph.output("both", select(max(x, reverse(x, {1})), max(y, reverse(y, {1})), min(y, cast(min(x, reverse(x, {0})), u8))));
  expect_reference(graph, 1, 0, 9);
}

TEST(Corners, FourBitRowsOfSymbolicSizes) {
  for (const DType type : {i4, u4}) {
    Graph graph;
    const Dim n = Dim::symbol("N", 9);
    const Value x = graph.input("x", {3, n}, type), y = graph.input("y", {n, n}, type);
    graph.output("same", x);
    graph.output("sum", x + x);
    graph.output("wide", cast(x, i32) + 1);
    graph.output("sorted", sort({x, x}, 1, 1)[1]);
    graph.output("running", cumsum(y, 0));
    graph.output("largest", cummax(y, 1));
    for (const std::int64_t size : {1, 4, 7, 9}) expect_reference(graph, size, -8, 7);
  }
}

TEST(Corners, FourBitScatters) {
  for (const DType type : {i4, u4})
    for (const ScatterKind kind : {ScatterKind::set, ScatterKind::add, ScatterKind::mul, ScatterKind::min, ScatterKind::max}) {
      Graph graph;
      const Value x = graph.input("x", {7, 5}, type), at = graph.input("at", {20, 1}, i4), updates = graph.input("updates", {20, 5}, type);
      graph.output("y", scatter(x, at, updates, {{1}, {0}, {0}}, kind, IndexMode::fill));
      expect_reference(graph, 1, -7, 7);
    }
}

}  // namespace corners_test
}  // namespace rlx::test
