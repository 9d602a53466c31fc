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
            "1 f32 as f16, 16 bits a weight: exact\n"
            "f32: exponentials of wide logits, and their sums (1 exp, 1 softmax)\n"
            "f32: long sums, of which f16 drops small terms (1 reduce)\n"
            "f32: values between products, whose small changes add up from layer to layer (1 reduce)\n");
}

/// Two weights in blocks, of Q8_0 and Q4_K, whose numbers f16 has to round.
class ExportBlocks : public ExportCommand {
 protected:
  void SetUp() override {
    write_text(graph_, R"(graph net(B<=4) {
  %x: f32[B,256] = input {label="x"}
  %v: u8[4,272] = input {label="v", role=param}
  %w: u8[4,144] = input {label="w", role=param}
  %vs = decode_blocks(%v) {type="Q8_0"}
  %ws = decode_blocks(%w) {type="Q4_K"}
  %a = dot(%x, %vs) {lhs_contract=[1], rhs_contract=[1]}
  %b = dot(%x, %ws) {lhs_contract=[1], rhs_contract=[1]}
  output a = %a
  output b = %b
}
)");
    const auto save = [&](const std::string& name, std::int64_t columns, std::int64_t block) {
      Array bytes(u8, {4, columns});
      for (std::int64_t i = 0; i < bytes.size(); ++i) bytes.set_int(i, i % block == 1 || i % block == 3 ? 0x2E : i * 37 % 127);
      save_npy(folder_ / (name + ".npy"), bytes);
    };
    save("v", 272, 34);
    save("w", 144, 144);
  }
  std::string params() const {
    return fmt::format("--param v={} --param w={} ", (folder_ / "v.npy").string(), (folder_ / "w.npy").string());
  }
  std::string printed(const std::string& options) const {
    const CommandResult result = run(params() + options);
    EXPECT_EQ(result.status, 0) << result.err;
    std::filesystem::remove_all(out_);
    return result.out;
  }
};

TEST_F(ExportBlocks, SaysWhatWeightsBecomeAndLose) {
  EXPECT_EQ(printed(""), "1 Q4_K as u4 with f32 scales, 6 bits a weight: exact\n1 Q8_0 as i8 with f32 scales, 9 bits a weight: exact\n");
  EXPECT_EQ(
      printed("--nested-scales"),
      "1 Q4_K as u4 with f32 scales in two levels, 4.75 bits a weight: exact\n1 Q8_0 as i8 with f32 scales, 9 bits a weight: exact\n");
  const auto begins = [&](const std::string& options, const std::string& type, const std::string& form) {
    const std::string all = printed(options), line = fmt::format("1 {} as {} bits a weight: relative error up to ", type, form);
    EXPECT_NE(("\n" + all).find("\n" + line), std::string::npos) << options << ": " << all;
  };
  begins("--precision f16", "Q4_K", "u4 with f16 scales, 5");
  begins("--precision f16", "Q8_0", "i8 with f16 scales, 8.5");
  begins("--weights Q4_0", "Q4_K", "Q4_0 (i4 with f32 scales), 5");
  begins("--weights Q4_0", "Q8_0", "Q4_0 (i4 with f32 scales), 5");
  begins("--weights q8_0=f16", "Q8_0", "f16, 16");
  begins("--weights F16 --weights Q4_K=Q3_K", "Q4_K", "Q3_K (i4 with f32 scales), 6");
  EXPECT_NE(printed("--weights F16 --weights Q4_K=Q4_K").find("1 Q4_K as u4 with f32 scales, 6 bits a weight: exact\n"), std::string::npos);
}

TEST_F(ExportBlocks, RefusesWhatNoWeightIs) {
  const auto refusal = [&](const std::string& options) { return refused(params() + options); };
  EXPECT_EQ(refusal("--weights Q9"), "rlx: coreml: weights in blocks as 'Q9' (allowed: F16, and types of blocks, such as Q4_0)\n");
  EXPECT_EQ(refusal("--weights F32"), "rlx: coreml: weights in blocks as 'F32' (allowed: F16, and types of blocks, such as Q4_0)\n");
  EXPECT_EQ(refusal("--weights Q9=F16"), "rlx: coreml: weights in blocks of 'Q9' (allowed: types of blocks, such as IQ3_S)\n");
  EXPECT_EQ(refusal("--weights IQ3_S=F16"), "rlx: coreml: weights of IQ3_S as F16: the graph has weights in blocks of Q4_K, Q8_0\n");
  EXPECT_EQ(refusal("--weights F16 --weights Q4_K=Q4_0 --weights Q8_0=Q4_0"),
            "rlx: coreml: weights of other types as F16: the graph has weights in blocks of Q4_K, Q8_0\n");
  EXPECT_EQ(refusal("--nested-scales --weights Q4_0"),
            "rlx: coreml: nested scales, which no type has that is stored: the graph has weights in blocks of Q4_K, Q8_0\n");
  EXPECT_EQ(refusal("--minimum-target 17 --weights F16"), "rlx: coreml: forms of blocks for iOS 17, which has none (allowed: 18, 26)\n");
  EXPECT_EQ(refusal("--weights q8_0=Q4_0 --weights Q8_0=F16"),
            "rlx: coreml: weights in blocks as 'Q8_0=F16' and as 'q8_0=Q4_0' (allowed: one of them)\n");
  EXPECT_NE(refusal("--weights Q4_0 --weights F16").find("F16: what becomes of these weights is given twice"), std::string::npos);
}

TEST_F(ExportCommand, RefusesTypesOfWeightsWhereThereAreNone) {
  EXPECT_EQ(refused("--weights Q4_0"), "rlx: coreml: weights of other types as Q4_0: the graph has no weights in blocks\n");
  EXPECT_EQ(refused("--nested-scales"),
            "rlx: coreml: nested scales, which no type has that is stored: the graph has no weights in blocks\n");
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
