// The same as program_files_test.cpp on the first WebGPU device.
#include "backends/program_from_file.h"
#include "backends/webgpu_device.h"

namespace rlx::test {
namespace {

class EveryOpFromFilesOnWebGpu : public WebGpuTest {};

TEST_F(EveryOpFromFilesOnWebGpu, HaveTheFirstSampleOfEveryOp) {
  const TemporaryFolder folder;
  expect_first_samples_from_files(Session(Device(backend()), {.cache_folder = folder / "cache"}));
}

}  // namespace
}  // namespace rlx::test
