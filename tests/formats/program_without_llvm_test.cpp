// A process that runs programs from files does without LLVM.
#include <gtest/gtest.h>

#include "formats/temporary_folder.h"
#include "rlx/ops.h"
#include "rlx/program_file.h"

namespace rlx {
namespace {

bool maps_llvm() { return test::read_text("/proc/self/maps").find("rlx_llvm") != std::string::npos; }

const SessionOptions options{.threads = 1, .cache_folder = std::filesystem::path()};

void save(const std::filesystem::path& file) {
  Graph graph;
  graph.output("y", exp(graph.input("x", {1}, f32)));
  const Executable executable = Session(Device::cpu(), options).compile(graph);
  ProgramFile::save(file, std::span(&executable, 1));
}

TEST(ProgramFile, NeedsNoLlvm) {
#ifndef __x86_64__
  GTEST_SKIP() << "LLVM links what it compiled for this architecture";
#endif
  if (test::read_text("/proc/self/maps").empty()) GTEST_SKIP() << "the system does not say what is mapped";
  const test::TemporaryFolder folder;
  EXPECT_EXIT(
      {
        save(folder / "exp.rlxp");
        std::_Exit(maps_llvm() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  const float one = 1;
  const Executable executable = ProgramFile::load(folder / "exp.rlxp", Device::cpu(), options);
  EXPECT_NEAR(executable.run({{"x", std::span(&one, 1)}}).at("y").get_double(0), 2.7182818, 1e-6);
  EXPECT_FALSE(maps_llvm());
}

}  // namespace
}  // namespace rlx
