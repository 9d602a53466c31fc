// Which device a graph is expected to run fastest on, and the figures that say so.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "backends/cpu/backend.h"
#include "formats/temporary_folder.h"
#include "message.h"
#include "rlx/ops.h"
#include "runtime/executable.h"
#include "runtime/reports/automatic.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;

/// A processor that answers at once, and a device with memory of its own that computes fifty times as much.
DeviceFigures near() {
  return {.products = {{"f32", 1e11}}, .attention = 1e11, .arithmetic = 1e10, .moved = 1e10, .reduced = 1e10, .step = 1e-6};
}
DeviceFigures far() {
  return {.upload = 1e10,
          .download = 1e10,
          .products = {{"f32", 5e12}},
          .attention = 5e12,
          .arithmetic = 5e11,
          .moved = 5e11,
          .reduced = 5e11,
          .step = 5e-6,
          .transfer = 5e-5};
}

struct Pair {
  DeviceEstimate near, far;
};

Pair estimates_of(const Graph& graph, const Bindings& sizes = {}) {
  const Device device = Device::cpu();
  const LoweredGraph lowered = lower_for(graph, {}, device, device.backend().target({}));
  return {estimate(lowered.program, sizes, false, near(), near()), estimate(lowered.program, sizes, true, far(), near())};
}

Graph product(std::int64_t rows, Dim columns) {
  Graph graph;
  graph.output("y", matmul(graph.param("w", {rows, rows}, f32), graph.input("x", {rows, columns}, f32)));
  return graph;
}

TEST(DeviceChoice, LargeProductsGoFarAndSmallOnesStay) {
  const Pair small = estimates_of(product(64, 1)), large = estimates_of(product(1024, 4096));
  EXPECT_LT(small.near.seconds, small.far.seconds);
  EXPECT_EQ(small.far.bound(), "transfers");
  EXPECT_GT(large.near.seconds, large.far.seconds);
  EXPECT_EQ(large.near.bound(), "compute");
  EXPECT_NEAR(large.near.computing, 2.0 * 1024 * 1024 * 4096 / 1e11, 1e-4);
  const Graph symbolic = product(1024, Dim::symbol("S", 4096));
  EXPECT_EQ(estimates_of(symbolic, {{"S", 4096}}).far.seconds, large.far.seconds);
}

TEST(DeviceChoice, WhatOnlyMovesStaysWhereItIs) {
  Graph graph;
  graph.output("y", graph.input("x", {1 << 20}, f32) + 1);
  const Pair pair = estimates_of(graph);
  EXPECT_LT(pair.near.seconds, pair.far.seconds);
  EXPECT_EQ(pair.near.bound(), "memory");
  EXPECT_EQ(pair.far.bound(), "transfers");
}

TEST(DeviceChoice, TheStepsOfALoopCount) {
  const auto loop = [](std::int64_t length) {
    Graph graph;
    const Value x = graph.input("x", {8}, f32);
    const auto step = [](const Values& carry, const Values&) { return std::pair(Values{tanh(carry[0])}, Values{}); };
    graph.output("y", scan(step, Values{x}, {}, Dim(length))[0]);
    return estimates_of(graph).near.launches;
  };
  EXPECT_NEAR(loop(1000) / loop(10), 100, 1);
}

/// RLX_CACHE for as long as it lives.
class CacheFolder {
 public:
  CacheFolder() {
    if (const char* known = std::getenv("RLX_CACHE")) before_ = known;
    ::setenv("RLX_CACHE", folder_.path().c_str(), 1);
  }
  ~CacheFolder() {
    if (before_) ::setenv("RLX_CACHE", before_->c_str(), 1);
    else ::unsetenv("RLX_CACHE");
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  fs::path file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "devices"), {}), 1);
    return fs::directory_iterator(folder_ / "devices")->path();
  }

 private:
  TemporaryFolder folder_;
  std::optional<std::string> before_;
};

TEST(DeviceChoice, FiguresAreMeasuredOnceAndNotTakenOnceAltered) {
  const CacheFolder folder;
  const DeviceFigures measured = Device::cpu().figures();
  for (const double figure : {measured.flops, measured.bytes, measured.attention, measured.arithmetic, measured.moved, measured.reduced,
                              measured.step, measured.products.at("f32"), measured.products.at("f64")})
    EXPECT_GT(figure, 0);
  const std::string text = read_text(folder.file());
  const DeviceFigures kept = Device::cpu().figures();
  EXPECT_EQ(kept.moved, measured.moved);
  EXPECT_EQ(kept.products, measured.products);
  EXPECT_EQ(read_text(folder.file()), text);
  for (const std::size_t size : {text.size() - 1, text.size()}) {
    std::string damaged = text.substr(0, size);
    damaged[size - 2] = static_cast<char>(damaged[size - 2] ^ 1);
    write_text(folder.file(), damaged);
    EXPECT_GT(Device::cpu().figures().moved, 0);
    EXPECT_NE(read_text(folder.file()), damaged);
  }
}

TEST(DeviceChoice, ASessionTakesTheDeviceThatItsFirstGraphIsExpectedToRunFastestOn) {
  const CacheFolder folder;
  ::setenv("RLX_DEVICE", "auto", 1);
  const Session session;
  ::unsetenv("RLX_DEVICE");
  EXPECT_EQ(session.device().name(), "auto");
  EXPECT_TRUE(session.estimates().empty());
  Graph graph;
  graph.output("y", graph.input("x", {3}, f32) + 1);
  const Executable program = session.compile(graph);
  const std::vector<DeviceEstimate> estimates = session.estimates();
  ASSERT_EQ(estimates.size(), Device::all().size());
  EXPECT_EQ(session.device().name(), estimates.front().device);
  EXPECT_EQ(Device::best(graph).name(), estimates.front().device);
  EXPECT_TRUE(std::ranges::is_sorted(estimates, {}, [](const auto& one) { return std::pair(!one.refused.empty(), one.seconds); }));
  EXPECT_EQ(program.run({{"x", std::vector<float>{1, 2, 3}}}).at("y").floats(), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(Session(Device::named("cpu")).estimates().size(), 0U);
}

TEST(DeviceChoice, ADeviceThatCannotRunTheGraphComesLastAndSaysWhy) {
  const CacheFolder folder;
  Graph graph;
  graph.output("y", graph.input("x", {3}, f32) + 1);
  const auto estimates = Device::estimates(graph, {.cpu_level = "portable"});
  EXPECT_EQ(estimates.front().device, "cpu");
  EXPECT_EQ(estimates.front().refused, "");
  for (std::size_t i = 1; i < estimates.size(); ++i) {
    const std::string& why = estimates[i].refused;
    if (why == estimates[i].device + " takes whole graphs, whose time is not estimated") continue;
    EXPECT_NE(why.find("cpu_level 'portable' is of the CPU"), std::string::npos) << why;
  }
  EXPECT_NE(error_of([] { Device::best(Graph("empty")); }).find("no device runs the graph: graph 'empty': it has no outputs"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::test
