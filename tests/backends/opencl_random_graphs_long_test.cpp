// Random graphs on the first OpenCL device, whose compiler takes most of the time.
#include "backends/opencl_device.h"
#include "backends/random_graphs.h"

namespace rlx::test {
namespace {

class RandomGraphsOnOpenCl : public OpenClTest {};

TEST_F(RandomGraphsOnOpenCl, Default) { run_seeds(Session(Device(backend()), {.cache_folder = std::filesystem::path()}), 0, 100, false); }

}  // namespace
}  // namespace rlx::test
