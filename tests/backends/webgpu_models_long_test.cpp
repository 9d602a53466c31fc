// Models on the first device of WebGPU: the recorded outputs and tokens.
#include "backends/recorded_models.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class ModelsOnWebGpu : public WebGpuTest {};

TEST_F(ModelsOnWebGpu, HaveTheRecordedOutputsAndTokens) { expect_recorded_models(session()); }

}  // namespace
}  // namespace rlx::test
