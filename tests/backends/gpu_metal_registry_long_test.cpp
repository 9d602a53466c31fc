// Every registered op on its samples, by Metal: every second sample, and gpu_metal_registry_others_long_test.cpp the others.
#include "backends/metal_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpOnMetal : public MetalTest {};

TEST_F(EveryOpOnMetal, Default) { expect_part(session(), 0, 2); }

}  // namespace
}  // namespace rlx::test
