// Model folders written as GGUF files, against files that other software made of the same folders, and against recorded logits.
#include <algorithm>

#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/gguf_json.h"
#include "formats/temporary_folder.h"
#include "models/dense_model.h"
#include "models/folder_source.h"
#include "models/folder_writer.h"
#include "models/quantize_model.h"
#include "models/tiny_sentence_model.h"
#include "models/tokenizer/open_tokenizer.h"
#include "models/verify.h"
#include "rlx/reranker.h"
#include "rlx/sentence_encoder.h"
#include "rlx/session.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::TemporaryFolder;

void convert_folder(const std::filesystem::path& folder, const std::filesystem::path& target, const TypeMix* mix = nullptr) {
  quantize_model(source_of_folder(folder), target, mix, {});
}

/// The values of a tensor in f32, whatever its type.
Array values_of(const TensorView& tensor) {
  Array values(f32, tensor.shape);
  tensor.format->decode(tensor.data.data(), values.mutable_values<float>().data(), values.size());
  return values;
}

/// The others compute factors of rope in f32: a few roundings of 2^-24.
void expect_near(const Array& seen, const Array& wanted) {
  ASSERT_EQ(seen.shape(), wanted.shape());
  for (std::int64_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(seen.get_double(i), wanted.get_double(i), 1e-6 * wanted.get_double(i));
}

class FolderToGguf : public testing::TestWithParam<std::string> {};

TEST_P(FolderToGguf, HasTheTensorsAndKeysThatOthersWrite) {
  const TemporaryFolder folder;
  convert_folder(fixture("hf/" + GetParam()), folder / "m.gguf");
  const GgufFile ours = GgufFile::open(folder / "m.gguf"), theirs = GgufFile::open(fixture("gguf_models/" + GetParam() + ".gguf"));
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const TensorView& wanted : theirs.tensors()) {
    const TensorView& tensor = ours.at(wanted.name);
    EXPECT_EQ(tensor.shape, wanted.shape) << wanted.name;
    if (wanted.name == "rope_freqs.weight") expect_near(values_of(tensor), values_of(wanted));
    else EXPECT_EQ(values_of(tensor), values_of(wanted)) << wanted.name;
  }
  const bool slides =
      theirs.find_value(fmt::format("{}.attention.sliding_window", theirs.value("general.architecture").string())) != nullptr;
  for (const GgufValue& wanted : theirs.metadata()) {
    if (!slides && wanted.key().ends_with("sliding_window_pattern")) continue;  // says that no layer slides: we say nothing then
    EXPECT_EQ(to_json(ours.value(wanted.key())).dump(), to_json(wanted).dump()) << wanted.key();
    EXPECT_EQ(ours.value(wanted.key()).type(), wanted.type()) << wanted.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FolderToGguf,
                         testing::Values("llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma3", "phi3", "olmo2", "granite", "gpt2"));

class ConvertedFolder : public testing::TestWithParam<std::string> {};

TEST_P(ConvertedFolder, GivesTheRecordedLogitsAndTokensThroughGgufF32) {
  const TemporaryFolder folder;
  convert_folder(fixture("hf/" + GetParam()), folder / "m.gguf", &find_type_mix("F32"));
  const Session session;
  for (const VerifiedTensor& t : verify_model(folder / "m.gguf", fixture("hf/" + GetParam()), session))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

std::string named_after(const testing::TestParamInfo<std::string>& each) {
  std::string name = each.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '/'; }, '_');
  return name;
}

class ConvertedEncoder : public testing::TestWithParam<std::string> {};

