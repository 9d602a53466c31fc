// rlx export: what it writes, and the one line where it writes nothing.
#include "cli/run_command.h"
#include "fixture.h"
#include "rlx/io.h"

namespace rlx::test {
namespace {

class ExportCommand : public testing::Test {
 protected:
  CommandResult run(const std::string& options) const {
    return run_rlx(fmt::format("export --target coreml {} {} {}", graph_.string(), out_.string(), options));
  }
  std::string refused(const std::string& options) const {
    const CommandResult result = run(options);
    EXPECT_NE(result.status, 0);
    EXPECT_FALSE(std::filesystem::exists(out_));
    return result.err;
  }
  void SetUp() override {
    write_text(graph_, "graph turned(B<=4, S<=9) {\n  %x: f32[B,S] = input {label=\"x\"}\n  %y = neg(%x)\n  output y = %y\n}\n");
  }
  TemporaryFolder folder_;
  std::filesystem::path graph_ = folder_ / "graph.rlx", out_ = folder_ / "m.mlpackage";
};

TEST_F(ExportCommand, LeavesSizesOpen) {
  for (const char* options :
       {"", "--size B=2", "--size B=2 --size S=3", "--size B=1 --size S=3/5/9", "--function a:B=1 --function b:", "--philox"}) {
    const CommandResult result = run(options);
    EXPECT_EQ(result.status, 0) << options << ": " << result.err;
    EXPECT_TRUE(std::filesystem::exists(out_ / "Data/com.apple.CoreML/model.mlmodel")) << options;
    std::filesystem::remove_all(out_);
  }
}

TEST_F(ExportCommand, RefusesSizes) {
  EXPECT_EQ(refused("--size B=5"), "rlx: coreml: size 5 of 'B' (allowed: 1..4)\n");
  EXPECT_EQ(refused("--size B=1/2"), "rlx: coreml: 'S' is open, and 'B' has choices (allowed: choices for both, or a size for S)\n");
  EXPECT_EQ(refused("--size B=1 --size S=1/10"), "rlx: coreml: size 10 of 'S' (allowed: 1..9)\n");
  EXPECT_NE(refused("--size B=1/x").find("B=x: not of the form NAME=SIZE"), std::string::npos);
  EXPECT_NE(refused("--size B=1 --size B=2").find("B=2: the symbol is given twice"), std::string::npos);
  EXPECT_EQ(refused("--precision f16 --calibration none.safetensors").find("rlx: none.safetensors: "), 0U);
}

/// One line a reason. What adds up is named, products are not.
TEST_F(ExportCommand, SaysWhatStaysF32BesideProductsInF16) {
  write_text(graph_, R"(graph net(B<=4) {
  %x: f32[B,8] = input {label="x"}
  %w: f32[8,8] = input {label="w", role=param}
  %y = dot(%x, %w) {lhs_contract=[1], rhs_contract=[0]}
  %s = softmax(%y) {axis=1}
  %e = exp(%s)
  %r = reduce(%e) {op=sum, axes=[1]}
  %m = reduce(%e) {op=max, axes=[1]}
  output r = %r
  output m = %m
}
)");
  save_npy(folder_ / "w.npy", Array(f32, {8, 8}));
  const std::string weights = "--param w=" + (folder_ / "w.npy").string();
  EXPECT_EQ(run(weights).out, "");
  std::filesystem::remove_all(out_);
  EXPECT_EQ(run(weights + " --precision f16").out,
            "f32: exponentials of wide logits, and their sums (1 softmax)\n"
            "f32: long sums, of which f16 drops small terms (1 reduce)\n"
            "f32: values between products, whose small changes add up from layer to layer (1 exp, 1 reduce)\n");
}

TEST_F(ExportCommand, OneFunctionForAnyNumberOfTokens) {
  graph_ = fixture("hf/qwen3");
  const CommandResult result = run("--context 16 --chunk 8 --function any:R=1");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(read_text(out_ / "Data/com.apple.CoreML/model.mlmodel").find("any"), std::string::npos);
}

/// The error that asks for a pooling names an option that there is.
TEST_F(ExportCommand, PoolsAsItIsTold) {
  graph_ = fixture("hf_more/modernbert-scores");
  EXPECT_NE(refused("").find("(--pooling)"), std::string::npos);
  const CommandResult result = run("--size B=1 --pooling mean");
  EXPECT_EQ(result.status, 0) << result.err;
}

}  // namespace
}  // namespace rlx::test
