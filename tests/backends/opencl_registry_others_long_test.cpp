// The samples that opencl_registry_long_test.cpp leaves out.
#include "backends/opencl_device.h"
#include "backends/registry_samples.h"

namespace rlx::test {
namespace {

class OtherSamplesOnOpenCl : public OpenClTest {};

TEST_F(OtherSamplesOnOpenCl, Default) { expect_part(Session(Device(backend()), {.cache_folder = std::filesystem::path()}), 1, 2); }

}  // namespace
}  // namespace rlx::test
