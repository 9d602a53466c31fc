// Graphs on a GPU of each vendor: some of the samples of every op, and states.
#include "backends/gpu_device.h"
#include "backends/registry_samples.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

class GpuGraphs : public EachGpuTest {};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuGraphs, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

TEST_P(GpuGraphs, ComputeTheFirstSampleOfEveryOp) { expect_first_samples(session()); }

TEST_P(GpuGraphs, ChangeStatesWhereTheyLie) { expect_states_change(session()); }

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
