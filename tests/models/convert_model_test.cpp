// Model folders written as GGUF files, against files that scripts/gguf_models.py made of the same folders (bench/llama_families.py has
// llama.cpp read both), and against recorded logits.
#include <algorithm>

#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/gguf/gguf_json.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/temporary_folder.h"
#include "models/conversion/dense_model.h"
#include "models/conversion/folder_source.h"
#include "models/conversion/folder_writer.h"
#include "models/conversion/quantize_model.h"
#include "models/run/recorded_run.h"
#include "models/tiny_sentence_model.h"
#include "quant/block_format.h"
#include "rlx/mask_filler.h"
#include "rlx/reranker.h"
#include "rlx/sentence_encoder.h"
#include "rlx/session.h"
#include "text/tokenizer/files/open_tokenizer.h"

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

/// The others compute factors of rope and exponentials in f32: a few roundings of 2^-24.
void expect_near(const Array& seen, const Array& wanted) {
  ASSERT_EQ(seen.shape(), wanted.shape());
  for (std::int64_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(seen.get_double(i), wanted.get_double(i), 1e-6 * std::abs(wanted.get_double(i)));
}

/// The folder that a file in gguf_models was made of.
std::filesystem::path folder_of(const std::string& name) {
  const auto first = fixture("hf") / name;
  return std::filesystem::exists(first) ? first : fixture("hf_more") / name;
}

std::vector<std::string> files_of_others() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture("gguf_models"))) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

/// Numbers of both come from the same decimal text, some by a formula: a few roundings of f32.
void expect_same_value(const GgufValue& seen, const GgufValue& wanted) {
  EXPECT_EQ(seen.type(), wanted.type()) << wanted.key();
  if (wanted.type() == GgufType::f32)
    EXPECT_FLOAT_EQ(static_cast<float>(seen.number()), static_cast<float>(wanted.number())) << wanted.key();
  else EXPECT_EQ(to_json(seen).dump(), to_json(wanted).dump()) << wanted.key();
}

class FolderToGguf : public testing::TestWithParam<std::string> {};

TEST_P(FolderToGguf, HasTheTensorsAndKeysThatOthersWrite) {
  const TemporaryFolder folder;
  convert_folder(folder_of(GetParam()), folder / "m.gguf");
  const GgufFile ours = GgufFile::open(folder / "m.gguf"), theirs = GgufFile::open(fixture("gguf_models/" + GetParam() + ".gguf"));
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const TensorView& wanted : theirs.tensors()) {
    const TensorView& tensor = ours.at(wanted.name);
    EXPECT_EQ(tensor.shape, wanted.shape) << wanted.name;
    if (wanted.name == "rope_freqs.weight" || wanted.name.ends_with(".ssm_a")) expect_near(values_of(tensor), values_of(wanted));
    else EXPECT_EQ(values_of(tensor), values_of(wanted)) << wanted.name;
  }
  const bool slides =
      theirs.find_value(fmt::format("{}.attention.sliding_window", theirs.value("general.architecture").string())) != nullptr;
  for (const GgufValue& wanted : theirs.metadata()) {
    if (!slides && wanted.key().ends_with("sliding_window_pattern")) continue;  // says that no layer slides: we say nothing then
    expect_same_value(ours.value(wanted.key()), wanted);
  }
}

std::string named_after(const testing::TestParamInfo<std::string>& each) {
  std::string name = each.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '/'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, FolderToGguf, testing::ValuesIn(files_of_others()), named_after);

std::vector<std::string> recorded_models() {
  std::vector<std::string> names;
  for (const char* set : {"hf", "hf_more"})
    for (const auto& entry : std::filesystem::directory_iterator(fixture(set)))
      names.push_back(fmt::format("{}/{}", set, entry.path().filename().string()));
  std::ranges::sort(names);
  return names;
}

