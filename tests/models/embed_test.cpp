#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "formats/json/json.h"
#include "formats/json/json_field.h"
#include "ir/reference.h"
#include "models/config/sentence_config.h"
#include "models/layers/pooling.h"
#include "models/logits.h"
#include "models/minilm.h"
#include "models/run/sentence_graph.h"
#include "models/tiny_sentence_model.h"
#include "models/weights/decoder_files.h"
#include "rlx/ops.h"
#include "rlx/similarity.h"

namespace rlx {
namespace {

using test::error_of;
using test::largest_difference;
using test::TinySentenceModel;

/// Two texts of three positions with two states each; the second text has one token of padding, whose states are large.
Array pooled(const std::vector<Pooling>& modes) {
  Graph graph;
  Value states = graph.input("states", {2, 3, 2}, f32);
  Value keep = graph.input("keep", {2, 3}, i32);
  graph.output("pooled", pool(states, keep, modes));
  const std::vector<float> values{1, 2, 3, 4, 5, 9, /**/ -1, -2, -3, 6, 1000, 1000};
  const std::vector<std::int32_t> mask{1, 1, 1, 1, 1, 0};
  return evaluate(graph, {{"states", Array::of<float>({2, 3, 2}, values)}, {"keep", Array::of<std::int32_t>({2, 3}, mask)}})[0];
}

void expect_pooled(const std::vector<Pooling>& modes, const std::vector<float>& expected) {
  const Array result = pooled(modes);
  EXPECT_LE(largest_difference(result.values<float>(), expected), 1e-6);  // a few roundings of values below 10
}

TEST(Pooling, EachModeLeavesPaddingOut) {
  expect_pooled({Pooling::cls}, {1, 2, -1, -2});
  expect_pooled({Pooling::max}, {5, 9, -1, 6});
  expect_pooled({Pooling::mean}, {3, 5, -2, 2});
  const auto root3 = static_cast<float>(std::sqrt(3)), root2 = static_cast<float>(std::sqrt(2));
  expect_pooled({Pooling::mean_sqrt_len}, {9 / root3, 15 / root3, -4 / root2, 4 / root2});
  expect_pooled({Pooling::weighted_mean}, {22.F / 6, 37.F / 6, -7.F / 3, 10.F / 3});
  expect_pooled({Pooling::last_token}, {5, 9, -3, 6});
}

TEST(Pooling, SeveralModesStandSideBySide) { expect_pooled({Pooling::cls, Pooling::mean}, {1, 2, 3, 5, -1, -2, -2, 2}); }

TEST(Pooling, ConfigsOfBothSpellingsAreRead) {
  auto modes_of = [](const char* text) {
    const json::Value value = json::parse(text, "config");
    return read_pooling(JsonField(value, "config"), 64);
  };
  EXPECT_EQ(modes_of(R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})"), (std::vector{Pooling::cls, Pooling::mean}));
  EXPECT_EQ(modes_of(R"({"pooling_mode": "lasttoken", "embedding_dimension": 64})"), std::vector{Pooling::last_token});
  EXPECT_EQ(modes_of(R"({"pooling_mode": ["max", "weightedmean"]})"), (std::vector{Pooling::max, Pooling::weighted_mean}));
  for (const char* wrong : {"{}", "[]", R"({"pooling_mode": "median"})", R"({"pooling_mode": 3})", R"({"pooling_mode_cls_token": 1})",
                            R"({"pooling_mode_cls_token": true, "word_embedding_dimension": 32})"}) {
    EXPECT_NE(error_of([&] { modes_of(wrong); }).find("config: "), std::string::npos) << wrong;
  }
}

TEST(SentenceEncoder, ABatchGivesWhatEachTextGivesAlone) {
  const TinySentenceModel model;
  const auto encoder = SentenceEncoder::open(model.path(), Session(), {.batch_size = 3});
  const std::vector<std::string> texts{"a cat", "", "dogs ran a cat sat", "A DOG sat", "unknown words", "a cat"};
  std::vector<std::size_t> steps;
  const auto together = encoder.encode(texts, [&](std::size_t done, std::size_t total) {
    steps.push_back(done);
    EXPECT_EQ(total, 6u);
  });
  EXPECT_EQ(steps, (std::vector<std::size_t>{3, 6}));
  EXPECT_EQ(together[2].ids, (std::vector<std::int32_t>{2, 6, 9, 8, 4, 5, 7, 3}));
  EXPECT_EQ(together[1].ids, (std::vector<std::int32_t>{2, 3}));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone = encoder.encode(std::span(texts).subspan(i, 1))[0];
    EXPECT_EQ(alone.ids, together[i].ids);
    EXPECT_EQ(alone.values, together[i].values) << texts[i];
    EXPECT_NEAR(cosine(alone.values, alone.values), 1, 1e-12);
    EXPECT_NEAR(std::inner_product(alone.values.begin(), alone.values.end(), alone.values.begin(), 0.0), 1, 1e-5);
  }
}

TEST(SentenceEncoder, CompiledEmbeddingsMatchTheReference) {
  const TinySentenceModel model;
  const DecoderFiles files = std::get<DecoderFiles>(open_text_encoder(model.path()));
  const auto config = SentenceModelConfig::read(model.path(), files.config);
  const Graph graph = sentence_graph(config, 2);
  std::map<std::string, Array> values = files.weights(graph, 1);
  const auto feed = [&](const char* name, std::vector<std::int64_t> shape, std::vector<std::int32_t> numbers) {
    values[name] = Array::of<std::int32_t>(std::move(shape), numbers);
  };
  feed("input_ids", {7}, {2, 5, 3, 2, 4, 5, 3});
  feed("token_type_ids", {7}, {0, 0, 0, 0, 0, 0, 0});
  feed("text_begins", {7}, {0, 0, 0, 3, 3, 3, 3});
  feed("text_ends", {7}, {2, 2, 2, 3, 3, 3, 3});
  feed("first_tokens", {2}, {3, 0});
  feed("attention_mask", {2, 4}, {1, 1, 1, 1, 1, 1, 1, 0});
  const Array expected = evaluate(graph, values)[0];
  const auto encoder = SentenceEncoder::open(model.path(), Session());
  const auto both = encoder.encode(std::vector<std::string>{"a cat", "cat"});
  const std::size_t width = both[0].values.size();
  for (const std::size_t text : {0U, 1U})
    EXPECT_LE(largest_difference(both[text].values, expected.values<float>().subspan(text * width, width)), 2e-6);
}

TEST(SentenceEncoder, NewLengthsAndBatchesCompileNothing) {
  const TinySentenceModel model;
  const Session session;
  const auto encoder = SentenceEncoder::open(model.path(), session, {.batch_size = 4});
  const auto before = session.counters();
  for (std::string text = "a"; text.size() < 30; text += " cat") encoder.encode(std::vector<std::string>(text.size() % 5 + 1, text));
  EXPECT_EQ(session.counters().kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(session.counters().kernels_from_disk, before.kernels_from_disk);
}

/// What attention reads of a text's keys and values, for each of its tokens, would be many times what is computed.
TEST(SentenceEncoder, RowsOfATextAreNotStoredForEachOfItsTokens) {
  constexpr std::int64_t texts = 32, length = 40, hidden = 64;
  for (const char* weights : {"hf/bert", "hf/nomic-bert"}) {  // whose keys are turned behind their product
    for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
      const TinySentenceModel model;
      for (const char* name : {"config.json", "model.safetensors"})
        std::filesystem::copy_file(test::fixture(weights) / name, model / name, std::filesystem::copy_options::overwrite_existing);
      model.write("sentence_bert_config.json", R"({"max_seq_length": 40})");
      const Session session(Device::cpu(), {.precision = precision});
      const auto encoder = SentenceEncoder::open(model.path(), session, {.batch_size = texts});
      EXPECT_LT(encoder.executable().arena_bytes(), texts * length * length * hidden * 2) << weights << " " << static_cast<int>(precision);
    }
  }
}

TEST(SentenceEncoder, LongTextsAreCutToTheModelsLength) {
  const TinySentenceModel model;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "cat ";
  const auto embedding = SentenceEncoder::open(model.path(), Session()).encode(std::vector<std::string>{text})[0];
  EXPECT_EQ(embedding.ids.size(), 16u);
  EXPECT_EQ(embedding.ids.back(), 3);
}

TEST(SentenceEncoder, NothingToEncodeGivesNothing) {
  const TinySentenceModel model;
  EXPECT_TRUE(SentenceEncoder::open(model.path(), Session()).encode({}).empty());
}

TEST(SentenceEncoder, FilesThatDoNotFitAreNamed) {
  const std::vector<std::array<std::string, 3>> cases{
      {"modules.json", "[]", "modules.json: no module pools the tokens"},
      {"modules.json", "{}", "modules.json: expected an array"},
      {"modules.json", R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Dense", "path": "1"}])",
       "'Dense' is not supported as module 1"},
      {"modules.json", R"([{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "../x"}])", "outside the model's folder"},
      {"1_Pooling/config.json", "{}", "no pooling mode is set"},
      {"sentence_bert_config.json", R"({"max_seq_length": 0})", "max_seq_length: expected an integer"},
      {"sentence_bert_config.json", R"({"do_lower_case": true})", "do_lower_case"},
      {"config.json", R"({"model_type": "mpnet"})", "'mpnet' is not supported (supported: arcee, bert, camembert, "},
      {"config.json", R"({"model_type": "bert"})", "is missing"},
      {"tokenizer.json", "{}", "tokenizer.json"},
      {"model.safetensors", "", "model.safetensors"},
      {"config_sentence_transformers.json", R"({"default_prompt_name": "query", "prompts": {}})", "the field 'query' is missing"},
  };
  for (const auto& [file, text, message] : cases) {
    const TinySentenceModel model;
    model.write(file, text);
    EXPECT_NE(error_of([&] { SentenceEncoder::open(model.path(), Session()); }).find(message), std::string::npos) << file << " " << text;
  }
}

TEST(SentenceEncoder, ATokenBeyondTheVocabularyIsAnError) {
  const TinySentenceModel model;
  std::string tokenizer = test::read_text(model / "tokenizer.json");
  const std::string token = R"("cat": 5)";
  tokenizer.replace(tokenizer.find(token), token.size(), R"("cat": 256)");
  model.write("tokenizer.json", tokenizer);
  const auto encoder = SentenceEncoder::open(model.path(), Session());
  EXPECT_NE(error_of([&] { encoder.encode(std::vector<std::string>{"cat"}); }).find("token 256, but the model's vocab_size is 256"),
            std::string::npos);
}

TEST(SentenceEncoder, TheDefaultPromptIsPutBeforeEveryText) {
  const TinySentenceModel model;
  model.write("config_sentence_transformers.json", R"({"default_prompt_name": "q", "prompts": {"q": "a dog "}})");
  const auto encoder = SentenceEncoder::open(model.path(), Session());
  EXPECT_EQ(encoder.encode(std::vector<std::string>{"ran"})[0].ids, (std::vector<std::int32_t>{2, 4, 6, 8, 3}));
}

TEST(Similarity, PairsAreTheNearestOfEachText) {
  const std::vector<Embedding> embeddings{{{}, {1, 0}}, {{}, {0, 2}}, {{}, {3, 0.5F}}, {{}, {0.5F, 4}}};
  const Array matrix = similarity_matrix(embeddings);
  EXPECT_EQ(matrix.get_double(0), 1);
  EXPECT_EQ(matrix.get_double(1), 0);
  EXPECT_EQ(matrix.get_double(4), 0);
  const auto pairs = nearest_pairs(matrix);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].first, 1u);  // (0, 2) and (0.5, 4) lie closer than (1, 0) and (3, 0.5)
  EXPECT_EQ(pairs[0].second, 3u);
  EXPECT_EQ(pairs[1].first, 0u);
  EXPECT_EQ(pairs[1].second, 2u);
  EXPECT_TRUE(nearest_pairs(similarity_matrix({})).empty());
}

