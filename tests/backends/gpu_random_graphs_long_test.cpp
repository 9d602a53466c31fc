// Random graphs on the first GPU.
#include <algorithm>

#include "backends/gpu_device.h"
#include "backends/random_graphs.h"

namespace rlx::test {
namespace {

constexpr unsigned together = 50;
Seeds seeds() { return chosen_or({.begin = 0, .end = 300}); }

class RandomGraphsOnGpu : public GpuTest, public testing::WithParamInterface<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphsOnGpu, testing::Range(seeds().begin, seeds().end, together));

TEST_P(RandomGraphsOnGpu, Default) { run_seeds(session(), GetParam(), std::min(GetParam() + together, seeds().end), false); }

}  // namespace
}  // namespace rlx::test
