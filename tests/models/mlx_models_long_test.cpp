// Models on MLX's CPU: the recorded outputs and tokens.
#include <filesystem>

#include "backends/mlx_device.h"
#include "fixture.h"
#include "models/run/recorded_run.h"

namespace rlx::test {
namespace {

class MlxModels : public MlxTest {};

void expect_recorded_outputs(const Session& device) {
  for (const auto& entry : std::filesystem::directory_iterator(fixture("hf"))) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().filename());
    const auto verified = verify_folder(entry.path(), device);
    EXPECT_FALSE(verified.empty());
    for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  }
}

TEST_F(MlxModels, HaveTheRecordedOutputsAndTokens) { expect_recorded_outputs(session()); }
TEST_F(MlxModels, HaveThemEagerly) { expect_recorded_outputs(session_of_mode("eager")); }

}  // namespace
}  // namespace rlx::test
