// The same as program_files_test.cpp on the first OpenCL device.
#include "backends/opencl_device.h"
#include "backends/program_from_file.h"

namespace rlx::test {
namespace {

class EveryOpFromFilesOnOpenCl : public OpenClTest {};

TEST_F(EveryOpFromFilesOnOpenCl, HaveTheFirstSampleOfEveryOp) {
  const TemporaryFolder folder;
  expect_first_samples_from_files(Session(Device(backend()), {.cache_folder = folder / "cache"}));
}

}  // namespace
}  // namespace rlx::test
