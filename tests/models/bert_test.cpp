#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/files/file_writer.h"
#include "fixture.h"
#include "formats/temporary_folder.h"
#include "ir/reference.h"
#include "models/config/model_folder.h"
#include "models/families/decoder_family.h"
#include "models/run/recorded_run.h"
#include "models/weights/weights.h"
#include "rlx/session.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;

/// A config with `changes` merged into the fixture's.
DecoderConfig config_with(const std::string& changes) {
  json::Value config = json::read_file(fixture("hf/bert/config.json"));
  config.update(json::parse(changes, "changes"));
  return DecoderFamily::find("bert")->read(JsonField(config, "config.json"));
}

NamedArrays load_bert(const Graph& graph, const Checkpoint& checkpoint) {
  return load_weights(graph, checkpoint, DecoderFamily::find("bert")->weight_names(config_with("{}")), 1);
}

/// A checkpoint of the fixture with its tensors renamed; an empty name leaves the tensor out.
template <class Rename>
class RenamedCheckpoint {
 public:
  explicit RenamedCheckpoint(Rename rename, std::vector<TensorView> more = {}) {
    const Checkpoint original = Checkpoint::open(fixture("hf/bert/model.safetensors"));
    std::vector<TensorView> tensors = std::move(more);
    for (std::string_view name : original.names()) {
      TensorView tensor = original.at(name);
      tensor.name = rename(tensor.name);
      if (!tensor.name.empty()) tensors.push_back(tensor);
    }
    write_safetensors(path_, tensors);
  }
  ~RenamedCheckpoint() { std::filesystem::remove(path_); }
  RenamedCheckpoint(const RenamedCheckpoint&) = delete;
  RenamedCheckpoint& operator=(const RenamedCheckpoint&) = delete;

  NamedArrays load(const Graph& graph) const { return load_bert(graph, Checkpoint::open(path_)); }
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) / fmt::format("rlx_bert_{}.safetensors", getpid());
};

std::string ending_replaced(std::string name, std::string_view end, std::string_view with) {
  if (name.ends_with(end)) name.replace(name.size() - end.size(), end.size(), with);
  return name;
}

