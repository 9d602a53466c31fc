// Random graphs on the first device of WebGPU, whose compiler takes most of the time.
#include "backends/random_graphs.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class RandomGraphsOnWebGpu : public WebGpuTest {};

TEST_F(RandomGraphsOnWebGpu, Default) {
  const auto [begin, end] = chosen_or({.begin = 0, .end = 100});
  run_seeds(session(), begin, end, false);
}

}  // namespace
}  // namespace rlx::test
