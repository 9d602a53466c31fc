// Model files and folders as `rlx inspect` shows them.
#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"

namespace rlx::test {
namespace {

std::string quoted_fixture(std::string_view name) { return quoted(fixture(name)); }

json::Value report(const std::string& arguments) {
  const CommandResult ended = run_rlx("inspect --json " + arguments);
  EXPECT_EQ(ended.status, 0) << ended.err;
  return json::parse(ended.out, "inspect");
}

TEST(InspectModel, AGgufFileIsSummarised) {
  const json::Value seen = report(quoted_fixture("gguf/alignment64.gguf"));
  EXPECT_EQ(seen["format"], "GGUF version 3");
  EXPECT_EQ(seen["architecture"], "rlx-test");
  EXPECT_EQ(seen["parameters"], 6181);
  EXPECT_EQ(seen["bytes"], 4318);
  EXPECT_NEAR(seen["bits_per_weight"].get<double>(), 4318 * 8.0 / 6181, 1e-9);
  EXPECT_EQ(seen["tensors"].size(), 9u);
  EXPECT_EQ(seen["types"].size(), 9u);
  EXPECT_EQ(seen["types"][0]["type"], "Q8_0");
  EXPECT_EQ(seen["metadata"]["test.int32"], INT32_MIN);
}

TEST(InspectModel, ASplitFileIsOne) {
  const json::Value seen = report(quoted_fixture("gguf/split-00002-of-00002.gguf"));
  EXPECT_EQ(seen["format"], "GGUF version 3, 2 parts");
  EXPECT_EQ(seen["tensors"].size(), 9u);
}

TEST(InspectModel, LongArraysAreCutUnlessAllIsAskedFor) {
  const std::string file = quoted_fixture("gguf/all_types.gguf");
  EXPECT_EQ(report(file)["metadata"]["test.many"]["first"], json::Value({0, 1, 2, 3}));
  EXPECT_EQ(report("--all " + file)["metadata"]["test.many"].size(), report(file)["metadata"]["test.many"]["elements"]);
  const std::string text = run_rlx("inspect " + file).out, whole = run_rlx("inspect --all --tensors " + file).out;
  EXPECT_NE(text.find("[0, 1, 2, 3, ...] ("), std::string::npos);
  EXPECT_EQ(text.find("plain.rank4"), std::string::npos);
  EXPECT_NE(whole.find("F32[2,3,1,4]"), std::string::npos);
  EXPECT_NE(whole.find("0, 1, 2, 3, 4, 5, 6"), std::string::npos);
}

TEST(InspectModel, OddTextsCannotMoveTheCursor) {
  const CommandResult ended = run_rlx("inspect " + quoted_fixture("gguf/edge_metadata.gguf"));
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("a\\x00b"), std::string::npos);
}

TEST(InspectModel, AnAdapterIsSummarised) {
  for (const char* adapter : {"lora/llama", "lora/llama.gguf"}) {
    const json::Value seen = report(quoted_fixture(adapter));
    EXPECT_EQ(seen["adapter"], (json::Value{{"matrices", 14}, {"least_rank", 2}, {"largest_rank", 4}})) << adapter;
    EXPECT_EQ(seen["tensors"].size(), 28u) << adapter;
    EXPECT_NE(run_rlx("inspect " + quoted_fixture(adapter)).out.find("low-rank changes of 14 matrices, ranks 2 to 4"), std::string::npos);
  }
  EXPECT_EQ(report(quoted_fixture("lora/llama"))["hyper_parameters"]["lora_alpha"], 6);
  EXPECT_FALSE(report(quoted_fixture("hf/llama")).contains("adapter"));
}

TEST(InspectModel, AFolderIsSummarised) {
  const json::Value seen = report(quoted_fixture("hf/bert"));
  EXPECT_EQ(seen["format"], "folder of 1 safetensors file");
  EXPECT_EQ(seen["architecture"], "bert");
  EXPECT_EQ(seen["types"][0]["type"], "F32");
  EXPECT_EQ(seen["hyper_parameters"]["hidden_size"], json::read_file(fixture("hf/bert/config.json"))["hidden_size"]);
  EXPECT_NE(run_rlx("inspect --tensors " + quoted_fixture("hf/bert")).out.find("valid"), std::string::npos);
  const CommandResult missing = run_rlx("inspect " + quoted_fixture("hf"));
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("config.json"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace rlx::test
