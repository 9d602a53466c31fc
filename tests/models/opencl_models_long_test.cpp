// Models on an OpenCL device: the recorded outputs and tokens.
#include <algorithm>
#include <filesystem>

#include "backends/opencl_device.h"
#include "fixture.h"
#include "models/run/recorded_run.h"

namespace rlx::test {
namespace {

std::vector<std::string> recorded_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("hf")))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class OpenClModels : public OpenClTest, public testing::WithParamInterface<std::string> {};

TEST_P(OpenClModels, HaveTheRecordedOutputsAndTokens) {
  const auto verified = verify_folder(fixture("hf/" + GetParam()), Session(Device(backend())));
  EXPECT_FALSE(verified.empty());
  for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

INSTANTIATE_TEST_SUITE_P(Recorded, OpenClModels, testing::ValuesIn(recorded_models()));

}  // namespace
}  // namespace rlx::test
