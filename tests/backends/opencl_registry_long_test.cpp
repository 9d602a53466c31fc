// Every registered op on its samples, on the first OpenCL device: every second sample, and opencl_registry_others_long_test.cpp the
// others.
#include "backends/opencl_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpOnOpenCl : public OpenClTest {};

TEST_F(EveryOpOnOpenCl, Default) { expect_part(Session(Device(backend()), {.cache_folder = std::filesystem::path()}), 0, 2); }

}  // namespace
}  // namespace rlx::test
