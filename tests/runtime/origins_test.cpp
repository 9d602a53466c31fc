// Products whose weights are computed from places of one parameter: each has panels of its own.
#include <gtest/gtest.h>

#include "ir/reference.h"
#include "ops/values.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {
namespace {

Value part(Value w, std::int64_t begin) { return 2 * slice_axis(w, 0, begin, begin + 64) + 1; }

/// Returns the executable, which keeps its panels.
Executable expect_reference(const Session& session, const Graph& graph, const Array& x, const Array& w) {
  Executable executable = session.compile(graph);
  executable.set_params({{"w", w}});
  const auto seen = executable.run({{"x", x}});
  const std::vector<Array> wanted = evaluate(graph, {{"x", x}, {"w", w}});
  for (std::size_t r = 0; r < wanted.size(); ++r)
    for (std::int64_t i = 0; i < wanted[r].size(); ++i)  // sums of up to 256 products below 3
      EXPECT_NEAR(seen[r].get_double(i), wanted[r].get_double(i), 256 * 3 * 6e-8) << "result " << r << ", element " << i;
  return executable;
}

TEST(Origins, ComputedPartsOfOneParameterAreToldApart) {
  std::mt19937 random(2);
  const Array x = random_array({f32, {32, 64}}, -1, 1, random), w = random_array({f32, {128, 96}}, -1, 1, random);
  const Session session;
  const auto graph_of = [](const std::vector<std::int64_t>& begins) {
    Graph graph;
    const Value in = graph.input("x", {32, 64}, f32), weights = graph.param("w", {128, 96}, f32);
    for (const std::int64_t begin : begins) graph.output(fmt::format("y{}", begin), matmul(in, part(weights, begin)));
    return graph;
  };
  std::vector<Executable> all;
  for (const auto& begins : std::vector<std::vector<std::int64_t>>{{0, 64, 32}, {64}, {16}}) {
    all.push_back(expect_reference(session, graph_of(begins), x, w));
    if (HasFailure()) return;
  }
}

// Both have one large part and one around it; only what fills that is another.
TEST(Origins, KernelsInPartsAreToldApartByAllOfThem) {
  std::mt19937 random(2);
  const Array x = random_array({f32, {32, 256}}, -1, 1, random), w = random_array({f32, {255, 160}}, -1, 1, random);
  const Session session;
  std::vector<Executable> all;
  for (const double fill : {0.0, 1.0}) {
    Graph graph;
    const Value in = graph.input("x", {32, 256}, f32), weights = graph.param("w", {255, 160}, f32);
    graph.output("y", 0.25 * matmul(in, pad(weights * 0.5, {0, 0}, {1, 0}, {}, fill)));
    all.push_back(expect_reference(session, graph, x, w));
  }
}

}  // namespace
}  // namespace rlx::test