TEST(Bert, ReferenceEvaluationMatchesRecordedStates) {
  const RecordedRun run = RecordedRun::open(fixture("hf/bert"));
  std::map<std::string, Array> values = run.weights();
  values.insert(run.inputs().begin(), run.inputs().end());
  const auto results = evaluate(run.graph(), values);
  const auto verified = run.compare([&](std::string_view name) {
    const auto& outputs = run.graph().outputs();
    const auto at = std::find_if(outputs.begin(), outputs.end(), [&](const auto& output) { return output.first == name; });
    return results.at(static_cast<std::size_t>(at - outputs.begin()));
  });
  ASSERT_EQ(verified.size(), 3u);
  for (const VerifiedTensor& t : verified) EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

TEST(Bert, CompiledModelMatchesRecordedStates) {
  for (const bool claims : {true, false}) {
    SessionOptions options;
    options.claims = claims;
    const auto verified = verify_folder(fixture("hf/bert"), Session(Device::cpu(), options));
    ASSERT_EQ(verified.size(), 3u);
    for (const VerifiedTensor& t : verified)
      EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed << (claims ? "" : " without claims");
  }
}

TEST(Bert, ComparisonCountsOnlyWhatIsNotPadding) {
  const RecordedRun run = RecordedRun::open(fixture("hf/bert"));
  const SafetensorsFile recorded = SafetensorsFile::open(fixture("hf/bert/expected.safetensors"));
  std::int64_t tokens = 0, first_tokens = 0;
  for (std::int64_t i = 0; i < 48; ++i) tokens += recorded.array("attention_mask").get_int(i);
  for (std::int64_t i = 0; i < 24; ++i) first_tokens += recorded.array("attention_mask").get_int(i);
  ASSERT_LT(tokens, 48);  // the fixture has padding
  for (const VerifiedTensor& t : run.compare([&](std::string_view name) { return recorded.array(name); })) {
    const std::map<std::string, std::int64_t> counted{
        {"last_hidden_state", tokens * 64}, {"pooler_output", 2 * 64}, {"hidden_states_row0", 3 * first_tokens * 64}};
    EXPECT_EQ(t.compared, counted.at(t.name)) << t.name;
  }
}

TEST(Bert, ComparisonFailsForValuesThatAreOffOrNaN) {
  const RecordedRun run = RecordedRun::open(fixture("hf/bert"));
  const SafetensorsFile recorded = SafetensorsFile::open(fixture("hf/bert/expected.safetensors"));
  for (double wrong : {1e-3, std::numeric_limits<double>::quiet_NaN()}) {
    for (const VerifiedTensor& t : run.compare([&](std::string_view name) {
           Array values(f32, recorded.array(name).shape());
           for (std::int64_t i = 0; i < values.size(); ++i) values.set_double(i, recorded.array(name).get_double(i));
           values.set_double(0, values.get_double(0) + wrong);
           return values;
         }))
      EXPECT_FALSE(t.passed()) << t.name << " with " << wrong;
  }
}

TEST(BertWeights, NamesWithPrefixAndOldNormsAreFound) {
  const RecordedRun run = RecordedRun::open(fixture("hf/bert"));
  const RenamedCheckpoint old([](std::string name) {
    name = ending_replaced(std::move(name), "LayerNorm.weight", "LayerNorm.gamma");
    return "bert." + ending_replaced(std::move(name), "LayerNorm.bias", "LayerNorm.beta");
  });
  EXPECT_EQ(old.load(run.graph()), run.weights());
}

TEST(BertWeights, ASharedMappingIsNotCopied) {
  const Checkpoint checkpoint = Checkpoint::open(fixture("hf/bert/model.safetensors"));
  const RecordedRun run = RecordedRun::open(fixture("hf/bert"));
  const NamedArrays weights = load_bert(run.graph(), checkpoint);
  EXPECT_EQ(weights.at("classifier.dense.weight").bytes().data(), checkpoint.at("pooler.dense.weight").data.data());
}

TEST(BertWeights, HalfPrecisionIsConverted) {
  const RecordedRun run = RecordedRun::open(fixture("hf/bert"));
  const RenamedCheckpoint without([](std::string name) { return name == "pooler.dense.bias" ? "" : name; }, {});
  EXPECT_NE(error_of([&] { without.load(run.graph()); }).find("lacks 'pooler.dense.bias'"), std::string::npos);

  Array half(bf16, {64});
  for (std::int64_t i = 0; i < 64; ++i) half.set_double(i, 0.5 * static_cast<double>(i));
  const RenamedCheckpoint mixed([](std::string name) { return name == "pooler.dense.bias" ? "" : name; },
                                {{"pooler.dense.bias", bf16, {64}, half.bytes()}});
  const Array bias = mixed.load(run.graph()).at("classifier.dense.bias");
  EXPECT_EQ(bias.dtype(), f32);
  EXPECT_EQ(bias.get_double(63), 31.5);
}

TEST(BertWeights, ExtraTensorsAndWrongShapesAreNamed) {
  const RecordedRun run = RecordedRun::open(fixture("hf/bert"));
  const Array extra(f32, {3});
  const auto same = [](std::string name) { return name; };
  const RenamedCheckpoint more(same, {{"encoder.layer.2.output.dense.bias", f32, {3}, extra.bytes()}});
  EXPECT_NE(error_of([&] { more.load(run.graph()); }).find("'encoder.layer.2.output.dense.bias'"), std::string::npos);

  const RenamedCheckpoint buffer(same, {{"embeddings.position_ids", f32, {3}, extra.bytes()}});
  EXPECT_EQ(buffer.load(run.graph()), run.weights());

  const RenamedCheckpoint shape([](std::string name) { return name == "pooler.dense.bias" ? "" : name; },
                                {{"pooler.dense.bias", f32, {3}, extra.bytes()}});
  EXPECT_EQ(error_of([&] { shape.load(run.graph()); }),
            fmt::format("{}: tensor 'pooler.dense.bias' is f32[3], but the model's config asks for f32[64]", shape.name()));
}

TEST(BertConfig, WhatIsNotSupportedIsNamed) {
  EXPECT_EQ(config_with("{}").layers.size(), 2u);
  EXPECT_EQ(error_of([] { config_with(R"({"num_attention_heads": 5})"); }),
            "config.json: num_attention_heads: 5 do not divide hidden_size 64");
  for (const char* change :
       {R"({"hidden_act": "sine"})", R"({"position_embedding_type": "relative_key"})", R"({"is_decoder": true})", R"({"hidden_size": 0})",
        R"({"hidden_size": 99999999999})", R"({"layer_norm_eps": "x"})", R"({"vocab_size": null})"}) {
    EXPECT_NE(error_of([&] { config_with(change); }).find("config.json: "), std::string::npos) << change;
  }
}

TEST(ModelFolder, OtherArchitecturesAreNamedWithTheSupportedOnes) {
  const auto folder = std::filesystem::path(testing::TempDir()) / fmt::format("rlx_model_{}", getpid());
  std::filesystem::create_directory(folder);
  EXPECT_NE(error_of([&] { ModelFolder::open(folder); }).find("no config.json"), std::string::npos);
  write_file(folder / "config.json", R"({"model_type": "perceptron"})");
  EXPECT_NE(error_of([&] { RecordedRun::open(folder); }).find("model_type: 'perceptron' is not supported (supported: t5, arcee, bert, "),
            std::string::npos);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(error_of([&] { ModelFolder::open(folder); }), folder.string() + ": No such file or directory");
}

}  // namespace
}  // namespace rlx
