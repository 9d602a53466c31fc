// Where one device is much faster than another, the estimates say so.
#include "backends/opencl_device.h"
#include "base/fastest_seconds.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

using OpenClChoice = OpenClTest;

/// From operands of the host to results that were read.
double measured_seconds(const Graph& graph, const Device& device) {
  const Executable program = Session(device).compile(graph);
  std::map<std::string, Feed> fed;
  for (const auto& [input, value] : graph.inputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : input.type.shape) shape.push_back(dim.value());
    Array array(input.type.dtype, shape);
    std::ranges::fill(array.mutable_values<float>(), 0.5F);
    fed.emplace(input.name, array);
  }
  const auto run = [&] {
    for (const auto& [name, array] : program.run(fed)) array.bytes();
  };
  run();
  return fastest_seconds(0.3, run);
}

template <class Build>
Graph graph_of(const char* name, std::vector<Dim> shape, const Build& build) {
  Graph graph(name);
  graph.output("y", build(graph.input("x", std::move(shape), f32)));
  return graph;
}

TEST_F(OpenClChoice, EstimatesHaveTheOrderOfMeasuredTimesWhereTheseDifferMuch) {
  constexpr double much = 3;
  const std::vector<Graph> graphs{
      graph_of("few_elements", {16}, [](Value x) { return tanh(x); }),
      graph_of("chain", {64},
               [](Value x) {
                 for (int i = 0; i < 32; ++i) x = cumsum(tanh(x), 0);
                 return x;
               }),
      graph_of("product", {512, 512}, [](Value x) { return matmul(x, x); }),
      graph_of("narrow_product", {1, 1024}, [](Value x) { return matmul(transpose(x, {1, 0}), x); }),
      graph_of("elements", {1 << 22}, [](Value x) { return x * 2 + 1; }),
      graph_of("rows", {2048, 2048}, [](Value x) { return sum(x, {1}); }),
      graph_of("attention", {1, 4, 256, 64}, [](Value x) { return attention(x, x + 1, x * 2); }),
      graph_of("sorted", {1 << 18}, [](Value x) { return sort(x, 1)[0]; }),
  };
  int compared = 0;
  for (const Graph& graph : graphs) {
    std::map<std::string, double> expected;
    for (const DeviceEstimate& one : Device::estimates(graph, {})) expected[one.device] = one.seconds;
    const double cpu = measured_seconds(graph, Device::cpu()), other = measured_seconds(graph, Device::named("opencl"));
    RecordProperty(graph.name() + "_cpu_us", static_cast<int>(cpu * 1e6));
    RecordProperty(graph.name() + "_opencl_us", static_cast<int>(other * 1e6));
    std::printf("%-16s measured %9.1f %9.1f us, expected %9.1f %9.1f us\n", graph.name().c_str(), cpu * 1e6, other * 1e6,
                expected["cpu"] * 1e6, expected["opencl:0"] * 1e6);
    if (std::max(cpu, other) < much * std::min(cpu, other)) continue;
    ++compared;
    EXPECT_EQ(expected["cpu"] < expected["opencl:0"], cpu < other) << graph.name();
  }
  EXPECT_GT(compared, 0);
}

TEST_F(OpenClChoice, FiguresOfAnotherDriverAreNotTaken) {
  const TemporaryFolder folder;
  const std::string before = std::getenv("RLX_CACHE") ? std::getenv("RLX_CACHE") : "";
  ::setenv("RLX_CACHE", folder.path().c_str(), 1);
  const auto newer = first_device_with([](opencl::DeviceFacts& facts) { facts.version += ".1"; });
  for (const Device& device : {Device::named("opencl"), Device(*newer), Device::named("opencl")}) EXPECT_GT(device.figures().moved, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "devices"), {}), 2);
  before.empty() ? ::unsetenv("RLX_CACHE") : ::setenv("RLX_CACHE", before.c_str(), 1);
}

}  // namespace
}  // namespace rlx::test
