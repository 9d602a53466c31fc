// Random graphs on the first OpenCL device, whose compiler takes most of the time, and on devices that it stands for.
#include "backends/opencl_device.h"
#include "backends/random_graphs.h"

namespace rlx::test {
namespace {

class RandomGraphsOnOpenCl : public OpenClTest {
 protected:
  static void expect_equal(const Backend& backend, Seeds seeds) {
    const Session session(Device(backend), {.cache_folder = std::filesystem::path()});
    const auto [begin, end] = chosen_or(seeds);
    run_seeds(session, begin, end, false);
  }
};

TEST_F(RandomGraphsOnOpenCl, Default) { expect_equal(backend(), {.begin = 0, .end = 100}); }
TEST_F(RandomGraphsOnOpenCl, AsOnAGpu) { expect_equal(*as_gpu(), {.begin = 100, .end = 150}); }
TEST_F(RandomGraphsOnOpenCl, AsOnAnOldDevice) { expect_equal(*as_old_device(), {.begin = 150, .end = 200}); }

}  // namespace
}  // namespace rlx::test