void expect_recorded(const std::filesystem::path& model, const std::string& recording) {
  for (const VerifiedTensor& t : verify_model(model, fixture(recording), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

/// The tensors of a folder that came back have the names and values that they had. What was an exponential in between, or had 1 added, is
/// off by a rounding; of positions before a text's first nothing was kept.
void expect_same_tensors(const std::filesystem::path& original, const std::filesystem::path& back) {
  const Checkpoint before = Checkpoint::open(original), after = Checkpoint::open(back);
  const bool skips_positions = original.filename().string().find("roberta") != std::string::npos;
  EXPECT_EQ(after.names().size(), before.names().size());
  for (std::string_view name : before.names()) {
    const Array wanted = before.array(name), seen = after.array(name);
    ASSERT_EQ(seen.shape(), wanted.shape()) << name;
    const double rounding = name.ends_with("A_log") ? 1e-6 : name.ends_with("norm.weight") ? 1.2e-7 : 0;
    const std::int64_t first = skips_positions && name.find("position_embeddings") != std::string_view::npos ? 2 * wanted.shape()[1] : 0;
    for (std::int64_t i = first; i < wanted.size(); ++i)
      ASSERT_NEAR(seen.get_double(i), wanted.get_double(i), rounding) << name << " " << i;
  }
}

/// Every model whose outputs are recorded, whatever its family.
class EveryModel : public testing::TestWithParam<std::string> {};

TEST_P(EveryModel, GivesWhatIsRecordedThroughGgufAndBackInAFolder) {
  const TemporaryFolder folder;
  convert_folder(fixture(GetParam()), folder / "m.gguf", &find_type_mix("F32"));
  expect_recorded(folder / "m.gguf", GetParam());
  write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
  expect_recorded(folder / "back", GetParam());
  const auto type_of = [](const std::filesystem::path& model) { return json::read_file(model / "config.json").at("model_type"); };
  if (type_of(folder / "back") == type_of(fixture(GetParam()))) expect_same_tensors(fixture(GetParam()), folder / "back");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryModel, testing::ValuesIn(recorded_models()), named_after);

/// Models that say words for masked ones, whose head other readers of GGUF files may not know.
class EveryWordHead : public testing::TestWithParam<std::string> {};

TEST_P(EveryWordHead, GivesWhatIsRecordedThroughGgufAndBackInAFolder) {
  const std::string name = "masked_words/" + GetParam();
  const TemporaryFolder folder;
  convert_folder(fixture(name), folder / "m.gguf", &find_type_mix("F32"));
  expect_recorded(folder / "m.gguf", name);
  write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
  expect_recorded(folder / "back", name);
  expect_same_tensors(fixture(name), folder / "back");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryWordHead, testing::Values("roberta", "distilbert", "modernbert", "modernbert-biases"), named_after);

/// Its recording has an activation that GGUF files do not say.
TEST(GgufFiles, OfBertSayTheSameWords) {
  const TemporaryFolder folder;
  for (const char* name : {"model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(fixture("masked_words/bert") / name, folder / name);
  json::Value config = json::read_file(fixture("masked_words/bert/config.json"));
  config["hidden_act"] = "gelu";
  test::write_text(folder / "config.json", config.dump());
  convert_folder(folder.path(), folder / "m.gguf", &find_type_mix("F32"));
  const std::vector<std::string> texts{"A [MASK] dog"};
  const auto expected = MaskFiller::open(folder.path(), Session()).fill(texts)[0][0];
  const auto seen = MaskFiller::open(folder / "m.gguf", Session()).fill(texts)[0][0];
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].token, expected[i].token);
    EXPECT_EQ(seen[i].probability, expected[i].probability);
  }
}

/// As of files that were made of configs without the field.
TEST(GgufFiles, OfRoutersWithABiasScoreBySigmoidsUnlessTheySayOtherwise) {
  const TemporaryFolder folder;
  ModelSource source = source_of(GgufFile::open(fixture("gguf_models/deepseek_v3.gguf")));
  source.metadata.erase("deepseek2.expert_gating_func");
  quantize_model(source, folder / "m.gguf", nullptr, {});
  expect_recorded(folder / "m.gguf", "hf_more/deepseek_v3");
}

/// As llama.cpp's converter writes them: the config has a field norm_eps.
TEST(GgufFiles, OfModernBertMayNameTheEpsilonOfAnotherNorm) {
  const TemporaryFolder folder;
  convert_folder(fixture("hf_more/modernbert-scores"), folder / "f32.gguf", &find_type_mix("F32"));
  ModelSource source = source_of(GgufFile::open(folder / "f32.gguf"));
  source.metadata.set("modern-bert.attention.layer_norm_rms_epsilon", 1e-5F);
  quantize_model(source, folder / "m.gguf", nullptr, {});
  expect_recorded(folder / "m.gguf", "hf_more/modernbert-scores");
}

/// What the config of a folder says that is made of a file of `name` after `change`.
json::Value config_after(const std::string& name, const std::function<void(ModelSource&)>& change) {
  const TemporaryFolder folder;
  ModelSource source = source_of(GgufFile::open(fixture("gguf_models/" + name + ".gguf")));
  change(source);
  quantize_model(source, folder / "m.gguf", nullptr, {});
  write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
  return json::read_file(folder / "back" / "config.json");
}

TEST(GgufFiles, StretchPositionsEvenlyWhereTheyNameAFactorAlone) {
  for (const char* key : {"qwen3.rope.scaling.factor", "qwen3.rope.scale_linear"}) {
    const json::Value config = config_after("qwen3", [&](ModelSource& source) { source.metadata.set(key, 4.0F); });
    EXPECT_EQ(config.at("rope_scaling").at("rope_type"), "linear") << key;
    EXPECT_EQ(config.at("rope_scaling").at("factor"), 4) << key;
  }
}

/// Two heads of 16 features in place of four: fewer than a layer's values have.
void halve_heads(ModelSource& source, const std::string& architecture) {
  source.metadata.set(architecture + ".attention.head_count", std::uint32_t{2});
  for (SourceTensor& tensor : source.tensors) {
    const bool queries = tensor.view.name.ends_with("attn_q.weight"), output = tensor.view.name.ends_with("attn_output.weight");
    if (!queries && !output) continue;
    tensor.view.shape[output ? 1 : 0] /= 2;
    tensor.view.data = tensor.view.data.first(tensor.view.data.size() / 2);
  }
}

/// `layers` times the first layer.
void repeat_first_layer(ModelSource& source, const std::string& architecture, std::uint32_t layers) {
  source.metadata.set(architecture + ".block_count", layers);
  source.metadata.set(architecture + ".attention.sliding_window", std::uint32_t{0});
  constexpr std::string_view first = "blk.0.";
  std::vector<SourceTensor> tensors;
  for (const SourceTensor& tensor : source.tensors) {
    if (!tensor.view.name.starts_with("blk.")) tensors.push_back(tensor);
    for (std::uint32_t layer = 0; tensor.view.name.starts_with(first) && layer < layers; ++layer) {
      tensors.push_back(tensor);
      tensors.back().view.name = fmt::format("blk.{}.{}", layer, tensor.view.name.substr(first.size()));
    }
  }
  source.tensors = std::move(tensors);
}

/// Files of the models of 27B, which their layers tell, name no scale of scores: it is (hidden size / heads)^-1/2.
TEST(GgufFiles, OfGemmaScaleScoresByTheirSize) {
  const auto scalar = [](const std::string& architecture, std::uint32_t layers) {
    const auto change = [&](ModelSource& source) {
      source.metadata.erase(architecture + ".attention.scale");
      halve_heads(source, architecture);
      repeat_first_layer(source, architecture, layers);
    };
    return config_after(architecture, change).at("query_pre_attn_scalar").get<int>();
  };
  EXPECT_EQ(scalar("gemma2", 46), 32);
  EXPECT_EQ(scalar("gemma2", 42), 16);
  EXPECT_EQ(scalar("gemma3", 62), 32);
  EXPECT_EQ(scalar("gemma3", 48), 16);
}

/// Nothing would mean the usual limits and window.
TEST(GgufFiles, OfGemma2SayThatItHasNoLimits) {
  const TemporaryFolder folder;
  for (const char* file : {"model.safetensors", "tokenizer.json"})
    if (exists(fixture("hf/gemma2") / file)) std::filesystem::copy_file(fixture("hf/gemma2") / file, folder / file);
  json::Value config = json::read_file(fixture("hf/gemma2/config.json"));
  config["attn_logit_softcapping"] = config["final_logit_softcapping"] = nullptr;
  config["layer_types"] = std::vector<std::string>(config.at("num_hidden_layers").get<std::size_t>(), "full_attention");
  test::write_text(folder / "config.json", config.dump());
  convert_folder(folder.path(), folder / "m.gguf");
  const GgufFile file = GgufFile::open(folder / "m.gguf");
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "attention.sliding_window"})
    EXPECT_EQ(file.value(fmt::format("gemma2.{}", key)).number(), 0) << key;
}

