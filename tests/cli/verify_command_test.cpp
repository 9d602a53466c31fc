#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "formats/tensors/safetensors.h"

namespace rlx::test {
namespace {

/// A copy of fixtures/hf/bert whose recording may be changed.
class VerifyCommand : public testing::Test {
 protected:
  VerifyCommand() {
    for (const char* name : {"config.json", "model.safetensors", "expected.safetensors"}) {
      std::filesystem::copy_file(fixture("hf/bert") / name, folder_ / name);
      std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
    }
  }

  /// Rewrites one recorded tensor.
  void record(const std::string& name, const Array& value) {
    const SafetensorsFile original = SafetensorsFile::open(fixture("hf/bert/expected.safetensors"));
    std::vector<TensorView> tensors;
    for (TensorView tensor : original.tensors()) {
      if (tensor.name == name) tensor = {name, value.dtype(), value.shape(), value.bytes()};
      tensors.push_back(tensor);
    }
    write_safetensors(folder_ / "expected.safetensors", tensors);
  }

  CommandResult verify(const std::string& more = "") { return run_rlx("verify " + folder_.path().string() + " " + more); }

  TemporaryFolder folder_;
};

TEST_F(VerifyCommand, TheFixtureIsWithinItsAllowance) {
  const CommandResult result = verify();
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_EQ(line_count(result.out), 4);
  EXPECT_EQ(result.out.find("OVER"), std::string::npos);
}

TEST_F(VerifyCommand, ItPassesWithoutClaimsAndNotWithNarrowProducts) {
  EXPECT_EQ(verify("--no-claims").status, 0);
  EXPECT_EQ(verify("--no-claims --no-fusion").status, 0);
  EXPECT_EQ(verify("--precision bf16").status, 1);  // 8 bits of mantissa against ten times the error of 24
}

TEST_F(VerifyCommand, JsonHasOneObjectForEachTensor) {
  const CommandResult result = verify("--json");
  ASSERT_EQ(line_count(result.out), 3);
  const json::Value first = json::parse(result.out.substr(0, result.out.find('\n')), "line 1");
  EXPECT_EQ(first.at("passed"), true);
  EXPECT_GT(first.at("allowed").get<double>(), first.at("difference").get<double>());
}

TEST_F(VerifyCommand, AnotherRecordingIsOverWithStatusOne) {
  const SafetensorsFile original = SafetensorsFile::open(fixture("hf/bert/expected.safetensors"));
  Array changed(f32, {3, 24, 64});
  for (std::int64_t i = 0; i < changed.size(); ++i)
    changed.set_double(i, original.array("hidden_states_row0").get_double(i) + (i == 70 ? 1e-2 : 0));
  record("hidden_states_row0", changed);
  const CommandResult result = verify();
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.out.find("OVER"), std::string::npos);
  EXPECT_EQ(result.err, "");
}

/// What may differ is ten times the distance of these two.
TEST_F(VerifyCommand, RecordingsInF32AndF64ThatDoNotBelongTogetherAreRefused) {
  for (const char* name : {"pooler_output", "pooler_output_f64"}) {
    const Array recorded = SafetensorsFile::open(fixture("hf/bert/expected.safetensors")).array(name);
    Array changed(recorded.dtype(), recorded.shape());
    for (std::int64_t i = 0; i < changed.size(); ++i) changed.set_double(i, recorded.get_double(i) + (i == 70 ? 0.5 : 0));
    record(name, changed);
    const CommandResult result = verify();
    EXPECT_EQ(result.status, 1) << result.out;
    EXPECT_NE(result.err.find("tensors 'pooler_output' and 'pooler_output_f64' are 0.5 apart"), std::string::npos) << result.err;
  }
}

TEST_F(VerifyCommand, AFolderThatCannotBeComparedDoesNotStopTheOthers) {
  const CommandResult result = run_rlx("verify /dev/null nowhere " + folder_.path().string());
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(line_count(result.err), 2) << result.err;
  EXPECT_EQ(line_count(result.out), 4);
}

TEST_F(VerifyCommand, WhatDoesNotFitIsNamed) {
  record("input_ids", Array(i64, {2, 41}));
  EXPECT_NE(verify().err.find("'input_ids' is i64[2,41] (allowed: two axes, with 1..40 tokens)"), std::string::npos);
  Array large(i64, {2, 24});
  large.set_int(7, 256);
  record("input_ids", large);
  EXPECT_NE(verify().err.find("element 7 is 256 (allowed: 0..255)"), std::string::npos);
  record("attention_mask", Array(f32, {2, 24}));
  EXPECT_NE(verify().err.find("'attention_mask' is f32[2,24] (allowed: integers"), std::string::npos);
  record("pooler_output", Array(f32, {2, 63}));
  EXPECT_NE(verify().err.find("'pooler_output' is f"), std::string::npos);
  std::filesystem::remove(folder_ / "expected.safetensors");
  EXPECT_EQ(verify().status, 1);
  write_text(folder_ / "config.json", R"({"model_type": "clip"})");
  EXPECT_NE(verify().err.find("'clip' is not supported (supported: t5, arcee, bert, "), std::string::npos);
}

}  // namespace
}  // namespace rlx::test
