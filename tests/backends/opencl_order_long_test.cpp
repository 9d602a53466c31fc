// Sorting, scatter and running sums of large arrays on an OpenCL device, beside the CPU's own code.
#include <limits>

#include "backends/opencl_device.h"
#include "passes/kernels_only.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

class OpenClOrder : public OpenClTest {
 protected:
  /// The outputs of the graph are the same numbers there and here, and all of it runs there.
  void expect_as_on_the_cpu(const Graph& graph, const std::vector<std::map<std::string, Array>>& runs) const {
    const Executable there = Session(Device(backend()), without_disk()).compile(graph), here = kernels_only().compile(graph);
    EXPECT_EQ(count_of(there, "host"), 0U);
    for (const auto& inputs : runs) {
      const Outputs seen = there.run(feeds(inputs)), wanted = here.run(feeds(inputs));
      for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(difference(seen[i], wanted[i]), 0) << graph.outputs()[i].first;
    }
  }
};

/// Whole numbers, many of them equal; of floats NaN of both signs, infinities and zeros of both signs among them.
Array keys(DType type, std::vector<std::int64_t> shape, double most, std::mt19937& random) {
  Array x(type, std::move(shape));
  const double special[] = {0.0, -0.0, inf, -inf, nan, -nan};
  std::uniform_real_distribution<double> uniform(is_unsigned_int(type) ? 0 : -most, most);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, std::round(uniform(random)));
  if (is_float(type))
    for (std::int64_t i = 0; i < x.size(); i += 7) x.set_double(i, special[i / 7 % 6]);
  return x;
}

TEST_F(OpenClOrder, LongLinesAreSorted) {
  std::mt19937 random(1);
  for (const DType type : {f32, i64, u8, bf16}) {
    SCOPED_TRACE(name(type));
    Graph graph;
    const Value x = graph.input("x", {100003}, type);
    for (const bool descending : {false, true}) {
      const Values sorted = sort({x, iota(x, x.shape(), i32)}, 1, 0, descending);
      graph.output(descending ? "down" : "up", sorted[0]);
      graph.output(descending ? "from_down" : "from_up", sorted[1]);
    }
    expect_as_on_the_cpu(graph, {{{"x", keys(type, {100003}, 20000, random)}}});
  }
}

TEST_F(OpenClOrder, LinesOfSeveralKeysAndOfRunTimeLengthsAreSorted) {
  std::mt19937 random(2);
  for (const std::int64_t bound : {300, 3000}) {
    Graph graph;
    const Dim n = Dim::symbol("N", bound);
    const Value a = graph.input("a", {3, n, 2}, i32), b = graph.input("b", {3, n, 2}, f32);
    const Values sorted = sort({a, b, iota(a, a.shape(), i32, 1)}, 2, 1, true);
    for (std::size_t i = 0; i < sorted.size(); ++i) graph.output("y" + std::to_string(i), sorted[i]);
    graph.output("largest", top_k(b, 1, 1)[1]);
    graph.output("best", top_k(graph.input("many", {2, 30000}, f32), 50)[1]);
    std::vector<std::map<std::string, Array>> runs;
    for (const std::int64_t length : {std::int64_t{1}, std::int64_t{2}, bound / 2, bound - 1, bound})
      runs.push_back({{"a", keys(i32, {3, length, 2}, 4, random)},
                      {"b", keys(f32, {3, length, 2}, 40, random)},
                      {"many", keys(f32, {2, 30000}, 20000, random)}});
    expect_as_on_the_cpu(graph, runs);
  }
}

TEST_F(OpenClOrder, ManyUpdatesOfEveryKindGoWhereTheyBelong) {
  std::mt19937 random(3);
  for (const ScatterKind kind : {ScatterKind::set, ScatterKind::add, ScatterKind::mul, ScatterKind::min, ScatterKind::max}) {
    SCOPED_TRACE(static_cast<int>(kind));
    Graph graph;
    const Value x = graph.input("x", {30000}, i32), at = graph.input("at", {100000, 1}, i64), points = graph.input("points", {100000}, i32);
    graph.output("points", scatter(x, at, points, {{}, {0}, {0}}, kind, IndexMode::fill));
    const Value table = graph.input("table", {5000, 24}, f32), ids = graph.input("ids", {9000, 1}, u16),
                rows = graph.input("rows", {9000, 24}, f32);
    graph.output("rows", scatter(table, ids, rows, {{1}, {0}, {0}}, kind == ScatterKind::mul ? ScatterKind::add : kind));
    Array floats = keys(f32, {9000, 24}, 50, random);
    if (kind == ScatterKind::mul || kind == ScatterKind::add)
      for (std::int64_t i = 0; i < floats.size(); ++i)
        if (!std::isfinite(floats.get_double(i))) floats.set_double(i, 1);
    expect_as_on_the_cpu(graph, {{{"x", keys(i32, {30000}, 9, random)},
                                  {"at", keys(i64, {100000, 1}, 31000, random)},
                                  {"points", keys(i32, {100000}, 9, random)},
                                  {"table", Array(f32, {5000, 24})},
                                  {"ids", keys(u16, {9000, 1}, 6000, random)},
                                  {"rows", floats}}});
  }
}

TEST_F(OpenClOrder, LongLinesAreSummedAndCompared) {
  std::mt19937 random(4);
  Graph graph;
  const Value x = graph.input("x", {200001}, i32), y = graph.input("y", {Dim::symbol("N", 5000), 3}, f32);
  graph.output("sum", cumsum(x, 0, true, true));
  graph.output("max", cummax(x, 0));
  graph.output("sums", cumsum(y, 0));
  graph.output("products", cumprod(sign(y), 0, false, true));
  graph.output("min", cummin(y, 0));
  std::vector<std::map<std::string, Array>> runs;
  for (const std::int64_t length : {1, 2, 700, 5000}) {
    Array numbers = keys(i32, {length, 3}, 50, random), floats(f32, {length, 3});
    for (std::int64_t i = 0; i < floats.size(); ++i) floats.set_double(i, numbers.get_double(i) + 0.5);
    runs.push_back({{"x", keys(i32, {200001}, 1000000, random)}, {"y", floats}});
  }
  expect_as_on_the_cpu(graph, runs);
}

}  // namespace
}  // namespace rlx::test
