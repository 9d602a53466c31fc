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

}  // namespace
}  // namespace rlx::test
