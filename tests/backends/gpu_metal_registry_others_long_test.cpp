// The samples that gpu_metal_registry_long_test.cpp leaves out.
#include "backends/metal_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class OtherSamplesOnMetal : public MetalTest {};

TEST_F(OtherSamplesOnMetal, Default) { expect_part(session(), 1, 2); }

}  // namespace
}  // namespace rlx::test
