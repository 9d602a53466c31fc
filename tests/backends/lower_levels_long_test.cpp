// What depends on the level at the lower ones of this machine's CPU, by the tests that stand beside this program: every op, products,
// attention, convolutions, precisions, and whole models.
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
  std::string area, subject, filter = "*";
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
  const std::filesystem::path tests = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const auto& [area, subject, filter] = GetParam();
  const std::string program = (tests / area / (subject + "_test")).string();
  for (const CpuLevel level : allowed_levels(cpu_features())) {
    if (level == best_level(cpu_features())) continue;
    const std::string command =
        "RLX_CPU=" + std::string(to_string(level)) + " '" + program + "' --gtest_brief=1 --gtest_filter='" + filter + "'";
    const std::string text = output_of(command);
    EXPECT_NE(text.find("exit: 0\n"), std::string::npos) << command << "\n" << text;
    EXPECT_EQ(text.find("] 0 tests from"), std::string::npos) << command << "\n" << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, LowerLevels,
    testing::Values(Suite{"backends", "registry_cpu", "EveryOpOnCpu.Default"}, Suite{"backends", "conv_products"},
                    Suite{"backends", "narrow_products"}, Suite{"backends", "dot_layouts"}, Suite{"backends", "attention_edges"},
                    Suite{"backends", "block_dot"}, Suite{"backends", "winograd"}, Suite{"passes", "precision"},
                    Suite{"passes", "conv_precision", "*NarrowKernels*"}, Suite{"runtime", "calibration"},
                    Suite{"models", "decoder", "*Recorded*/llama:*Recorded*/qwen3_next:*Recorded*/deepseek_v2:*Recorded*/mamba2"}),
    [](const auto& suite) { return suite.param.subject; });

}  // namespace
}  // namespace rlx::cpu
