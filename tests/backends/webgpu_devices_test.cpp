// Devices of WebGPU: how they are found and named, their memory, and what is said where something is refused.
#include <cmath>
#include <numeric>

#include "backends/webgpu/memory.h"
#include "backends/webgpu_device.h"
#include "message.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

using WebGpuDevices = WebGpuTest;

TEST(WebGpuLibrary, OneThatIsMissingIsNamedWithWhatToDo) {
  const webgpu::Devices devices = webgpu::find_devices({"libNoSuchLibrary.so", "libNorThis.so"});
  EXPECT_TRUE(devices.found.empty());
  EXPECT_NE(devices.missing.find("libNoSuchLibrary.so"), std::string::npos) << devices.missing;
  EXPECT_NE(devices.missing.find("scripts/fetch_wgpu.sh"), std::string::npos) << devices.missing;
}

TEST(WebGpuLibrary, OneThatIsNoneIsSaid) {
  EXPECT_EQ(webgpu::find_devices({"libc.so.6"}).missing, "libc.so.6 is there, but lacks wgpuCreateInstance");
}

TEST_F(WebGpuDevices, AreNamedByNumberOrKind) {
  EXPECT_EQ(Device::named("webgpu:0").name(), "webgpu:0");
  EXPECT_EQ(Device::named("webgpu").name(), "webgpu:0");
  EXPECT_NE(error_of([&] { backend().target({.cpu_level = "avx2"}); }).find("cpu_level 'avx2' is of the CPU"), std::string::npos);
}

TEST_F(WebGpuDevices, WorkIsTimedByTheirOwnClock) { expect_own_clock(); }

/// Bytes of any number go to any place, from any, within a buffer and between two, and nothing beside them changes.
TEST_F(WebGpuDevices, BytesAreMovedExactly) {
  constexpr std::size_t size = 64;
  std::vector<std::byte> wanted(size), more(size);
  for (std::size_t i = 0; i < size; ++i) wanted[i] = std::byte(i), more[i] = std::byte(200 - i);
  const auto here = memory().allocate(size), there = memory().allocate(size);
  memory().upload(here.get(), wanted);
  memory().upload(there.get(), more);
  for (std::size_t to = 0; to < 8; ++to)
    for (std::size_t bytes = 1; bytes < 8; ++bytes) {
      const std::size_t from = 40 + (to + bytes) % 4;
      memory().copy(here.get() + to, there.get() + from, static_cast<std::int64_t>(bytes));
      std::copy_n(more.begin() + static_cast<std::ptrdiff_t>(from), bytes, wanted.begin() + static_cast<std::ptrdiff_t>(to));
      memory().copy(here.get() + 20 + to, here.get() + from, static_cast<std::int64_t>(bytes));
      std::copy_n(wanted.begin() + static_cast<std::ptrdiff_t>(from), bytes, wanted.begin() + 20 + static_cast<std::ptrdiff_t>(to));
      memory().clear(here.get() + to + bytes, 3);
      std::fill_n(wanted.begin() + static_cast<std::ptrdiff_t>(to + bytes), 3, std::byte{});
      memory().upload(here.get() + 50 + to % 4, std::span(more).first(bytes));
      std::copy_n(more.begin(), bytes, wanted.begin() + 50 + static_cast<std::ptrdiff_t>(to % 4));
      std::vector<std::byte> seen(size - to);
      memory().download(seen, here.get() + to);
      ASSERT_TRUE(std::equal(seen.begin(), seen.end(), wanted.begin() + static_cast<std::ptrdiff_t>(to))) << to << " " << bytes;
    }
}

TEST_F(WebGpuDevices, OnlyWhatAKernelCanReadIsAllocated) {
  const std::int64_t most = memory().largest_buffer();
  EXPECT_GE(most, 128 << 20);
  EXPECT_NE(memory().allocate(1 << 20), nullptr);
  const std::string error = error_of([&] { memory().allocate(most + 1); });
  EXPECT_NE(error.find("webgpu:0"), std::string::npos) << error;
  EXPECT_NE(error.find("larger than a kernel can read (its largest buffer has "), std::string::npos) << error;
}

