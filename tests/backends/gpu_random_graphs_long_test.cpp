// Random graphs on the first GPU.
#include "backends/gpu_device.h"
#include "backends/random_graphs.h"

namespace rlx::test {
namespace {

class RandomGraphsOnGpu : public GpuTest {};

TEST_F(RandomGraphsOnGpu, Default) { run_seeds(session(), 0, 300, false); }

}  // namespace
}  // namespace rlx::test
