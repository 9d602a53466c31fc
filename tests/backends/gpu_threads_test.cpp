// Several threads ask one GPU at a time.
#include <thread>

#include "backends/gpu_device.h"

namespace rlx::test {
namespace {

class GpuThreads : public EachGpuTest {};
INSTANTIATE_TEST_SUITE_P(EachVendor, GpuThreads, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });

TEST_P(GpuThreads, MayAskAtATime) {
  const KernelText text = affine_cuda_kernel(7);
  const auto kernels = memory().load({&text, 1}, {});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto values = std::vector<float>(1000, static_cast<float>(t * 1000 + i));
        const auto x = uploaded(values), y = memory().allocate(4000);
        const std::vector<std::byte*> buffers{x.get(), y.get()};
        kernels->launch(0, buffers, std::vector<std::int64_t>{t + 1}, 1000);
        const auto seen = downloaded(y.get(), 1000);
        for (std::size_t e = 0; e < seen.size(); ++e)
          wrong[static_cast<std::size_t>(t)] += seen[e] != values[e] * static_cast<float>(t + 1) + 7;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_P(GpuThreads, MayReplayOneList) {
  Graph graph;
  Value y = graph.input("x", {Dim::symbol("n", 100000)}, f32);
  for (int i = 1; i <= 6; ++i) y = y + static_cast<double>(i);
  graph.output("y", y);
  const Executable program = Session(Device(backend()), {.fuse = false, .cache_folder = std::filesystem::path()}).compile(graph);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 50; ++i) {
        const std::vector<float> x(1 + (t + 1) * i, static_cast<float>(100 * t + i));
        const Array sum = program.run({{"x", x}}).at("y");
        for (const float seen : sum.values<float>()) wrong[t] += seen != x[0] + 21;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace rlx::test
