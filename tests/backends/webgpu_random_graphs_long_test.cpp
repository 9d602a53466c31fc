// Random graphs on the first device of WebGPU, whose compiler takes most of the time, and on one with the standard's limits.
#include "backends/random_graphs.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class RandomGraphsOnWebGpu : public WebGpuTest {
 protected:
  static void expect_equal(const Session& session, Seeds seeds) {
    const auto [begin, end] = chosen_or(seeds);
    run_seeds(session, begin, end, false);
  }
};

TEST_F(RandomGraphsOnWebGpu, Default) { expect_equal(session(), {.begin = 0, .end = 100}); }
TEST_F(RandomGraphsOnWebGpu, StandardLimits) {
  const auto device = standard_webgpu_device();
  expect_equal(Session(Device(*device), {.cache_folder = std::filesystem::path()}), {.begin = 100, .end = 140});
}

}  // namespace
}  // namespace rlx::test