TEST(Similarity, WhatDoesNotFitIsAnError) {
  const std::vector<Embedding> embeddings{{{}, {1, 0}}, {{}, {0, 2, 3}}};
  EXPECT_EQ(error_of([&] { similarity_matrix(embeddings); }), "the cosine of vectors of 2 and 3 values");
  EXPECT_EQ(error_of([&] { embedding_matrix(embeddings, 2); }), "an embedding has 3 values (needed: 2)");
  EXPECT_NE(error_of([&] { nearest_pairs(Array(f32, {2, 3})); }).find("one row and one column a text"), std::string::npos);
}

TEST(Similarity, AMatrixHasOneRowForEachEmbedding) {
  const std::vector<Embedding> embeddings{{{}, {1, 0}}, {{}, {0, 2}}};
  EXPECT_EQ(embedding_matrix(embeddings, 2), Array::of<float>({2, 2}, std::vector<float>{1, 0, 0, 2}));
  EXPECT_EQ(embedding_matrix({}, 2).shape(), (std::vector<std::int64_t>{0, 2}));
}

/// The real model, where the environment says where it is; `make demo` fetches it.
TEST(MiniLm, MatchesRecordedIdsAndEmbeddings) {
  const char* folder = std::getenv("RLX_MINILM");
  if (folder == nullptr) GTEST_SKIP() << test::without_minilm;
  const json::Value recorded = json::read_file(test::fixture("minilm/expected.json"));
  std::vector<std::string> texts;
  for (const json::Value& row : recorded.at("rows")) texts.push_back(row.at("text").get<std::string>());
  const auto embeddings = SentenceEncoder::open(folder, Session()).encode(texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const json::Value& row = recorded.at("rows").at(i);
    const auto expected = row.at("embedding").get<std::vector<float>>();
    EXPECT_EQ(embeddings[i].ids, row.at("ids").get<std::vector<std::int32_t>>()) << texts[i];
    EXPECT_GE(cosine(embeddings[i].values, expected), 0.999999) << texts[i];
    EXPECT_LE(largest_difference(embeddings[i].values, expected), 2e-6) << texts[i];
  }
}

