// Models on the first GPU: the recorded outputs and tokens.
#include "backends/gpu_device.h"
#include "backends/recorded_models.h"

namespace rlx::test {
namespace {

class ModelsOnGpu : public GpuTest {};

TEST_F(ModelsOnGpu, HaveTheRecordedOutputsAndTokens) { expect_recorded_models(session()); }

}  // namespace
}  // namespace rlx::test