/// The error of a folder made of a file with one key changed.
std::string error_of_key(const std::string& name, const char* key, std::uint32_t value) {
  const TemporaryFolder folder;
  ModelSource source = source_of(GgufFile::open(fixture("gguf_models/" + name + ".gguf")));
  source.metadata.set(key, value);
  quantize_model(source, folder / "m.gguf", nullptr, {});
  return error_of([&] { write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32); });
}

TEST(GgufFiles, ThatSayWhatCannotBeAreRefused) {
  EXPECT_NE(error_of_key("deepseek_v3", "deepseek2.expert_feed_forward_length", 0).find("expert_feed_forward_length': 0 (allowed: 1.."),
            std::string::npos);
  EXPECT_NE(error_of_key("qwen3_next", "qwen3next.ssm.time_step_rank", 3).find("is 3 heads of 48 features for 2 of keys"),
            std::string::npos);
  EXPECT_NE(error_of_key("qwen3_5", "qwen35.nextn_predict_layers", 2).find("block_count' is 0"), std::string::npos);
  EXPECT_NE(error_of_key("qwen3_5", "qwen35.block_count", 1 << 30).find("1073741824 (allowed: 1..1024)"), std::string::npos);
  EXPECT_NE(error_of_key("t5", "t5.attention.relative_max_distance", 4).find("relative_max_distance' is 4 (allowed: above 4)"),
            std::string::npos);
  EXPECT_NE(error_of_key("deepseek_v3", "deepseek2.rope.scaling.yarn_beta_fast", 0).find("yarn_beta_fast' is 0 (allowed: above 0)"),
            std::string::npos);
  EXPECT_NE(error_of_key("gemma3", "gemma3.rope.freq_base_swa", 0).find("m.gguf: key 'gemma3.rope.freq_base_swa' is 0 (allowed: above 0)"),
            std::string::npos);
  EXPECT_NE(error_of_key("t5", "t5.attention.head_count", 3).find("but the model's config asks for"), std::string::npos);
}

