// Random graphs as the steps of loops, whose operands are slices that begin anywhere, on GPUs of each kind and on the CPU.
#include "backends/gpu_device.h"
#include "backends/opencl_device.h"
#include "backends/random_graphs.h"

namespace rlx::test {
namespace {

void expect_equal_in_loops(const Session& session, Seeds seeds) {
  const auto [begin, end] = chosen_or(seeds);
  run_seeds(session, begin, end, false, {.of = for_each_slice});
}

TEST(LoopsOnCpu, OverRandomGraphs) { expect_equal_in_loops(Session(), {.begin = 0, .end = 60}); }

class LoopsOnGpu : public EachGpuTest {};
INSTANTIATE_TEST_SUITE_P(EachVendor, LoopsOnGpu, testing::Values("cuda", "rocm"), [](const auto& info) { return std::string(info.param); });
TEST_P(LoopsOnGpu, OverRandomGraphs) { expect_equal_in_loops(session(), {.begin = 60, .end = 90}); }

using LoopsOnOpenCl = OpenClTest;
TEST_F(LoopsOnOpenCl, OverRandomGraphs) {
  const auto gpu = as_gpu();
  expect_equal_in_loops(Session(Device(*gpu), {.cache_folder = std::filesystem::path()}), {.begin = 90, .end = 110});
}

}  // namespace
}  // namespace rlx::test
