// The samples that gpu_registry_long_test.cpp leaves out.
#include "backends/gpu_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class OtherSamplesOnGpu : public GpuTest, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Parts, OtherSamplesOnGpu, testing::Range<std::size_t>(1, 16, 2));

TEST_P(OtherSamplesOnGpu, Default) { expect_part(session(), GetParam(), 16); }

}  // namespace
}  // namespace rlx::test