/// Embeddings of texts in a precision, in batches of `batch_size`.
std::vector<Embedding> embedded(const std::filesystem::path& folder, const std::vector<std::string>& texts, SessionOptions options,
                                int threads, std::int64_t batch_size) {
  options.threads = threads;
  return SentenceEncoder::open(folder, Session(Device::cpu(), options), {.batch_size = batch_size}).encode(texts);
}

SessionOptions options_of(Precision precision, std::optional<Calibration> calibration = std::nullopt) {
  SessionOptions options;
  options.precision = precision;
  options.calibration = std::move(calibration);
  return options;
}

/// `least`: the cosine to f32 that the policy promises.
void expect_close_to_f32(const std::filesystem::path& folder, const std::vector<std::string>& texts, const SessionOptions& options,
                         double least) {
  const auto wide = embedded(folder, texts, {}, 2, 8), narrow = embedded(folder, texts, options, 2, 8);
  const auto one_thread = embedded(folder, texts, options, 1, 8), alone = embedded(folder, texts, options, 2, 1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_GE(cosine(narrow[i].values, wide[i].values), least) << texts[i];
    EXPECT_EQ(narrow[i].values, one_thread[i].values) << texts[i];
    EXPECT_EQ(narrow[i].values, alone[i].values) << texts[i];
  }
}

