// The samples that webgpu_registry_long_test.cpp leaves out.
#include "backends/registry_samples.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class EveryOtherOpOnWebGpu : public WebGpuTest {};

TEST_F(EveryOtherOpOnWebGpu, Default) { expect_part(session(), 1, 2); }

}  // namespace
}  // namespace rlx::test
