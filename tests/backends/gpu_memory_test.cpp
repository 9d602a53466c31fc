// Memory of a GPU: its addresses, and what is refused.
#include <map>
#include <numeric>

#include "backends/gpu_device.h"

namespace rlx::test {
namespace {

class GpuMemory : public EachGpuTest {};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuMemory, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

std::vector<float> counted(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_P(GpuMemory, GivesBackWhatWasWritten) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20, std::size_t{13} << 20}) {
    std::vector<float> values = counted(count, 3);
    const auto there = uploaded(values);
    values.assign(count, 0);  // it may change once upload returns
    EXPECT_EQ(downloaded(there.get(), count), counted(count, 3));
  }
}

TEST_P(GpuMemory, AddressesCountOnInside) {
  const auto bytes = uploaded(counted(100));
  const std::vector<float> two{-1, -2};
  memory().upload(bytes.get() + 40, std::as_bytes(std::span(two)));
  memory().copy(bytes.get() + 200, bytes.get() + 36, 12);
  memory().clear(bytes.get() + 61, 7);
  auto expected = counted(100);
  expected[10] = -1, expected[11] = -2, expected[50] = 9, expected[51] = -1, expected[52] = -2, expected[16] = 0;
  auto seen = downloaded(bytes.get(), 100);
  seen[15] = 15;  // of it three bytes are cleared
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(downloaded(bytes.get() + 36, 3), (std::vector<float>{9, -1, -2}));
}

TEST_P(GpuMemory, NoBytesHaveAnAddressToo) {
  const auto a = memory().allocate(0), b = memory().allocate(0), c = uploaded(counted(2));
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a.get(), b.get());
  memory().upload(a.get(), {});
  memory().copy(a.get(), b.get(), 0);
  memory().clear(c.get() + 8, 0);
  memory().download({}, a.get());
  EXPECT_EQ(downloaded(c.get(), 2), counted(2));
}

