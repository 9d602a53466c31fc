// Every registered op on its samples, on the first GPU: every second sample, and gpu_registry_others_long_test.cpp the others.
#include "backends/gpu_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpOnGpu : public GpuTest {};

TEST_F(EveryOpOnGpu, Default) { expect_half(session(), 0); }

}  // namespace
}  // namespace rlx::test
