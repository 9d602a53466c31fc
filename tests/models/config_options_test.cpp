// Options of configs that few models have, against what transformers computes (scripts/hf_models.py, hf_encoders.py, hf_activations.py).
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_json.h"
#include "formats/json/json.h"
#include "formats/json/json_field.h"
#include "formats/temporary_folder.h"
#include "ir/reference.h"
#include "models/config/hidden_activation.h"
#include "models/layers/activation.h"
#include "models/run/recorded_run.h"
#include "rlx/convert.h"
#include "rlx/sentence_encoder.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;

HiddenActivation activation_of(const std::string& name) {
  const json::Value field = name;
  return read_activation(JsonField(field, "config.json", "hidden_act"));
}

TEST(HiddenActivations, AreTransformersOfTheSameNames) {
  const json::Value recorded = json::read_file(fixture("hf_options/activations.json"));
  const auto numbers = recorded.at("x").get<std::vector<double>>();
  const auto count = static_cast<std::int64_t>(numbers.size());
  for (const auto& [name, values] : recorded.items()) {
    if (name == "x") continue;
    Graph graph;
    graph.output("y", activate(activation_of(name), graph.input("x", {count}, f64)));
    const Array y = evaluate(graph, {{"x", Array::of<double>({count}, numbers)}})[0];
    for (std::int64_t i = 0; i < count; ++i)  // gelu_fast has a constant of ten digits
      EXPECT_NEAR(y.get_double(i), values.at(static_cast<std::size_t>(i)).get<double>(), name == "gelu_fast" ? 1e-10 : 1e-13)
          << name << " " << i;
    EXPECT_EQ(activation_of(activation_name(activation_of(name))), activation_of(name));
  }
}

TEST(HiddenActivations, WithWeightsAndUnknownOnesAreRefused) {
  for (const char* name : {"prelu", "xielu", "gelu_ne"})
    EXPECT_NE(
        error_of([&] { activation_of(name); }).find("config.json: hidden_act: '" + std::string(name) + "' is not known (allowed: gelu, "),
        std::string::npos);
}

class ConfigOptions : public testing::TestWithParam<std::string> {};

TEST_P(ConfigOptions, ResultsAreTheRecordedOnes) {
  for (const VerifiedTensor& t : verify_folder(fixture("hf_options/" + GetParam()), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ConfigOptions,
                         testing::Values("gpt2-scaled", "llama-mish", "qwen3_5-mish", "mamba-mish", "embedding-gemma"),
                         [](const auto& each) { return std::string(each.param).replace(each.param.find('-'), 1, "_"); });

TEST(ConfigOptions, WhatGgufFilesCannotSayIsRefused) {
  const test::TemporaryFolder folder;
  for (const char* name : {"gpt2-scaled", "llama-mish", "qwen3_5-mish", "mamba-mish"})
    EXPECT_NE(error_of([&] { convert(fixture("hf_options") / name, folder / "m.gguf"); }).find("what metadata of GGUF files cannot say"),
              std::string::npos);
}

/// As recorded in f64: a mean, two dense layers, a norm.
void expect_recorded_embeddings(const std::filesystem::path& model) {
  const json::Value recorded = json::read_file(fixture("hf_options/embedding-gemma/texts.json"));
  std::vector<std::string> texts;
  for (const json::Value& row : recorded.at("rows")) texts.push_back(row.at("text"));
  const auto embeddings = SentenceEncoder::open(model, Session(), {.batch_size = 3}).encode(texts);
  const double allowed = 10 * recorded.at("distance").get<double>();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const json::Value& row = recorded.at("rows").at(i);
    EXPECT_EQ(embeddings[i].ids, row.at("ids").get<std::vector<std::int32_t>>()) << texts[i];
    const auto expected = row.at("values").get<std::vector<double>>();
    ASSERT_EQ(embeddings[i].values.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(embeddings[i].values[k], expected[k], allowed) << texts[i];
  }
}

TEST(EmbeddingGemma, VectorsOfTextsAreTheRecordedOnes) { expect_recorded_embeddings(fixture("hf_options/embedding-gemma")); }

/// The file of others was made by scripts/gguf_models.py, without a tokenizer.
TEST(EmbeddingGemma, GgufFilesOfOthersAreReadAndWritten) {
  const auto theirs = fixture("hf_options/embedding-gemma.gguf");
  for (const VerifiedTensor& t : verify_model(theirs, fixture("hf_options/embedding-gemma"), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  const test::TemporaryFolder folder;
  convert(fixture("hf_options/embedding-gemma"), folder / "m.gguf", {.type = "F32"});
  const GgufFile wanted = GgufFile::open(theirs), ours = GgufFile::open(folder / "m.gguf");
  EXPECT_EQ(ours.tensors().size(), wanted.tensors().size());
  for (const TensorView& tensor : wanted.tensors())
    EXPECT_EQ(to_array(ours.at(tensor.name), nullptr), to_array(tensor, nullptr)) << tensor.name;
  for (const GgufValue& value : wanted.metadata()) EXPECT_EQ(to_json(ours.value(value.key())).dump(), to_json(value).dump()) << value.key();
}

TEST(EmbeddingGemma, IsTheSameAsAGgufFileAndBackInAFolder) {
  const test::TemporaryFolder folder;
  convert(fixture("hf_options/embedding-gemma"), folder / "m.gguf", {.type = "F32"});
  expect_recorded_embeddings(folder / "m.gguf");
  for (const VerifiedTensor& t : verify_model(folder / "m.gguf", fixture("hf_options/embedding-gemma"), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  convert(folder / "m.gguf", folder / "back");
  expect_recorded_embeddings(folder / "back");
}

}  // namespace
}  // namespace rlx
