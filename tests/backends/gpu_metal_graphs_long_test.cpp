// Random graphs and models by Metal: the recorded outputs and tokens.
#include "backends/metal_device.h"
#include "backends/random_graphs.h"
#include "backends/recorded_models.h"

namespace rlx::test {
namespace {

class GraphsOnMetal : public MetalTest {};

TEST_F(GraphsOnMetal, MadeAtRandom) { run_seeds(session(), 0, 300, false); }

TEST_F(GraphsOnMetal, OfModelsHaveTheRecordedOutputsAndTokens) { expect_recorded_models(session()); }

}  // namespace
}  // namespace rlx::test
