// Models on the first device of WebGPU: the recorded outputs and tokens.
#include "backends/webgpu_device.h"
#include "fixture.h"
#include "models/run/recorded_run.h"

namespace rlx::test {
namespace {

class ModelsOnWebGpu : public WebGpuTest {};

TEST_F(ModelsOnWebGpu, HaveTheRecordedOutputsAndTokens) {
  for (const char* name : {"hf/llama", "hf/mixtral", "hf/qwen3_next", "hf/mamba", "hf/bert", "hf/t5"}) {
    SCOPED_TRACE(name);
    const auto verified = verify_folder(fixture(name), session());
    EXPECT_FALSE(verified.empty());
    for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  }
}

}  // namespace
}  // namespace rlx::test