TEST(GgufFiles, WithNumbersOfLayersOrLabelsThatCannotBeAreNoSource) {
  const TemporaryFolder folder;
  ModelSource source = source_of(GgufFile::open(fixture("gguf_models/llama.gguf")));
  source.metadata.set("llama.block_count", std::uint32_t{3'000'000'000});
  quantize_model(source, folder / "m.gguf", nullptr, {});
  EXPECT_NE(error_of([&] { source_of(GgufFile::open(folder / "m.gguf")); }).find("3000000000 (allowed: 0..2147483647)"), std::string::npos);
  convert_folder(fixture("hf_more/bert-scores"), folder / "scores.gguf");
  source = source_of(GgufFile::open(folder / "scores.gguf"));
  source.metadata.set_strings("bert.classifier.output_labels", std::vector<std::string>{"\xFF"});
  quantize_model(source, folder / "m.gguf", nullptr, {});
  EXPECT_NE(error_of([&] { write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32); }).find("is not UTF-8"),
            std::string::npos);
}

/// Such a table takes no bytes, whatever its size.
TEST(GgufFiles, WithTablesOfNoColumnsAreRefused) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  metadata.set("general.architecture", std::string_view("t5"));
  const std::vector<TensorView> tensors{{"token_embd.weight", f32, {std::int64_t{1} << 40, 0}, {}, find_block_format("F32")}};
  const std::string bytes = gguf_header(metadata, tensors, "m.gguf");
  const auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), "m.gguf");
  EXPECT_EQ(error_of([&] { write_model_folder(file, folder / "back", f32); }),
            "m.gguf: tensor 'token_embd.weight' is f32[1099511627776,0] (allowed: matrices with 1..2147483647 rows)");
}

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

