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

// Kernels read 16 bytes at a time where a buffer begins at such a place.
TEST_P(GpuGraphs, SlicesOfAScanBeginAnywhere) {
  constexpr std::int64_t steps = 5, size = 130;
  Graph graph;
  const Value x = graph.input("x", {steps, size}, f32);
  const auto step = [](const Values&, const Values& at) {
    const auto of = [](double sign) { return [sign](const Values& v) { return Values{softmax(v[0] * sign, -1)}; }; };
    const Values either = cond(gt(sum_all(at[0]), scalar(at[0], 0, f32)), {at[0]}, of(1), of(-1));
    return std::pair(Values{}, Values{softmax(at[0], -1), either[0]});
  };
  const Values results = scan(step, {}, {x});
  graph.output("y", results[0]), graph.output("z", results[1]);
  std::mt19937 random(3);
  const std::vector<Array> fed{random_array({f32, {steps, size}}, -2, 2, random)};
  const Outputs seen = session().compile(graph).run({{"x", fed[0]}});
  const std::vector<Array> wanted = evaluate(graph, {{"x", fed[0]}});
  EXPECT_LE(difference(seen.at("y"), wanted[0]), 1e-7);
  EXPECT_LE(difference(seen.at("z"), wanted[1]), 1e-7);
}

}  // namespace
}  // namespace rlx::test
