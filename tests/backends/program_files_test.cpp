// Every registered op on its first sample, from a program file: the bits of the executable that it was written of.
#include "backends/program_from_file.h"

namespace rlx::test {
namespace {

TEST(ProgramFiles, HaveTheFirstSampleOfEveryOp) {
  const TemporaryFolder folder;
  expect_first_samples_from_files(Session(Device::cpu(), {.cache_folder = folder / "cache"}));
}

}  // namespace
}  // namespace rlx::test