TEST(Precision, EmbeddingsStayCloseToThoseInF32) {
  const TinySentenceModel model;
  const std::vector<std::string> texts{"a cat", "dogs ran a cat sat", "A DOG sat", "unknown words", "cat cat cat cat"};
  expect_close_to_f32(model.path(), texts, options_of(Precision::bf16), 0.9995);
  expect_close_to_f32(model.path(), texts, options_of(Precision::f16), 0.9999);
  expect_close_to_f32(model.path(), texts, options_of(Precision::int8), 0.995);
  const Calibration calibration = SentenceEncoder::calibrate(model.path(), Session(), texts);
  expect_close_to_f32(model.path(), texts, options_of(Precision::int8, calibration), 0.995);
}

TEST(MiniLm, EmbeddingsInNarrowPrecisionsStayCloseToThoseInF32) {
  const char* folder = std::getenv("RLX_MINILM");
  if (folder == nullptr) GTEST_SKIP() << test::without_minilm;
  const json::Value recorded = json::read_file(test::fixture("minilm/expected.json"));
  std::vector<std::string> texts;
  for (const json::Value& row : recorded.at("rows")) texts.push_back(row.at("text").get<std::string>());
  expect_close_to_f32(folder, texts, options_of(Precision::bf16), 0.9995);
  expect_close_to_f32(folder, texts, options_of(Precision::f16), 0.9999);
  // A text without words is two tokens whose activations have outliers and nothing to average: 0.9925 where the others are above 0.995.
  std::erase(texts, "");
  expect_close_to_f32(folder, texts, options_of(Precision::int8), 0.995);
  expect_close_to_f32(folder, {"", ""}, options_of(Precision::int8), 0.99);
}

