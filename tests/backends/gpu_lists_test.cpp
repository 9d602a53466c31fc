// Lists of launches on a GPU: one that comes again is replayed as a graph, of which what is new is patched.
#include <atomic>
#include <numeric>

#include "backends/gpu_device.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

std::atomic<int> launched, recorded, patched, replayed;
std::atomic<gpu::Code> patching_says, replaying_says;

/// The first GPU of a vendor, of whose calls those above are counted.
std::unique_ptr<Backend> counted_gpu(std::string_view kind) {
  static gpu::Driver real;
  gpu::DeviceFacts facts = gpu::find_devices(kind == "cuda" ? gpu::Vendor::cuda : gpu::Vendor::rocm).found.front();
  gpu::Driver driver = real = *facts.driver;
  driver.Launch = [](auto... all) { return ++launched, real.Launch(all...); };
  driver.Instantiate = [](auto... all) { return ++recorded, real.Instantiate(all...); };
  driver.SetKernelNode = [](auto... all) { return ++patched, patching_says != 0 ? patching_says.load() : real.SetKernelNode(all...); };
  driver.LaunchGraph = [](auto... all) { return ++replayed, replaying_says != 0 ? replaying_says.load() : real.LaunchGraph(all...); };
  facts.driver = std::make_shared<const gpu::Driver>(driver);
  launched = recorded = patched = replayed = 0;
  return gpu::backend_of(std::move(facts));
}

class GpuLists : public EachGpuTest {
 protected:
  void SetUp() override {
    EachGpuTest::SetUp();
    if (!IsSkipped()) counted_ = counted_gpu(GetParam());
  }
  /// y = x + 1 + ... + 10, a launch for each.
  Executable chain() const {
    Graph graph;
    Value y = graph.input("x", {Dim::symbol("n", 100000)}, f32);
    for (int i = 1; i <= 10; ++i) y = y + static_cast<double>(i);
    graph.output("y", y);
    return Session(Device(*counted_), {.fuse = false, .cache_folder = std::filesystem::path()}).compile(graph);
  }
  static Array run(const Executable& program, std::size_t n, float first) {
    std::vector<float> x(n);
    std::iota(x.begin(), x.end(), first);
    return program.run({{"x", x}}).at("y");
  }
  static void expect_sum(const Array& y, std::size_t n, float first) {
    ASSERT_EQ(y.shape(), (std::vector<std::int64_t>{static_cast<std::int64_t>(n)}));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y.get_double(static_cast<std::int64_t>(i)), first + static_cast<float>(i) + 55);
  }

  std::unique_ptr<Backend> counted_;
};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuLists, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

TEST_P(GpuLists, AreLaunchedOnceAndThenReplayed) {
  const Executable program = chain();
  expect_sum(run(program, 100, 5), 100, 5);
  const int first = launched;
  EXPECT_GE(first, 10);
  for (int i = 0; i < 3; ++i) expect_sum(run(program, 100, static_cast<float>(i)), 100, static_cast<float>(i));
  EXPECT_EQ(launched, first);
  EXPECT_EQ(recorded, 1);
  EXPECT_EQ(replayed, 3);
}

TEST_P(GpuLists, TakeNewSizesAndNewAddresses) {
  const Executable program = chain();
  std::vector<std::pair<std::size_t, Array>> kept;  // so that each result lies elsewhere
  for (const std::size_t n : {5U, 6U, 6U, 1U, 100000U, 7U, 7U}) kept.emplace_back(n, run(program, n, 2));
  for (const auto& [n, y] : kept) expect_sum(y, n, 2);
  EXPECT_EQ(recorded, 1);
  EXPECT_EQ(replayed, 6);
}

