// Every registered op on every one of its samples, on the first OpenCL device.
#include "backends/opencl_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class EveryOpOnOpenCl : public OpenClTest {};

TEST_F(EveryOpOnOpenCl, Default) { expect_reference(Session(Device(backend()), {.cache_folder = std::filesystem::path()})); }

}  // namespace
}  // namespace rlx::test
