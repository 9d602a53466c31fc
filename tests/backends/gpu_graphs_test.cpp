// Graphs on a GPU of each vendor: some of the samples of every op, and states.
#include "backends/gpu_device.h"
#include "backends/registry_samples.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

class GpuGraphs : public EachGpuTest {};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuGraphs, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

TEST_P(GpuGraphs, ComputeTheFirstSampleOfEveryOp) {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& c) { return c.number != 0; });
  EXPECT_GT(cases.size(), 100U);
  expect_all(session(), cases, cases.size() / 2);
}

TEST_P(GpuGraphs, ChangeStatesWhereTheyLie) {
  Graph graph;
  const Value cache = graph.state("cache", {4, 3}, f32), row = graph.input("row", {1, 3}, f32), at = graph.input("at", {}, i32);
  graph.output("cache", dynamic_update(cache, row, {at, scalar(at, 0, i32)}));
  Executable program = session().compile(graph);
  std::vector<float> expected(12, 0);
  for (const std::int32_t place : {0, 2, 7}) {  // 7: clamped to the last row
    const std::vector<std::int32_t> places{place};
    const std::vector<float> values{1, 2, static_cast<float>(place)};
    program.run({{"row", values}, {"at", Array::of<std::int32_t>({}, places)}});
    std::ranges::copy(values, expected.begin() + 3 * std::min(place, 3));
    EXPECT_EQ(program.state("cache"), Array::of<float>({4, 3}, expected));
  }
}

TEST_P(GpuGraphs, LeaveNothingOfAnElementWiseGraphToTheHost) {
  Graph graph;
  const Value x = graph.input("x", {3}, f64), z = graph.input("z", {3}, bf16);
  graph.output("y", exp(x) * cast(z, f64));
  const Session strict(Device(backend()), {.cache_folder = std::filesystem::path(), .host = false});
  const std::vector<double> ones{1, 1, 1};
  Array halves(bf16, {3});
  for (std::int64_t i = 0; i < 3; ++i) halves.set_double(i, 0.5);
  const Outputs seen = strict.compile(graph).run({{"x", ones}, {"z", halves}});
  EXPECT_NEAR(seen.at("y").get_double(2), std::exp(1.0) / 2, 1e-15);
}

}  // namespace
}  // namespace rlx::test
