// Random graphs on the first device of WebGPU, whose compiler takes most of the time.
#include "backends/random_graphs.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class RandomGraphsOnWebGpu : public WebGpuTest {};

TEST_F(RandomGraphsOnWebGpu, Default) { run_seeds(session(), 0, 100, false); }

}  // namespace
}  // namespace rlx::test
