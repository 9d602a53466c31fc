// Several threads ask one OpenCL device at a time.
#include <thread>

#include "backends/opencl_device.h"

namespace rlx::test {
namespace {

using OpenClThreads = OpenClTest;

TEST_F(OpenClThreads, ThreadsMayAskAtATime) {
  const KernelText text = affine_kernel(7);
  const auto kernels = memory().load({&text, 1}, {});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto values = std::vector<float>(1000, static_cast<float>(t * 1000 + i));
        const auto x = uploaded(values), y = memory().allocate(4000);
        const std::vector<std::byte*> buffers{x.get(), y.get()};
        const std::vector<std::int64_t> sizes{t + 1};
        kernels->launch(0, buffers, sizes, 1000);
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