TEST_F(WebGpuDevices, ARefusedKernelIsNamedWithItsLine) {
  const KernelText wrong{.name = "wrong", .text = "@compute @workgroup_size(64)\nfn wrong() { let x: u32 = 1.5; }\n"};
  const std::string error = error_of([&] { memory().load({&wrong, 1}, {}); });
  EXPECT_TRUE(error.starts_with("webgpu:0 (")) << error;
  EXPECT_NE(error.find("the driver refuses kernel wrong"), std::string::npos) << error;
  EXPECT_NE(error.find("fn wrong() { let x: u32 = 1.5; }"), std::string::npos) << error;
}

webgpu::Driver real_driver;
webgpu::DeviceHandle opened = nullptr;

TEST_F(WebGpuDevices, ALostDeviceIsSaid) {
  const auto device = webgpu_device_with([](webgpu::DeviceFacts& facts) {
    webgpu::Driver driver = real_driver = *facts.driver;
    driver.DeviceGetQueue = [](webgpu::DeviceHandle handle) { return real_driver.DeviceGetQueue(opened = handle); };
    facts.driver = std::make_shared<const webgpu::Driver>(driver);
  });
  std::vector<std::byte> bytes(64);
  const auto there = device->memory()->allocate(64);
  device->memory()->upload(there.get(), bytes);
  real_driver.DeviceDestroy(opened);
  const std::string error = error_of([&] { device->memory()->download(bytes, there.get()); });
  EXPECT_TRUE(error.starts_with("webgpu:0 (")) << error;
  EXPECT_NE(error.find("lost"), std::string::npos) << error;
}

/// More groups than a dimension has.
TEST_F(WebGpuDevices, ALaunchHasAnyNumberOfGroups) {
  constexpr std::int64_t count = (65535 + 3) * wgsl_lanes + 5;
  Graph graph;
  graph.output("y", iota(graph.input("x", {1}, f32), {count}, i32));
  const Outputs outputs = session().compile(graph).run({{"x", Array(f32, {1})}});
  const auto seen = outputs[0].values<std::int32_t>();
  for (std::size_t i = 0; i < seen.size(); i += 997) ASSERT_EQ(seen[i], static_cast<std::int32_t>(i));
  EXPECT_EQ(seen[count - 1], count - 1);
}

/// A graph with the largest of N integers, and what it is of 1, 2, ...
Graph largest_of_integers() {
  Graph graph;
  graph.output("y", reduce_max(graph.input("x", {Dim::symbol("N", 100000)}, i32), {0}));
  return graph;
}
double largest_up_to(const Executable& program, std::int64_t count) {
  std::vector<std::int32_t> x(static_cast<std::size_t>(count));
  std::iota(x.begin(), x.end(), 1);
  return program.run({{"x", Array::of<std::int32_t>({count}, x)}})[0].get_double(0);
}

TEST_F(WebGpuDevices, ALoopThatTheDriverWouldEndIsRefused) {
  const auto device = webgpu_device_with([](webgpu::DeviceFacts& facts) { facts.most_rounds = 1000; });
  const Executable program = Session(Device(*device), {.cache_folder = std::filesystem::path()}).compile(largest_of_integers());
  EXPECT_EQ(largest_up_to(program, 999), 999);
  const std::string error = error_of([&] { largest_up_to(program, 1000); });
  EXPECT_TRUE(error.starts_with("webgpu:0 (")) << error;
  EXPECT_NE(error.find("the loops of kernel k"), std::string::npos) << error;
  EXPECT_NE(error.find("take up to 1001 rounds"), std::string::npos) << error;
  EXPECT_NE(error.find("(allowed: 1000)"), std::string::npos) << error;
}

