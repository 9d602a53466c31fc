// Models written to a disk that is full: one line says so, and the file that was there stays.
#include "cli/run_command.h"
#include "fixture.h"
#include "formats/file_size_limit.h"

namespace rlx {
namespace {

using test::fixture;
using test::run_rlx;
using test::TemporaryFolder;

class FullDisk : public testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(FullDisk, LeavesTheOldFileAndSaysWhy) {
  const auto& [command, target] = GetParam();
  const TemporaryFolder folder;
  test::write_text(folder / target, "old");
  const auto result = [&] {
    const test::FileSizeLimit limit(1 << 15);  // fixtures are larger, what is printed is not
    return run_rlx(fmt::format("{} {}", fmt::format(fmt::runtime(command), fixture("").string()), (folder / target).string()));
  }();
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, fmt::format("rlx: {}: cannot write: File too large\n", (folder / target).string()));
  EXPECT_EQ(test::read_text(folder / target), "old");
  EXPECT_EQ(folder.entries(), 1);
}

INSTANTIATE_TEST_SUITE_P(Commands, FullDisk,
                         testing::Values(std::pair("convert {}/hf/llama", "m.gguf"), std::pair("convert {}/hf/llama", "m.safetensors"),
                                         std::pair("quantize {}/gguf_models/llama.gguf --type Q8_0", "q.gguf")));

}  // namespace
}  // namespace rlx
