// The samples that gpu_registry_long_test.cpp leaves out.
#include "backends/gpu_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class OtherSamplesOnGpu : public GpuTest {};

TEST_F(OtherSamplesOnGpu, Default) { expect_half(session(), 1); }

}  // namespace
}  // namespace rlx::test
