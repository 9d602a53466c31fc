// Products whose weights are computed from places of one parameter: each has panels of its own.
#include <gtest/gtest.h>

#include "ir/reference.h"
#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

Value part(Value w, std::int64_t begin) { return 2 * slice_axis(w, 0, begin, begin + 64) + 1; }

/// Runs programs that share a parameter, bound to all of them before the first runs: binding it forgets what was packed of it.
void expect_reference(const std::vector<Graph>& graphs, const Array& x, const Array& w) {
  const Session session;
  std::vector<Executable> programs;
  for (const Graph& graph : graphs) programs.push_back(session.compile(graph));
  for (Executable& program : programs) program.set_param("w", w);
  for (std::size_t p = 0; p < graphs.size(); ++p) {
    const auto seen = programs[p].run({{"x", x}});
    const std::vector<Array> wanted = evaluate(graphs[p], {{"x", x}, {"w", w}});
    for (std::size_t r = 0; r < wanted.size(); ++r)
      for (std::int64_t i = 0; i < wanted[r].size(); ++i)  // sums of up to 256 products below 3
        ASSERT_NEAR(seen[r].get_double(i), wanted[r].get_double(i), 256 * 3 * 6e-8) << "program " << p << ", result " << r;
  }
}

TEST(Origins, ComputedPartsOfOneParameterAreToldApart) {
  std::mt19937 random(2);
  const Array x = random_array({f32, {32, 64}}, -1, 1, random), w = random_array({f32, {128, 96}}, -1, 1, random);
  const auto graph_of = [](const std::vector<std::int64_t>& begins) {
    Graph graph;
    const Value in = graph.input("x", {32, 64}, f32), weights = graph.param("w", {128, 96}, f32);
    for (const std::int64_t begin : begins) graph.output(fmt::format("y{}", begin), matmul(in, part(weights, begin)));
    return graph;
  };
  expect_reference({graph_of({0, 64, 32}), graph_of({64}), graph_of({16})}, x, w);
}

// Both have one large part and one around it; only what fills that is another.
TEST(Origins, KernelsInPartsAreToldApartByAllOfThem) {
  std::mt19937 random(2);
  const Array x = random_array({f32, {32, 256}}, -1, 1, random), w = random_array({f32, {255, 160}}, -1, 1, random);
  std::vector<Graph> graphs;
  for (const double fill : {0.0, 1.0}) {
    Graph& graph = graphs.emplace_back();
    const Value in = graph.input("x", {32, 256}, f32), weights = graph.param("w", {255, 160}, f32);
    graph.output("y", 0.25 * matmul(in, pad(weights * 0.5, {0, 0}, {1, 0}, {}, fill)));
  }
  expect_reference(graphs, x, w);
}

}  // namespace
}  // namespace rlx::test