TEST(ConvertedEncoder, KeepsThePromptTheLengthAndThatOfVectors) {
  const test::TinySentenceModel model;
  model.write("config_sentence_transformers.json", R"({"prompts": {"q": "dogs "}, "default_prompt_name": "q"})");
  model.write("modules.json", R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}])");
  std::string text = "a";
  for (int i = 0; i < 30; ++i) text += " cat";
  const auto embedding = [&](const std::filesystem::path& path) { return SentenceEncoder::open(path, Session()).encode({&text, 1})[0]; };
  const Embedding expected = embedding(model.path());
  EXPECT_EQ(expected.ids.size(), 16u);
  const TemporaryFolder folder;
  convert_folder(model.path(), folder / "m.gguf");
  write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
  for (const char* path : {"m.gguf", "back"}) {
    EXPECT_EQ(embedding(folder / path).ids, expected.ids) << path;
    EXPECT_EQ(embedding(folder / path).values, expected.values) << path;
  }
}

/// A copy of a model that continues texts, with a pooling of its last token.
void write_pooling_decoder(const std::filesystem::path& to) {
  std::filesystem::copy(fixture("hf/llama"), to, std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(to / "1_Pooling");
  test::write_text(to / "1_Pooling/config.json", R"({"embedding_dimension": 64, "pooling_mode": "lasttoken"})");
  test::write_text(to / "modules.json", R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"},
                                           {"type": "a.Normalize", "path": "2_Normalize"}])");
}

TEST(ConvertedDecoder, KeepsHowItsFolderPools) {
  const TemporaryFolder folder;
  write_pooling_decoder(folder / "in");
  convert_folder(folder / "in", folder / "m.gguf");
  EXPECT_EQ(GgufFile::open(folder / "m.gguf").value("llama.pooling_type").integer(0, 9), 3);
  write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
  const json::Value modules = json::read_file(folder / "back/modules.json");
  ASSERT_EQ(modules.size(), 3U);
  EXPECT_EQ(modules.at(2).at("type"), "sentence_transformers.models.Normalize");
  EXPECT_EQ(json::read_file(folder / "back/1_Pooling/config.json").at("pooling_mode"), "lasttoken");
}

TEST(ConvertedDecoder, WithDenseLayersBehindItsPoolingIsRefused) {
  const TemporaryFolder folder;
  write_pooling_decoder(folder / "in");
  test::write_text(folder / "in/modules.json", R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"},
                                                  {"type": "a.Dense", "path": "2_Dense"}])");
  std::filesystem::create_directory(folder / "in/2_Dense");
  test::write_text(folder / "in/2_Dense/config.json", R"({"in_features": 64, "out_features": 8, "bias": true,
                                                         "activation_function": "torch.nn.modules.activation.Tanh"})");
  EXPECT_NE(error_of([&] {
              convert_folder(folder / "in", folder / "m.gguf");
            }).find("it has dense layers behind the pooling, though it continues texts, which GGUF files cannot say"),
            std::string::npos);
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
  for (const char* name : {"hf_more/roberta", "hf_more/distilbert", "hf_more/bert-scores", "hf_more/xlm-roberta-scores"}) {
    const TemporaryFolder folder;
    convert_folder(fixture(name), folder / "m.gguf");
    write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "back", f32);
    expect_same_tokens(folder / "m.gguf", folder / "back");
    // In GGUF files a text that begins with a space gets another one, where this folder's does not.
    if (std::string_view(name) != "hf_more/xlm-roberta-scores") expect_same_tokens(fixture(name), folder / "back");
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
  EXPECT_NE(error_of([&] { write_model_folder(GgufFile::open(folder / "m.gguf"), folder / "m.gguf" / "where", f32); }), "");
  EXPECT_EQ(folder.entries(), 2);
}

