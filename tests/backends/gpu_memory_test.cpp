// Memory of a GPU: its addresses, and what is refused.
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
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
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

class LostGpu : public GpuTest {};

TEST_F(LostGpu, IsNamed) {
  const auto lost = first_gpu_with([](gpu::DeviceFacts& facts) {
    gpu::Driver driver = *facts.driver;
    driver.Synchronize = [](gpu::Stream) { return 2; };
    facts.driver = std::make_shared<const gpu::Driver>(driver);
  });
  const std::string error = error_of([&] { lost->memory()->finish(); });
  EXPECT_TRUE(error.starts_with(backend().name() + " (")) << error;
  EXPECT_NE(error.find("waiting for it: "), std::string::npos) << error;
}

}  // namespace
}  // namespace rlx::test
