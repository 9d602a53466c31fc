// Encoders against what another implementation recorded of them: states, embeddings and scores.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "models/families/decoder_family.h"
#include "models/layers/encoder.h"
#include "models/run/recorded_run.h"
#include "rlx/io.h"
#include "rlx/mask_filler.h"
#include "rlx/reranker.h"
#include "rlx/sentence_encoder.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;

std::string name_of_encoder(const testing::TestParamInfo<std::string>& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Encoder : public testing::TestWithParam<std::string> {};

TEST_P(Encoder, StatesAndScoresAreTheRecordedOnes) {
  for (const bool claims : {true, false}) {
    SessionOptions options;
    options.claims = claims;
    for (const VerifiedTensor& t : verify_folder(fixture("hf_more/" + GetParam()), Session(Device::cpu(), options)))
      EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Encoder,
                         testing::Values("roberta", "distilbert", "bert-scores", "xlm-roberta-scores", "modernbert-scores",
                                         "distilbert-labels"),
                         name_of_encoder);

/// `array` (2, tokens, ...) with the last `count` tokens of its second text before the others.
Array turned(const Array& array, std::int64_t count) {
  Array result(array.dtype(), array.shape());
  const std::int64_t text = array.size() / 2, token = text / array.shape()[1];
  for (std::int64_t i = 0; i < text; ++i) {
    result.set_double(i, array.get_double(i));
    result.set_double(text + (i + count * token) % text, array.get_double(text + i));
  }
  return result;
}

/// RoBERTa counts its tokens from where padding ends.
TEST(PaddedEncoder, StatesBehindPaddingAreThoseBeforeIt) {
  const auto original = fixture("hf_more/roberta");
  const test::TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors"}) std::filesystem::copy_file(original / file, folder / file);
  NamedArrays recorded = load_safetensors(original / "expected.safetensors").arrays;
  std::int64_t padding = 0;
  for (std::int64_t i = 12; i < 24; ++i) padding += recorded.at("attention_mask").get_int(i) == 0;
  ASSERT_EQ(padding, 3);
  for (const char* name : {"input_ids", "attention_mask", "last_hidden_state", "last_hidden_state_f64"})
    recorded.at(name) = turned(recorded.at(name), padding);
  save_safetensors(folder / "expected.safetensors", recorded);
  for (const VerifiedTensor& t : verify_folder(folder.path(), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

/// Texts with what was recorded of them: ids, and values in f64.
struct RecordedTexts {
  json::Value file;
  explicit RecordedTexts(const std::string& name, const std::string& set = "hf_more")
      : file(json::read_file(fixture(set + "/" + name + "/texts.json"))) {}

  const json::Value& rows() const { return file.at("rows"); }
  double allowed() const { return 10 * file.at("distance").get<double>(); }
};

class EmbeddedTexts : public testing::TestWithParam<std::string> {};

TEST_P(EmbeddedTexts, AreTheRecordedOnes) {
  const RecordedTexts recorded(GetParam());
  const auto encoder = SentenceEncoder::open(fixture("hf_more/" + GetParam()), Session(), {.batch_size = 3, .pooling = "mean"});
  std::vector<std::string> texts;
  for (const json::Value& row : recorded.rows()) texts.push_back(row.at("text"));
  const auto embeddings = encoder.encode(texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(embeddings[i].ids, recorded.rows().at(i).at("ids").get<std::vector<std::int32_t>>()) << texts[i];
    const auto expected = recorded.rows().at(i).at("values").get<std::vector<double>>();
    ASSERT_EQ(embeddings[i].values.size(), expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(embeddings[i].values[k], expected[k], recorded.allowed()) << texts[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Families, EmbeddedTexts, testing::Values("roberta", "distilbert"), name_of_encoder);

class ScoredTexts : public testing::TestWithParam<std::string> {};

/// Groups of rows have one query each.
TEST_P(ScoredTexts, AreTheRecordedOnesAndSorted) {
  const RecordedTexts recorded(GetParam());
  const auto raw = Reranker::open(fixture("hf_more/" + GetParam()), Session(), {.batch_size = 3, .sigmoid = false});
  const auto usual = Reranker::open(fixture("hf_more/" + GetParam()), Session());
  const std::string query = recorded.rows().at(0).at("text").at(0);
  std::vector<std::string> texts;
  std::vector<double> expected;
  for (const json::Value& row : recorded.rows()) {
    const double value = row.at("values").at(0);
    const std::string text = row.at("text").at(1);
    EXPECT_NEAR(raw.score(row.at("text").at(0), {&text, 1})[0], value, recorded.allowed()) << text;
    if (row.at("text").at(0) == query) texts.push_back(text), expected.push_back(value);
  }
  ASSERT_GT(texts.size(), 2u);
  const auto together = raw.score(query, texts), squeezed = usual.score(query, texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_NEAR(together[i], expected[i], recorded.allowed()) << texts[i];
    EXPECT_NEAR(squeezed[i], 1 / (1 + std::exp(-expected[i])), recorded.allowed()) << texts[i];
  }
  const auto ranked = usual.rank(query, texts);
  ASSERT_EQ(ranked.size(), texts.size());
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    EXPECT_EQ(ranked[i].score, squeezed[ranked[i].index]);
    EXPECT_GE(expected[ranked[i > 0 ? i - 1 : 0].index], expected[ranked[i].index]);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ScoredTexts, testing::Values("bert-scores", "xlm-roberta-scores", "modernbert-scores"), name_of_encoder);

/// Recorded without the types of tokens, which are then all 0.
class MaskedWords : public testing::TestWithParam<std::string> {};

TEST_P(MaskedWords, LogitsAreTheRecordedOnes) {
  const auto verified = verify_folder(fixture("masked_words/" + GetParam()), Session());
  ASSERT_EQ(verified.size(), 1u);
  EXPECT_TRUE(verified[0].passed()) << verified[0].name << ": " << verified[0].difference << " > " << verified[0].allowed;
}

TEST_P(MaskedWords, TheLikeliestAreTheRecordedOnes) {
  const RecordedTexts recorded(GetParam(), "masked_words");
  const auto filler = MaskFiller::open(fixture("masked_words/" + GetParam()), Session(), {.words = 5, .batch_size = 2});
  std::vector<std::string> texts;
  for (const json::Value& row : recorded.rows()) texts.push_back(row.at("text"));
  const auto filled = filler.fill(texts);
  ASSERT_EQ(filled.size(), texts.size());
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const json::Value &tokens = recorded.rows().at(t).at("tokens"), &probabilities = recorded.rows().at(t).at("probabilities");
    ASSERT_EQ(filled[t].size(), tokens.size()) << texts[t];
    for (std::size_t m = 0; m < tokens.size(); ++m)
      for (std::size_t k = 0; k < 5; ++k) {
        EXPECT_EQ(filled[t][m][k].token, tokens.at(m).at(k).get<std::int32_t>()) << texts[t];
        EXPECT_NEAR(filled[t][m][k].probability, probabilities.at(m).at(k).get<double>(), recorded.allowed()) << texts[t];
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, MaskedWords, testing::Values("bert", "roberta", "distilbert", "modernbert", "modernbert-biases"),
                         name_of_encoder);

TEST(MaskFiller, SaysWhatIsMissing) {
  const auto filler = MaskFiller::open(fixture("masked_words/bert"), Session());
  const std::vector<std::string> texts{"A [MASK]", "A dog"};
  EXPECT_EQ(error_of([&] { filler.fill(texts); }), "text 2 has no [MASK]");
  EXPECT_NE(error_of([&] { MaskFiller::open(fixture("hf_more/roberta"), Session()); }).find("the model says no words for masks"),
            std::string::npos);
  EXPECT_NE(error_of([&] { MaskFiller::open(fixture("masked_words/bert"), Session(), {.words = 321}); }).find("allowed: 1..320"),
            std::string::npos);
}

TEST(Reranker, TheConfigSaysWhetherScoresAreSqueezed) {
  const test::TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(fixture("hf_more/bert-scores") / file, folder / file);
  const json::Value original = json::read_file(folder / "config.json");
  const std::vector<std::string> text{"A dog"};
  const auto score = [&](const char* changes) {
    json::Value config = original;
    config.update(json::parse(changes, "changes"));
    std::filesystem::remove(folder / "config.json");
    test::write_text(folder / "config.json", config.dump());
    return Reranker::open(folder.path(), Session()).score("dog", text)[0];
  };
  const float squeezed = score("{}");
  const float raw = score(R"({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}})");
  EXPECT_NEAR(squeezed, 1 / (1 + std::exp(-raw)), 1e-6);
  EXPECT_EQ(score(R"({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"})"), raw);
  EXPECT_EQ(score(R"({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}})"), squeezed);
  EXPECT_NE(error_of([&] {
              score(R"({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}})");
            }).find("sentence_transformers.activation_fn: 'Tanh' is not supported (allowed: Sigmoid, Identity)"),
            std::string::npos);
}

TEST(Reranker, ModelsThatDoNotScoreAreRefused) {
  const auto message = [](const std::string& name) { return error_of([&] { Reranker::open(fixture(name), Session()); }); };
  EXPECT_NE(message("hf_more/roberta").find("the model scores no texts"), std::string::npos) << message("hf_more/roberta");
  EXPECT_NE(message("hf_more/distilbert-labels").find("3 labels"), std::string::npos) << message("hf_more/distilbert-labels");
  EXPECT_NE(message("hf/llama").find("the model continues texts"), std::string::npos) << message("hf/llama");
  EXPECT_NE(error_of([] { Reranker::open(fixture("hf_more/bert-scores"), Session(), {.batch_size = 0}); }).find("batch size 0"),
            std::string::npos);
}

TEST(SentenceEncoder, AModelWithoutModulesNeedsAChoiceOfPooling) {
  const auto open = [](const char* pooling) { SentenceEncoder::open(fixture("hf_more/roberta"), Session(), {.pooling = pooling}); };
  EXPECT_NE(error_of([&] { open(""); }).find("a pooling must be chosen, such as mean or cls"), std::string::npos);
  EXPECT_NE(error_of([&] { open("median"); }).find("pooling 'median' is not known (allowed: cls, max, mean, "), std::string::npos);
  const std::vector<std::string> texts{"A dog at the beach"};
  SentenceEncoderOptions options{.pooling = "cls", .normalize = false};
  const auto values = SentenceEncoder::open(fixture("hf_more/roberta"), Session(), options).encode(texts)[0].values;
  double squares = 0;
  for (float value : values) squares += double{value} * value;
  EXPECT_GT(std::abs(squares - 1), 0.1);  // states of 32 values around 1
  options.normalize = true;
  const auto unit = SentenceEncoder::open(fixture("hf_more/roberta"), Session(), options).encode(texts)[0].values;
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(unit[i], values[i] / std::sqrt(squares), 1e-6);
}

TEST(NomicBert, BothSpellingsOfTheSizesMeanTheSameGraph) {
  const auto graph_of = [](const json::Value& config) {
    Graph graph;
    const DecoderConfig description = DecoderFamily::find("nomic_bert")->read(JsonField(config, "config.json"));
    graph.output("last_hidden_state", encode_text(Flow(graph), description, 2, 24).states.back());
    return graph;
  };
  const json::Value older = json::parse(R"({"vocab_size": 256, "n_embd": 64, "n_head": 4, "n_layer": 2, "n_inner": 96, "n_positions": 128,
      "type_vocab_size": 2, "activation_function": "swiglu", "prenorm": false, "qkv_proj_bias": false, "rotary_emb_base": 1000,
      "rotary_emb_fraction": 1.0, "layer_norm_epsilon": 1e-12})",
                                        "older");
  EXPECT_TRUE(structurally_equal(graph_of(older), graph_of(json::read_file(fixture("hf/nomic-bert/config_v4.json")))));
  json::Value wrong = older;
  wrong["prenorm"] = true;
  EXPECT_NE(error_of([&] { graph_of(wrong); }).find("prenorm: true is not supported"), std::string::npos);
}

}  // namespace
}  // namespace rlx
