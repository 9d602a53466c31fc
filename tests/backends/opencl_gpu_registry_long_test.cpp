// Every registered op on every one of its samples, by kernels as a GPU gets them: scalar items, groups of 64 and more, no f64.
#include "backends/opencl_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpAsOnAGpu : public OpenClTest {};

TEST_F(EveryOpAsOnAGpu, Default) {
  const auto gpu = first_device_with([](opencl::DeviceFacts& facts) {
    facts.is_cpu = false;
    facts.local_is_memory = false;
    facts.has_f64 = false;
    facts.local_bytes = 16 << 10;
  });
  expect_reference(Session(Device(*gpu)));
}

}  // namespace
}  // namespace rlx::test
