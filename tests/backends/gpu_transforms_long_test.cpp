// Gradients of random graphs, and random graphs on batches of examples, on the CPU and on devices.
#include "backends/gpu_device.h"
#include "backends/metal_device.h"
#include "backends/opencl_device.h"
#include "backends/random_transforms.h"

namespace rlx::test {
namespace {

TEST(TransformsOnCpu, OfRandomGraphs) { expect_transforms_equal(Session(), {.begin = 0, .end = 100}, {.begin = 100, .end = 200}); }

class TransformsOnGpu : public EachGpuTest {};
INSTANTIATE_TEST_SUITE_P(EachVendor, TransformsOnGpu, testing::Values("cuda", "rocm"),
                         [](const auto& info) { return std::string(info.param); });
TEST_P(TransformsOnGpu, OfRandomGraphs) { expect_transforms_equal(session(), {.begin = 200, .end = 220}, {.begin = 220, .end = 240}); }

using TransformsOnOpenCl = OpenClTest;
TEST_F(TransformsOnOpenCl, OfRandomGraphs) {
  const auto gpu = as_gpu();
  expect_transforms_equal(Session(Device(*gpu), {.cache_folder = std::filesystem::path()}), {.begin = 240, .end = 250},
                          {.begin = 250, .end = 260});
}

using TransformsOnMetal = MetalTest;
TEST_F(TransformsOnMetal, OfRandomGraphs) { expect_transforms_equal(session(), {.begin = 260, .end = 280}, {.begin = 280, .end = 300}); }

}  // namespace
}  // namespace rlx::test
