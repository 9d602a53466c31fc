// Random graphs and models by Metal: the recorded outputs and tokens.
#include "backends/metal_device.h"
#include "backends/random_graphs.h"
#include "fixture.h"
#include "models/run/recorded_run.h"

namespace rlx::test {
namespace {

class GraphsOnMetal : public MetalTest {};

TEST_F(GraphsOnMetal, MadeAtRandom) { run_seeds(session(), 0, 300, false); }

TEST_F(GraphsOnMetal, OfModelsHaveTheRecordedOutputsAndTokens) {
  for (const char* name : {"hf/llama", "hf/mixtral", "hf/qwen3_next", "hf/mamba", "hf/bert", "hf/t5"}) {
    SCOPED_TRACE(name);
    const auto verified = verify_folder(fixture(name), session());
    EXPECT_FALSE(verified.empty());
    for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  }
}

}  // namespace
}  // namespace rlx::test