TEST_F(WebGpuDevices, LavapipeHasALimitOfRounds) {
  const auto device = webgpu_device_with([](webgpu::DeviceFacts& facts) {
    if (!facts.title.starts_with("llvmpipe")) GTEST_SKIP() << "needs Mesa's lavapipe, and the first device is " << facts.title;
  });
  if (IsSkipped()) return;
  const Executable program = session().compile(largest_of_integers());
  EXPECT_EQ(largest_up_to(program, 65534), 65534);
  EXPECT_NE(error_of([&] { largest_up_to(program, 65535); }).find("(allowed: 65535)"), std::string::npos);
}

/// Of a length that a symbol has, and of a prime: sums in parts, with what changes no result behind the last term.
TEST_F(WebGpuDevices, ReductionsOfMoreRoundsAreCut) {
  const auto device = webgpu_device_with([](webgpu::DeviceFacts& facts) { facts.most_rounds = 1000; });
  const auto graph_of = [](const Dim& size) {
    Graph graph;
    const Value x = graph.input("x", {size}, f32);
    for (const auto& [name, y] : {std::pair("sum", sum(x, {0})), {"max", reduce_max(x, {0})}, {"min", reduce_min(x, {0})}})
      graph.output(name, y);
    graph.output("prod", prod(cast(gt(x, 0), f32) * 2 - 1, {0}));
    graph.output("softmax", sum(softmax(x, 0) * x, {0}));
    return graph;
  };
  const auto expect_results = [&](const Graph& graph, std::int64_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>((i * 7919 + 3) % 1024) / 256 - 2 - 1.0F / 512;  // whose sums are exact
    const std::map<std::string, Feed> fed{{"x", Array::of<float>({count}, x)}};
    const Outputs seen = Session(Device(*device), {.cache_folder = std::filesystem::path()}).compile(graph).run(fed);
    const Outputs wanted = Session(Device::cpu()).compile(graph).run(fed);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double number = wanted[i].get_double(0);
      EXPECT_NEAR(seen[i].get_double(0), number, 2e-6 * std::max(1.0, std::abs(number))) << count << ": output " << i;
    }
  };
  for (const std::int64_t count : {1, 700, 19997}) expect_results(graph_of(Dim::symbol("N", 20000)), count);
  expect_results(graph_of(19997), 19997);
}

/// Inputs beyond the buffers of a kernel, of all widths.
TEST_F(WebGpuDevices, KernelsReadMoreBuffersThanTheyBind) {
  const auto device = standard_webgpu_device();
  Graph graph;
  std::map<std::string, Feed> fed;
  std::vector<Value> all;
  const DType types[] = {f32, u8, i64, f16, boolean, i16};
  std::vector<double> wanted(5);
  for (int i = 0; i < 20; ++i) {
    const std::string name = "x" + std::to_string(i);
    Array x(types[i % 6], {5});
    for (std::int64_t k = 0; k < 5; ++k) {
      x.set_double(k, static_cast<double>((i + k) % 2));
      wanted[static_cast<std::size_t>(k)] += static_cast<double>((i + k) % 2) * (i + 1);
    }
    fed.emplace(name, x);
    all.push_back(cast(graph.input(name, {5}, types[i % 6]), f32) * static_cast<float>(i + 1));
  }
  Value sum = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
  graph.output("y", sum);
  graph.output("z", concat(all, 0));
  const Outputs outputs = Session(Device(*device), {.cache_folder = std::filesystem::path(), .host = false}).compile(graph).run(fed);
  for (std::size_t k = 0; k < 5; ++k) EXPECT_EQ(outputs[0].values<float>()[k], wanted[k]);
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(outputs[1].get_double(i), static_cast<double>((i / 5 + i % 5) % 2 * (i / 5 + 1)));
}

}  // namespace
}  // namespace rlx::test
