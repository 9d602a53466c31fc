// Random graphs on the first GPU.
#include "backends/gpu_device.h"
#include "backends/random_graphs.h"

namespace rlx::test {
namespace {

constexpr unsigned together = 50;

class RandomGraphsOnGpu : public GpuTest, public testing::WithParamInterface<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphsOnGpu, testing::Range(0U, 300U, together));

TEST_P(RandomGraphsOnGpu, Default) { run_seeds(session(), GetParam(), GetParam() + together, false); }

}  // namespace
}  // namespace rlx::test
