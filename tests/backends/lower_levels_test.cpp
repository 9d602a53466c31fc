// Every op and the products at the lower levels of this machine's CPU, by the tests that stand beside this program.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "backends/cpu/cpu_features.h"

namespace rlx::cpu {
namespace {

struct Suite {
  std::string program, filter;
};

/// What a command prints, and after it `exit: ` and its status.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(("{ " + command + "; } 2>&1; echo \"exit: $?\"").c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (pipe && std::fgets(part.data(), part.size(), pipe.get())) text += part.data();
  return text;
}

class LowerLevels : public testing::TestWithParam<Suite> {};

/// The level is chosen once in a process, so lower ones run in a child. A filter that matches no test passes too, and is refused here.
TEST_P(LowerLevels, Pass) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto& [program, filter] = GetParam();
  for (const CpuLevel level : allowed_levels(cpu_features())) {
    if (level == best_level(cpu_features())) continue;
    const std::string command = "RLX_CPU=" + std::string(to_string(level)) + " '" + (folder / program).string() +
                                "' --gtest_brief=1 --gtest_filter='" + filter + "'";
    const std::string text = output_of(command);
    EXPECT_NE(text.find("exit: 0\n"), std::string::npos) << command << "\n" << text;
    EXPECT_EQ(text.find("] 0 tests from"), std::string::npos) << command << "\n" << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LowerLevels,
                         testing::Values(Suite{"registry_cpu_test", "EveryOpOnCpu.Default"}, Suite{"conv_products_test", "*"},
                                         Suite{"narrow_products_test", "*"}, Suite{"dot_layouts_test", "*"},
                                         Suite{"attention_edges_test", "*"}, Suite{"block_dot_test", "*"}),
                         [](const auto& suite) { return suite.param.program; });

}  // namespace
}  // namespace rlx::cpu