TEST_P(ConvertedEncoder, GivesTheRecordedStatesAndScoresThroughGguf) {
  const TemporaryFolder folder;
  convert_folder(fixture(GetParam()), folder / "m.gguf");
  for (const VerifiedTensor& t : verify_model(folder / "m.gguf", fixture(GetParam()), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

INSTANTIATE_TEST_SUITE_P(Families, ConvertedEncoder,
                         testing::Values("hf/nomic-bert", "hf_more/roberta", "hf_more/distilbert", "hf_more/bert-scores",
                                         "hf_more/xlm-roberta-scores", "hf_more/modernbert-scores"),
                         named_after);

class TextsThroughGguf : public testing::TestWithParam<std::string> {};

/// Ids, and embeddings or scores, as recorded in f64.
TEST_P(TextsThroughGguf, AreTheRecordedOnes) {
  const TemporaryFolder folder;
  convert_folder(fixture(GetParam()), folder / "m.gguf");
  const json::Value recorded = json::read_file(fixture(GetParam()) / "texts.json");
  const double allowed = 10 * recorded.at("distance").get<double>();
  const bool scores = GetParam().ends_with("scores");
  for (const json::Value& row : recorded.at("rows")) {
    const auto expected = row.at("values").get<std::vector<double>>();
    if (scores) {
      const auto reranker = Reranker::open(folder / "m.gguf", Session(), {.sigmoid = false});
      const std::string text = row.at("text").at(1);
      EXPECT_NEAR(reranker.score(row.at("text").at(0), {&text, 1})[0], expected[0], allowed) << text;
      continue;
    }
    const std::string text = row.at("text");
    const auto embedding = SentenceEncoder::open(folder / "m.gguf", Session(), {.pooling = "mean"}).encode({&text, 1})[0];
    EXPECT_EQ(embedding.ids, row.at("ids").get<std::vector<std::int32_t>>()) << text;
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(embedding.values[i], expected[i], allowed) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TextsThroughGguf,
                         testing::Values("hf_more/roberta", "hf_more/distilbert", "hf_more/bert-scores", "hf_more/xlm-roberta-scores",
                                         "hf_more/modernbert-scores"),
                         named_after);

TEST(ConvertedEncoder, PoolsAsModulesSay) {
  const test::TinySentenceModel model;
  const TemporaryFolder folder;
  convert_folder(model.path(), folder / "m.gguf");
  const std::vector<std::string> texts{"a cat", "dogs ran a cat sat"};
  const auto expected = SentenceEncoder::open(model.path(), Session()).encode(texts);
  const auto seen = SentenceEncoder::open(folder / "m.gguf", Session()).encode(texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(seen[i].ids, expected[i].ids);
    EXPECT_EQ(seen[i].values, expected[i].values);
  }
}

class FolderOfGguf : public testing::TestWithParam<std::string> {};

/// From a folder to GGUF and back: tensors have the same names and values (norms from whose weights 1 was taken and added: within a
/// rounding), and logits and tokens are the recorded ones.
TEST_P(FolderOfGguf, HoldsTheSameModel) {
  const TemporaryFolder folder;
  const std::filesystem::path original = fixture(GetParam());
  convert_folder(original, folder / "m.gguf");
  write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
  const Checkpoint before = Checkpoint::open(original / "model.safetensors"), after = Checkpoint::open(folder / "back");
  for (std::string_view name : after.names()) {
    const Array wanted = before.array(name), seen = after.array(name);
    ASSERT_EQ(seen.shape(), wanted.shape()) << name;
    const bool logarithm = name.ends_with("A_log");  // of what was its exponential: both are rounded
    const double rounding = logarithm                                                                                      ? 1e-6
                            : GetParam().find("gemma") != std::string::npos && name.find("norm") != std::string_view::npos ? 1.2e-7
                                                                                                                           : 0;
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), rounding) << name << " " << i;
  }
  for (const VerifiedTensor& t : verify_model(folder / "back", original, Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

INSTANTIATE_TEST_SUITE_P(Families, FolderOfGguf,
                         testing::Values("hf/llama", "hf/mistral", "hf/mixtral", "hf/qwen2", "hf/qwen3", "hf/gemma2", "hf/gemma3",
                                         "hf/phi3", "hf/phi3-longrope", "hf/olmo2", "hf/granite", "hf/gpt2", "hf/nomic-bert",
                                         "hf_more/gemma", "hf_more/qwen2_moe", "hf_more/qwen3_moe", "hf_more/distilbert",
                                         "hf_more/bert-scores", "hf_more/modernbert-scores", "hf/mamba"),
                         named_after);

/// Positions of RoBERTa begin at 0 in GGUF files, which is what a BERT is.
TEST(FolderOfGguf, ARobertaComesBackAsABert) {
  const TemporaryFolder folder;
  convert_folder(fixture("hf_more/roberta"), folder / "m.gguf");
  write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
  EXPECT_EQ(json::read_file(folder / "back" / "config.json").at("model_type"), "bert");
  for (const VerifiedTensor& t : verify_model(folder / "back", fixture("hf_more/roberta"), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

/// One token and one text at a time through the files that were written.
void expect_same_tokens(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Tokenizer wanted = open_tokenizer(a), seen = open_tokenizer(b);
  for (const char* text : {"Hello  world", " 3.14159, isn't\n\nit?", "Ärger über 日本 🙂", "a", ""}) {
    EXPECT_EQ(seen.encode(text).ids, wanted.encode(text).ids) << text;
    EXPECT_EQ(seen.encode_pair("a b", text).ids, wanted.encode_pair("a b", text).ids) << text;
  }
}

TEST(FolderOfGguf, TokenizersGiveTheSameIds) {
  for (const char* name : {"hf_more/roberta", "hf_more/distilbert", "hf_more/bert-scores"}) {
    const TemporaryFolder folder;
    convert_folder(fixture(name), folder / "m.gguf");
    write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
    expect_same_tokens(fixture(name), folder / "back");
  }
}

TEST(FolderOfGguf, WhatHasNoFormIsRefusedAndLeavesNothing) {
  const TemporaryFolder folder;
  const GgufFile file = GgufFile::open(fixture("gguf/all_types.gguf"));
  EXPECT_NE(error_of([&] { write_model_folder(file, folder / "out", f32); }), "");
  EXPECT_EQ(folder.entries(), 0);
  convert_folder(fixture("hf/llama"), folder / "m.gguf");
  test::write_text(folder / "plain", "a file");
  EXPECT_NE(error_of([&] { write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "plain", f32); }).find("folder cannot be made"),
            std::string::npos);
  EXPECT_NE(error_of([&] { write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "no" / "where", f32); }), "");
  EXPECT_EQ(folder.entries(), 2);
}

INSTANTIATE_TEST_SUITE_P(Families, ConvertedFolder, testing::Values("llama-tied", "gemma2", "phi3-longrope", "mixtral", "gpt2", "mamba"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(DenseModel, HoldsTheValuesOfEveryType) {
  const TemporaryFolder folder;
  write_dense(Checkpoint::open(fixture("gguf/all_types.gguf")), folder / "all.safetensors", f32);
  const SafetensorsFile recorded = SafetensorsFile::open(fixture("gguf/all_types.safetensors"));
  const SafetensorsFile file = SafetensorsFile::open(folder / "all.safetensors");
  ASSERT_EQ(file.tensors().size(), recorded.tensors().size());
  for (const TensorView& wanted : recorded.tensors()) {
    const Array values = file.array(wanted.name), expected = recorded.array(wanted.name);
    if (!is_float(expected.dtype())) {
      EXPECT_EQ(values, expected) << wanted.name;
      continue;
    }
    EXPECT_EQ(values.shape(), expected.shape()) << wanted.name;
    for (std::int64_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(values.get_double(i), static_cast<double>(static_cast<float>(expected.get_double(i)))) << wanted.name << " " << i;
  }
}

TEST(DenseModel, NamesAValueThatTheTypeCannotHold) {
  const TemporaryFolder folder;
  const std::string message =
      error_of([&] { write_dense(Checkpoint::open(fixture("gguf/all_types.gguf")), folder / "all.safetensors", f16); });
  EXPECT_NE(message.find("which F16 cannot hold"), std::string::npos) << message;
  EXPECT_EQ(folder.entries(), 0);
}

/// A copy of a folder's config and weights, to be spoiled.
void copy_model(const std::string& name, const TemporaryFolder& folder) {
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(fixture("hf/" + name + "/" + file), folder / file);
}

TEST(FolderSource, NamesAllTensorsThatAreMissingOrOfNoUse) {
  const TemporaryFolder folder;
  copy_model("llama", folder);
  TensorFile file = load_safetensors(folder / "model.safetensors");
  NamedArrays changed = file.arrays;
  changed.erase("model.layers.0.mlp.up_proj.weight");
  changed.erase("model.norm.weight");
  save_safetensors(folder / "changed.safetensors", changed);
  std::filesystem::rename(folder / "changed.safetensors", folder / "model.safetensors");
  std::string message = error_of([&] { source_of_folder(folder.path()); });
  EXPECT_NE(message.find("lacks 2 tensors: 'layers.0.ffn.up.weight', 'output_norm.weight'"), std::string::npos) << message;
  changed = file.arrays;
  changed.emplace("model.odd.weight", file.arrays.at("model.norm.weight"));
  save_safetensors(folder / "model.safetensors", changed);
  message = error_of([&] { source_of_folder(folder.path()); });
  EXPECT_NE(message.find("has no use for 1 tensors: 'model.odd.weight'"), std::string::npos) << message;
}

TEST(FolderSource, SizesMustBeThoseOfTheConfig) {
  const TemporaryFolder folder;
  copy_model("llama", folder);
  json::Value config = json::read_file(folder / "config.json");
  config["vocab_size"] = 255;
  test::write_text(folder / "config.json", config.dump());
  const std::string message = error_of([&] { source_of_folder(folder.path()); });
  EXPECT_NE(message.find("is f32[256,64], by config.json it must be f32[255,64]"), std::string::npos) << message;
}

TEST(FolderSource, NamesTheFamiliesThatHaveAForm) {
  const std::string message = error_of([&] { source_of_folder(fixture("hf/t5")); });
  EXPECT_NE(message.find("model type 't5' has no form in GGUF files here (supported: llama, "), std::string::npos) << message;
}

}  // namespace
}  // namespace rlx
