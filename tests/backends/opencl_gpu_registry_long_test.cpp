// Every registered op on its samples of f32, by kernels as a GPU gets them: scalar items, groups of 64 and more, no f64.
#include "backends/opencl_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpAsOnAGpu : public OpenClTest {};

TEST_F(EveryOpAsOnAGpu, Default) {
  const auto gpu = as_gpu();
  std::vector<Case> cases = all_cases();  // of one type: others differ in the text of an element, not in loops
  std::erase_if(cases, [](const Case& c) { return c.sample.operands.empty() || c.sample.operands[0].type.dtype != f32; });
  EXPECT_GT(cases.size(), 500U);
  expect_all(Session(Device(*gpu)), cases);
}

}  // namespace
}  // namespace rlx::test
