// Every op at the lower levels of this machine's CPU: registry_cpu_test, which stands beside this program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "backends/cpu/cpu_features.h"

namespace rlx::cpu {
namespace {

/// The level is chosen once in a process, so lower ones run in a child.
TEST(LowerLevels, ComputeEveryOp) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe"), suite = self.parent_path() / "registry_cpu_test";
  for (const CpuLevel level : {CpuLevel::portable, CpuLevel::avx2}) {
    if (level >= best_level(cpu_features())) continue;
    const std::string command =
        "RLX_CPU=" + std::string(to_string(level)) + " '" + suite.string() + "' --gtest_filter=EveryOpOnCpu.Default --gtest_brief=1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
}

}  // namespace
}  // namespace rlx::cpu