/// The tokenizer of another model, say, would be read as this one's.
TEST(FolderOfGguf, IsNotMixedWithAnotherModel) {
  const TemporaryFolder folder;
  convert_folder(fixture("hf/llama"), folder / "m.gguf");
  const GgufFile file = GgufFile::open(folder / "m.gguf");
  const std::filesystem::path out = folder / "out";
  write_model_folder(file, out, f32);
  test::write_text(out / "README.md", "of no model");
  write_model_folder(file, out, f16);
  const std::string before = test::read_text(out / "model.safetensors");
  for (const char* name : {"tokenizer.json", "tokenizer.model", "chat_template.jinja", "model-00001-of-00002.safetensors"}) {
    test::write_text(out / name, "of another");
    EXPECT_EQ(error_of([&] { write_model_folder(file, out, f32); }),
              fmt::format("{}: is there already and would belong to the model (remove it, or name another folder)", (out / name).string()));
    std::filesystem::remove(out / name);
  }
  EXPECT_EQ(test::read_text(out / "model.safetensors"), before);
}

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
  EXPECT_NE(message.find("lacks 'layers.0.mlp.up_proj.weight', 'norm.weight'"), std::string::npos) << message;
  changed = file.arrays;
  changed.emplace("model.odd.weight", file.arrays.at("model.norm.weight"));
  save_safetensors(folder / "model.safetensors", changed);
  message = error_of([&] { source_of_folder(folder.path()); });
  EXPECT_NE(message.find("has no use for: 'model.odd.weight'"), std::string::npos) << message;
}

TEST(FolderSource, SizesMustBeThoseOfTheConfig) {
  const TemporaryFolder folder;
  copy_model("llama", folder);
  json::Value config = json::read_file(folder / "config.json");
  config["vocab_size"] = 255;
  test::write_text(folder / "config.json", config.dump());
  const std::string message = error_of([&] { source_of_folder(folder.path()); });
  EXPECT_NE(message.find("is f32[256,64], but the model's config asks for f32[255,64]"), std::string::npos) << message;
}

/// The error of a folder with one field of its config changed.
std::string error_of_changed(const std::string& name, const char* field, const json::Value& value) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(folder_of(name) / "model.safetensors", folder / "model.safetensors");
  json::Value config = json::read_file(folder_of(name) / "config.json");
  config[field] = value;
  test::write_text(folder / "config.json", config.dump());
  return error_of([&] { source_of_folder(folder.path()); });
}

TEST(FolderSource, WhatMetadataCannotSayIsRefused) {
  EXPECT_NE(error_of_changed("smollm3", "no_rope_layers", {1, 0, 1, 1}).find("says of the model what metadata of GGUF files cannot say"),
            std::string::npos);
  EXPECT_NE(error_of_changed("llama", "hidden_act", "relu").find("says of the model what metadata of GGUF files cannot say"),
            std::string::npos);
  EXPECT_NE(error_of_changed("t5", "num_decoder_layers", 1025).find("num_decoder_layers: expected an integer in 1..1024, found 1025"),
            std::string::npos);
  EXPECT_NE(error_of_changed("t5", "dense_act_fn", "silu").find("dense_act_fn: has no form in GGUF files"), std::string::npos);
  EXPECT_NE(error_of_changed("deepseek_v3", "rope_interleave", false).find("cannot be converted"), std::string::npos);
}

TEST(FolderSource, NamesTheFamiliesThatHaveAForm) {
  const TemporaryFolder folder;
  test::write_text(folder / "config.json", R"({"model_type": "vit"})");
  const std::string message = error_of([&] { source_of_folder(folder.path()); });
  EXPECT_NE(message.find("model type 'vit' has no form in GGUF files here (supported: mixtral, "), std::string::npos) << message;
}

}  // namespace
}  // namespace rlx
