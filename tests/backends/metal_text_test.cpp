// Text of Metal by Clang, which knows address spaces: what C++ that runs it cannot tell. And of Metal's glue the syntax.
#include <gtest/gtest.h>

#include <cstdlib>

#include "emit/texts_of_all_forms.h"
#include "formats/temporary_folder.h"

namespace rlx::test {
namespace {

constexpr std::string_view stand_ins = RLX_FIXTURES "/../metal", sources = RLX_FIXTURES "/../../src";

std::optional<KernelText> metal_text(const Kernel& kernel) {
  const auto is_f64 = [](const auto& part) { return part.dtype == f64; };
  if (std::ranges::any_of(kernel.buffers, is_f64) || std::ranges::any_of(kernel.exprs, is_f64)) return std::nullopt;
  return emit_metal(kernel);
}

class ClangMetal : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("clang++-19 --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs clang++-19";
  }
  /// The compiler's exit status.
  static int check(const std::string& flags) {
    return std::system(("clang++-19 -fsyntax-only -Wall -Wextra -Werror -I " + std::string(stand_ins) + " " + flags).c_str());
  }
};

TEST_F(ClangMetal, TakesEveryFormOfKernelInItsAddressSpaces) {
  const std::vector<KernelText> texts = texts_of_all_forms(metal_text);
  EXPECT_GT(texts.size(), 30U);
  // Metal has no such functions, nor have generated programs.
  std::string all = "float expm1(float);\nfloat log1p(float);\nfloat erf(float);\n";
  for (const KernelText& text : texts) all += text.text;
  const TemporaryFolder folder;
  const std::string flags = "-std=c++17 -DRLX_ADDRESS_SPACES -Wno-unknown-attributes -Wno-unused-function -Wno-unused-variable ";
  write_text(folder / "kernels.cpp", all);
  EXPECT_EQ(check(flags + (folder / "kernels.cpp").string()), 0);
  write_text(folder / "wrong.cpp", "#include <metal_stdlib>\nfloat* f(device float* x) { return x; }\n");
  EXPECT_NE(check(flags + (folder / "wrong.cpp").string() + " 2> /dev/null"), 0);
}

/// The interfaces are declared as Apple's documentation has them.
TEST_F(ClangMetal, TakesTheGluesToMetalAndCoreMl) {
  const std::string language =
      "-x objective-c++ -std=c++20 -fobjc-arc -fblocks -fobjc-runtime=gnustep-2.0 -I " + std::string(sources) + " ";
  EXPECT_EQ(check(language + std::string(sources) + "/backends/metal/glue/metal.mm"), 0);
  EXPECT_EQ(check(language + std::string(sources) + "/backends/coreml/device/glue/coreml.mm"), 0);
}

}  // namespace
}  // namespace rlx::test
