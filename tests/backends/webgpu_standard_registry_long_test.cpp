// Ops on a device that binds no more than every device of WebGPU does: every tenth sample.
#include "backends/registry_samples.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class OpsWithStandardLimits : public WebGpuTest {};

TEST_F(OpsWithStandardLimits, EveryTenthSample) {
  const auto device = standard_webgpu_device();
  std::vector<Case> some;
  const std::vector<Case> all = all_cases();
  for (std::size_t i = 3; i < all.size(); i += 10) some.push_back(all[i]);
  expect_all(Session(Device(*device), {.cache_folder = std::filesystem::path()}), some);
}

}  // namespace
}  // namespace rlx::test