TEST_P(GpuLists, OfWhichNothingIsNewAreNotPatched) {
  const KernelText text = affine_cuda_kernel(1);
  DeviceMemory& memory = *counted_->memory();
  const auto kernels = memory.load({&text, 1}, {});
  const auto bytes = memory.allocate(400);
  memory.clear(bytes.get(), 400);
  std::vector<std::byte*> places;
  for (int i = 0; i <= 8; ++i) places.push_back(bytes.get() + std::ptrdiff_t{i} * 40);
  std::vector<int> counted(8);
  std::iota(counted.begin(), counted.end(), 0);
  std::vector<DeviceLaunch> launches;
  for (std::size_t i = 0; i < 8; ++i) launches.push_back({0, std::span(places).subspan(i, 2), 10});
  const std::vector<std::int64_t> two{2};
  for (int i = 0; i < 3; ++i) kernels->launch_list(this, launches, two);
  EXPECT_EQ(patched, 0);
  launches.back().positions = 5;
  kernels->launch_list(this, launches, two);
  EXPECT_EQ(patched, 1);
  kernels->launch_list(&launches, launches, two);  // of another who asks
  EXPECT_EQ(recorded, 1);
  std::vector<float> last(10);
  memory.download(std::as_writable_bytes(std::span(last)), places.back());
  EXPECT_EQ(last, std::vector<float>(10, 255));
}

TEST_P(GpuLists, KeepNoOrderButThatOfWhatTheyRead) {
  const Session session(Device(*counted_), {.fuse = false, .cache_folder = std::filesystem::path()});
  Graph graph;
  std::vector<Value> branches;
  const Value x = graph.input("x", {4, 4}, f32);
  for (int i = 0; i < 6; ++i) {
    Value y = x * static_cast<double>(i + 1);
    for (int k = 0; k < 3; ++k) y = matmul(y, x) * 0.5;
    branches.push_back(y);
  }
  graph.output("y", concat(branches, 0));
  const Executable program = session.compile(graph), expected = Session(Device::cpu()).compile(graph);
  for (int i = 0; i < 10; ++i) {
    const std::vector<float> values(16, 1.0F + static_cast<float>(i));
    const Array y = program.run({{"x", values}}).at("y"), z = expected.run({{"x", values}}).at("y");
    for (std::int64_t k = 0; k < y.size(); ++k) ASSERT_NEAR(y.get_double(k), z.get_double(k), 1e-5 * std::abs(z.get_double(k)));
  }
  EXPECT_EQ(replayed, 9);
}

TEST_P(GpuLists, ThatFailAreNamedAndRecordedAnew) {
  const Executable program = chain();
  for (std::atomic<gpu::Code>* says : {&patching_says, &replaying_says}) {
    for (int i = 0; i < 2; ++i) run(program, 10, 0);
    *says = 2;
    const std::string error = error_of([&] { run(program, 20, 0); });
    *says = 0;
    EXPECT_TRUE(error.starts_with(counted_->name() + " (")) << error;
    EXPECT_NE(error.find("kernel"), std::string::npos) << error;
    EXPECT_NE(error.find("_ERROR_OUT_OF_MEMORY (2)"), std::string::npos) << error;
    expect_sum(run(program, 20, 1), 20, 1);
  }
  EXPECT_EQ(recorded, 3);
}

TEST_P(GpuLists, MayBeReplacedByOtherKernelsAtOtherSizes) {
  const Session session(Device(*counted_), {.cache_folder = std::filesystem::path()});
  Graph graph;
  const Dim n = Dim::symbol("n", 100000);
  Value x = graph.input("x", {n, 16}, f32);
  for (int i = 0; i < 6; ++i) x = matmul(x, graph.input("w" + std::to_string(i), {16, 16}, f32)) * 0.25;
  graph.output("y", x);
  const Executable program = session.compile(graph), expected = Session(Device::cpu()).compile(graph);
  for (const std::int64_t rows : {1, 1, 40, 40, 1, 3, 40}) {
    std::map<std::string, Feed> fed;
    for (int i = 0; i < 6; ++i) fed.emplace("w" + std::to_string(i), Array::of<float>({16, 16}, std::vector<float>(256, 0.5F)));
    std::vector<float> values(static_cast<std::size_t>(rows) * 16);
    std::iota(values.begin(), values.end(), -3.0F);
    fed.emplace("x", Array::of<float>({rows, 16}, values));
    const Array y = program.run(fed).at("y"), z = expected.run(fed).at("y");
    for (std::int64_t i = 0; i < rows * 16; ++i) ASSERT_NEAR(y.get_double(i), z.get_double(i), 1e-4 * std::abs(z.get_double(i)));
  }
  EXPECT_GE(replayed, 3);
}

}  // namespace
}  // namespace rlx::test