/// Sentences of several kinds, none of them one of the recorded texts.
const std::vector<std::string> calibration_texts{
    "The committee will meet on Thursday to discuss next year's budget.",
    "How do I reset the password of my account?",
    "A small dog runs along the beach at sunset.",
    "The patient was treated with 20 mg of the drug twice a day for two weeks.",
    "def parse(line): return [int(x) for x in line.split(',')]",
    "Prices rose by 3.4% in March, the fastest rate since 1992.",
    "She said she would rather walk home than wait for the next bus in the rain.",
    "Photosynthesis converts light energy into chemical energy that is stored in sugars.",
    "Terrible service, cold food, and nobody apologised. We will not come back!",
    "ok",
    "",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "https://example.com/index.html?id=42&lang=en",
    "In 1969 two people walked on the moon while a third stayed in orbit; six hundred million watched them on television, most of them in "
    "black and white, and many remember to this day where they were.",
};

TEST(MiniLm, CalibratedInt8StaysCloseToF32) {
  const char* folder = std::getenv("RLX_MINILM");
  if (folder == nullptr) GTEST_SKIP() << test::without_minilm;
  const json::Value recorded = json::read_file(test::fixture("minilm/expected.json"));
  std::vector<std::string> texts;
  for (const json::Value& row : recorded.at("rows")) texts.push_back(row.at("text").get<std::string>());
  const Calibration calibration = SentenceEncoder::calibrate(folder, Session(), calibration_texts);
  const auto is_repeated = [](const std::string& text) { return text.starts_with("word word"); };
  std::vector<std::string> repeated;
  std::copy_if(texts.begin(), texts.end(), std::back_inserter(repeated), is_repeated);
  std::erase_if(texts, is_repeated);
  // All rows share a scale, also those of small numbers, which have one of their own when it is found at run time: 0.985 where those reach
  // 0.995. Most texts are above 0.99.
  expect_close_to_f32(folder, texts, options_of(Precision::int8, calibration), 0.985);
  // No sample is like a word over and over, whose largest activations, beyond all that were seen, count as the end of the range.
  ASSERT_EQ(repeated.size(), 1U);
  expect_close_to_f32(folder, repeated, options_of(Precision::int8, calibration), 0.85);
}

}  // namespace
}  // namespace rlx
