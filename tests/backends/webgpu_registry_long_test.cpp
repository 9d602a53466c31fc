// Every registered op on its samples, on the first device of WebGPU: every second sample, and webgpu_registry_others_long_test.cpp the
// others.
#include "backends/registry_samples.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class EveryOpOnWebGpu : public WebGpuTest {};

TEST_F(EveryOpOnWebGpu, Default) { expect_part(session(), 0, 2); }

}  // namespace
}  // namespace rlx::test
