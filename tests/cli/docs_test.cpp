// The documents in docs/ are what the command of this build generates, and the table of op kinds is whole.
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/temporary_folder.h"
#include "ir/op.h"

namespace rlx {
namespace {

using test::read_text;

const std::filesystem::path project = test::fixture("").parent_path().parent_path().parent_path();

/// Every op kind that the first RLX names, in all of its versions.
constexpr std::string_view legacy_names[] = {
    "Input",
    "Param",
    "Constant",
    "Activation",
    "Cast",
    "Where",
    "Binary",
    "Compare",
    "ComplexNormSq",
    "Conjugate",
    "MatMul",
    "DotGeneral",
    "LoraMatMul",
    "Reshape",
    "Transpose",
    "Narrow",
    "Concat",
    "Expand",
    "Gather",
    "ScatterAdd",
    "Reduce",
    "Softmax",
    "Cumsum",
    "TopK",
    "LayerNorm",
    "RmsNorm",
    "GroupNorm",
    "LayerNorm2d",
    "Attention",
    "Rope",
    "AxialRope2d",
    "Conv",
    "ConvTranspose2d",
    "Pool",
    "ResizeNearest2x",
    "Quantize",
    "Dequantize",
    "FakeQuantize",
    "FakeQuantizeLSQ",
    "DequantMatMul",
    "QMatMul",
    "QConv2d",
    "GroupedMatMul",
    "DequantGroupedMatMul",
    "DequantMoEWeights",
    "SelectiveScan",
    "GatedDeltaNet",
    "DenseSolve",
    "BatchedDenseSolve",
    "Fft",
    "Sample",
    "SoftmaxCrossEntropyWithLogits",
    "If",
    "While",
    "Scan",
    "ReluBackward",
    "ActivationBackward",
    "FakeQuantizeBackward",
    "FakeQuantizeLSQBackwardX",
    "FakeQuantizeLSQBackwardScale",
    "ComplexNormSqBackward",
    "MaxPool2dBackward",
    "Conv2dBackwardInput",
    "Conv2dBackwardWeight",
    "SoftmaxCrossEntropyBackward",
    "AttentionBackward",
    "LayerNormBackwardInput",
    "LayerNormBackwardGamma",
    "RmsNormBackwardInput",
    "RmsNormBackwardGamma",
    "RmsNormBackwardBeta",
    "GroupNormBackwardInput",
    "GroupNormBackwardGamma",
    "GroupNormBackwardBeta",
    "RopeBackward",
    "CumsumBackward",
    "GatherBackward",
    "ScanBackward",
    "ScanBackwardXs",
    "ElementwiseRegion",
    "FusedMatMulBiasAct",
    "FusedSwiGLU",
    "FusedResidualLN",
    "FusedResidualRmsNorm",
    "FusedAttentionBlock",
    "FusedTransformerLayer",
    "Custom",
    "CustomFn",
    "GaussianSplatRender",
    "GaussianSplatRenderBackward",
    "GaussianSplatPrepare",
    "GaussianSplatRasterize",
    "StopGradient",
    "BatchNormInference",
    "BatchNormInferenceBackwardInput",
    "BatchNormInferenceBackwardGamma",
    "BatchNormInferenceBackwardBeta",
    "TransformRegion",
    "BatchElementwiseRegion",
    "RngNormal",
    "RngUniform",
    "Im2Col",
    "LogMel",
    "LogMelBackward",
    "WelchPeaks",
    "FftButterflyStage",
    "Lstm",
    "Gru",
    "Rnn",
    "Mamba2",
    "Fma",
    "Reverse",
    "ArgMax",
    "ArgMin",
    "SoftmaxCrossEntropy",
    "ScaledMatMul",
    "ScaledQuantize",
    "ScaledQuantScale",
    "ScaledDequantize",
};

/// Kinds whose op may still be missing. All others must be there.
const std::set<std::string_view> waiting{"Fft",
                                         "FftButterflyStage",
                                         "GaussianSplatRender",
                                         "GaussianSplatRenderBackward",
                                         "GaussianSplatPrepare",
                                         "GaussianSplatRasterize",
                                         "LogMel",
                                         "LogMelBackward",
                                         "WelchPeaks",
                                         "Lstm",
                                         "Gru",
                                         "Rnn"};

TEST(Docs, AreWhatTheCommandGenerates) {
  const test::TemporaryFolder folder;
  const std::string line = "'" + (project / "scripts/generate_docs.sh").string() + "' '" RLX_COMMAND "' '" + folder.path().string() + "'";
  ASSERT_EQ(std::system(line.c_str()), 0);
  for (const std::string name : {"cli.md", "ops.md", "coverage.md", "architecture.svg", "house.svg", "decisions/README.md"}) {
    const std::string generated = read_text(folder / name);
    if (name == "coverage.md" && generated.find("| mlx:cpu |") == std::string::npos) continue;  // a build without MLX knows less
    EXPECT_GT(generated.size(), 2000u) << name;
    EXPECT_EQ(read_text(project / "docs" / name), generated) << name << ": run scripts/generate_docs.sh";
  }
}

TEST(Docs, EveryOpIsInTheTableOfCoverageAndWhatIsMissingHasAReasonOfTheDevice) {
  const std::string text = read_text(project / "docs/coverage.md");
  for (const auto& [name, op] : op_registry())
    EXPECT_NE(text.find("\n| `" + std::string(name) + "` | "), std::string::npos) << name << ": run scripts/generate_docs.sh";
  for (const char* reason : {"no kernel computes", "it has no row", "it has no form there"})
    EXPECT_EQ(text.find(reason), std::string::npos);
}

TEST(Docs, EveryCommandHasASection) {
  const std::string text = read_text(project / "docs/cli.md");
  for (const std::string name : {"embed", "eval", "grad", "dump", "explain", "verify", "inspect", "ops", "devices", "version"})
    EXPECT_NE(text.find("\n## rlx " + name + "\n"), std::string::npos) << name;
}

TEST(Docs, EveryOpHasASectionWithAFormula) {
  const std::string text = read_text(project / "docs/ops.md");
  for (const auto& [name, op] : op_registry()) {
    EXPECT_NE(text.find("\n### " + std::string(name) + "\n"), std::string::npos) << name;
    EXPECT_FALSE(op->formula.empty()) << name;
  }
}

TEST(Docs, EveryOpIsInOneGroupOfTheIndexAndOfTheCommand) {
  const std::string document = read_text(project / "docs/ops.md");
  const auto begin = document.find("\n## Index\n");
  const std::string index = document.substr(begin, document.find("\n## Every op\n") - begin);
  const std::string listed = test::run_rlx("ops").out;
  for (const auto& [name, op] : op_registry()) {
    const std::string row = "\n| [" + std::string(name) + "](#" + std::string(name) + ") | ", line = "\n  " + std::string(name) + " ";
    EXPECT_EQ(index.find(row), index.rfind(row)) << name;
    EXPECT_NE(index.find(row), std::string::npos) << name;
    EXPECT_EQ(listed.find(line), listed.rfind(line)) << name;
    EXPECT_NE(listed.find(line), std::string::npos) << name;
  }
  const auto gelu = index.find("\n| [gelu](#gelu) |"), relu = index.find("\n| [relu](#relu) |"), dot = index.find("\n| [dot](#dot) |");
  EXPECT_EQ(index.find("\n### ", gelu), index.find("\n### ", relu));
  EXPECT_NE(index.find("\n### ", gelu), index.find("\n### ", dot));
}

/// The name of each function that the generated header rlx/ops.h declares.
std::set<std::string> builder_names() {
  std::istringstream header(read_text(std::filesystem::path(RLX_COMMAND).parent_path() / "generated/include/rlx/ops.h"));
  std::set<std::string> names;
  for (std::string line; std::getline(header, line);) {
    const auto open = line.find('(');
    if (line.starts_with("Value") && open != std::string::npos) names.insert(line.substr(line.find(' ') + 1, open - line.find(' ') - 1));
  }
  return names;
}

TEST(Docs, EveryBuilderHasASectionWithItsDeclaration) {
  const std::string text = read_text(project / "docs/ops.md");
  const auto names = builder_names();
  EXPECT_GT(names.size(), 200u);
  for (const std::string known :
       {"triu", "tril", "cummax", "cumprod", "argsort", "stack", "repeat", "take_along_axis", "pad_mode", "std_dev"})
    EXPECT_TRUE(names.contains(known)) << known;
  for (const std::string& name : names) {
    const auto section = text.find("\n### " + name + "\n");
    ASSERT_NE(section, std::string::npos) << name;
    const std::string body = text.substr(section, text.find("\n### ", section + 5) - section);
    EXPECT_NE(body.find(" " + name + "("), std::string::npos) << name;
  }
}

/// Adds a public header and what it includes.
void add_headers(const std::string& name, std::set<std::string>& known) {
  const std::filesystem::path generated = std::filesystem::path(RLX_COMMAND).parent_path() / "generated/include/rlx" / name;
  if (!known.insert(name).second) return;
  std::istringstream header(read_text(std::filesystem::exists(generated) ? generated : project / "include/rlx" / name));
  const std::string include = "#include \"rlx/";
  for (std::string line; std::getline(header, line);)
    if (line.starts_with(include)) add_headers(line.substr(include.size(), line.rfind('"') - include.size()), known);
}

TEST(Docs, OneHeaderIncludesAllOfCxx) {
  std::set<std::string> known = {"c.h"};
  add_headers("rlx.h", known);
  for (const auto& header : std::filesystem::directory_iterator(project / "include/rlx"))
    EXPECT_TRUE(known.contains(header.path().filename().string())) << header.path();
}

/// The rows of the table of op kinds, by kind: all of the row.
std::map<std::string, std::string> legacy_rows() {
  const std::string text = read_text(project / "docs/ops.md");
  std::istringstream table(text.substr(text.find("## Op kinds of the first RLX")));
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with("| ")) rows[line.substr(2, line.find(' ', 2) - 2)] = line;
  }
  return rows;
}

TEST(Docs, EveryOpKindOfTheFirstRlxIsMapped) {
  const auto rows = legacy_rows();
  for (std::string_view name : legacy_names) {
    const auto row = rows.find(std::string(name));
    ASSERT_NE(row, rows.end()) << name;
    EXPECT_EQ(row->second.find("|  |  |"), std::string::npos) << row->second;
    if (waiting.count(name) == 0) {
      EXPECT_EQ(row->second.find("not yet"), std::string::npos) << row->second;
    }
  }
  EXPECT_EQ(rows.size(), std::size(legacy_names) + 1);  // and the head
}

}  // namespace
}  // namespace rlx
