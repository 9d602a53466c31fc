// Every registered op on its samples, on the first GPU: every second sample, and gpu_registry_others_long_test.cpp the others.
#include "backends/gpu_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpOnGpu : public GpuTest, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Parts, EveryOpOnGpu, testing::Range<std::size_t>(0, 16, 2));

TEST_P(EveryOpOnGpu, Default) { expect_part(session(), GetParam(), 16); }

}  // namespace
}  // namespace rlx::test