TEST_P(GpuMemory, WhatDoesNotFitIsNamedAndTheDeviceLivesOn) {
  const auto before = uploaded(counted(10));
  const std::string error = error_of([&] { memory().allocate(std::int64_t{1} << 50); });
  for (const char* part : {":0 (", "no memory for 1024.0 TiB", "OUT_OF_MEMORY", " are taken)"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_EQ(downloaded(before.get(), 10), counted(10));
  EXPECT_EQ(downloaded(uploaded(counted(10)).get(), 10), counted(10));
}

TEST_P(GpuMemory, TellsTheTimeOfWhatItDoes) {
  const auto here = uploaded(counted(1 << 20)), there = memory().allocate(4 << 20);
  const double seconds = memory().seconds([&] { memory().copy(there.get(), here.get(), 4 << 20); });
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 1);
  EXPECT_EQ(downloaded(there.get(), 10), counted(10));
}

/// All of one kind.
std::vector<Device> devices_of(std::string_view kind) {
  std::vector<Device> all = Device::all();
  std::erase_if(all, [&](const Device& device) { return !device.name().starts_with(kind); });
  return all;
}

TEST_P(GpuMemory, GoesFromOneToTheNextWithoutTheHost) {
  const std::vector<Device> devices = devices_of(GetParam());
  if (devices.size() < 2) GTEST_SKIP() << "needs two GPUs";
  Graph graph;
  graph.output("y", graph.input("x", {1000}, f32) + 1);
  std::vector<Executable> programs;
  for (const Device& device : devices) programs.push_back(Session(device, {.cache_folder = std::filesystem::path()}).compile(graph));
  Array y = Array::of<float>({1000}, counted(1000));
  for (int i = 0; i < 6; ++i) y = programs[static_cast<std::size_t>(i) % 2].run({{"x", y}}).at("y");
  EXPECT_TRUE(y.device() == devices[1]);
  EXPECT_EQ(y, Array::of<float>({1000}, counted(1000, 6)));
  const Array moved = y.to(devices[0]);
  y = Array();  // its memory may be let go at once
  EXPECT_TRUE(moved.device() == devices[0]);
  EXPECT_EQ(moved, Array::of<float>({1000}, counted(1000, 6)));
}

class LostGpu : public GpuTest {
 protected:
  static std::unique_ptr<Backend> with(const std::function<void(gpu::Driver&)>& change) {
    return first_gpu_with([&](gpu::DeviceFacts& facts) {
      gpu::Driver driver = real = *facts.driver;
      change(driver);
      facts.driver = std::make_shared<const gpu::Driver>(driver);
    });
  }
  static Executable doubled(const Backend& backend) {
    Graph graph;
    graph.output("y", graph.input("x", {3}, f32) * graph.param("w", {3}, f32));
    Executable program = Session(Device(backend), {.cache_folder = std::filesystem::path()}).compile(graph);
    program.set_param("w", std::vector<float>{2, 2, 2});
    return program;
  }

  inline static gpu::Driver real;
  inline static gpu::Code says;
  inline static int left;  // allocations
  const std::vector<float> x_{1, 2, 3};
};

TEST_F(LostGpu, IsNamed) {
  const auto lost = with([](gpu::Driver& driver) { driver.Synchronize = [](gpu::Stream) { return 2; }; });
  const std::string error = error_of([&] { lost->memory()->finish(); });
  EXPECT_TRUE(error.starts_with(backend().name() + " (")) << error;
  EXPECT_NE(error.find("waiting for it: "), std::string::npos) << error;
  EXPECT_EQ(error.find("lost"), std::string::npos) << error;
}

TEST_F(LostGpu, FailsInEveryRunAndTheProcessLives) {
  constexpr gpu::Code illegal_address = 700;  // and from then on for everything
  says = 0;
  const auto lost = with([](gpu::Driver& driver) {
    driver.Allocate = [](auto... all) { return says != 0 ? says : real.Allocate(all...); };
    driver.Free = [](auto... all) {
      const gpu::Code freed = real.Free(all...);  // so that the process keeps nothing of the device that stands in
      return says != 0 ? says : freed;
    };
    driver.Upload = [](auto... all) { return says != 0 ? says : real.Upload(all...); };
    driver.Download = [](auto... all) { return says != 0 ? says : real.Download(all...); };
    driver.Launch = [](auto... all) { return says != 0 ? says : real.Launch(all...); };
    driver.Synchronize = [](auto... all) { return says != 0 ? says : real.Synchronize(all...); };
  });
  {
    const Executable program = doubled(*lost);
    const Array y = program.run({{"x", x_}}).at("y");
    says = illegal_address;
    for (int i = 0; i < 2; ++i) {
      const std::string error = error_of([&] { program.run({{"x", x_}}); });
      for (const char* part : {"700", "the device is lost to this process"}) EXPECT_NE(error.find(part), std::string::npos) << error;
    }
    EXPECT_NE(error_of([&] { y.get_double(0); }).find("lost to this process"), std::string::npos);
  }
  EXPECT_EQ(doubled(Device::cpu().backend()).run({{"x", x_}}).at("y").get_double(2), 6);
  says = 0;
}

TEST_F(LostGpu, WithoutMemoryForAllParametersRunsOnceThereIsSome) {
  const auto full =
      with([](gpu::Driver& driver) { driver.Allocate = [](auto... all) { return left-- > 0 ? real.Allocate(all...) : gpu::Code{2}; }; });
  left = 1000;
  Graph graph;
  Value y = graph.input("x", {3}, f32);
  std::map<std::string, Array> values;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "w" + std::to_string(i);
    y = y * graph.param(name, {3}, f32);
    values.emplace(name, Array::of<float>({3}, std::vector<float>{2, 2, 2}));
  }
  graph.output("y", y);
  Executable program = Session(Device(*full), {.cache_folder = std::filesystem::path()}).compile(graph);
  program.set_params(values);
  left = 4;  // in the middle
  const std::string error = error_of([&] { program.run({{"x", x_}}); });
  EXPECT_NE(error.find("no memory for "), std::string::npos) << error;
  left = 1000;
  EXPECT_EQ(program.run({{"x", x_}}).at("y").get_double(2), 3 * 256);
}

}  // namespace
}  // namespace rlx::test
