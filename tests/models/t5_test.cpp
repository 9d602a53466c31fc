// T5: an encoder reads a prompt, a decoder answers it token by token; against what another implementation answered.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "formats/json/json.h"
#include "message.h"
#include "models/answers.h"
#include "models/conversion/folder_source.h"
#include "models/conversion/folder_writer.h"
#include "models/conversion/quantize_model.h"
#include "models/tiny_language_model.h"
#include "rlx/batch.h"
#include "rlx/io.h"
#include "rlx/model.h"
#include "rlx/verify.h"

namespace rlx {
namespace t5_test {

using test::error_of, test::fixture, test::ids_of, test::open_small, test::text_of, test::TemporaryFolder;
using Ids = std::vector<std::int32_t>;

struct RecordedAnswer {
  Ids prompt, answer;
};

/// Prompts of unlike lengths.
std::vector<RecordedAnswer> recorded(const std::string& name) {
  const json::Value file = json::read_file(fixture("t5/answers.json"));
  std::vector<RecordedAnswer> all;
  for (const json::Value& each : file.at(name)) all.push_back({each.at("prompt").get<Ids>(), each.at("answer").get<Ids>()});
  return all;
}

void convert_t5(const std::filesystem::path& folder, const std::filesystem::path& target, std::string_view type) {
  quantize_model(source_of_folder(folder), target, &find_type_mix(type), {});
}

/// A copy of the first model with a token for each word, and with changes of its config.
class T5OfWords {
 public:
  explicit T5OfWords(const json::Value& changes = json::Value::object()) {
    json::Value config = json::read_file(fixture("hf/t5/config.json"));
    config.update(changes);
    write_file(folder_ / "config.json", config.dump());
    write_file(folder_ / "tokenizer.json", test::tokenizer_of_words());
    std::filesystem::copy(fixture("hf/t5/model.safetensors"), folder_ / "model.safetensors");
  }
  std::filesystem::path path() const { return folder_ / ""; }

 private:
  TemporaryFolder folder_;
};

class T5Answers : public testing::TestWithParam<std::string> {};

TEST_P(T5Answers, AreTheRecordedOnes) {
  const TemporaryFolder folder;
  convert_t5(fixture("hf/" + GetParam()), folder / "f32.gguf", "F32");
  for (const auto& path : {fixture("hf/" + GetParam()), fixture("gguf_models/" + GetParam() + ".gguf"), folder / "f32.gguf"}) {
    Model model = open_small(path);
    for (const RecordedAnswer& each : recorded(GetParam()))
      EXPECT_EQ(ids_of(model.generate(each.prompt, {.max_tokens = 24})), each.answer) << path << ", " << each.prompt.size() << " tokens";
  }
}

TEST_P(T5Answers, OfOtherLengthsCompileNothing) {
  const std::vector<RecordedAnswer> all = recorded(GetParam());
  Model model = open_small(fixture("hf/" + GetParam()));
  ids_of(model.generate(all.front().prompt, {.max_tokens = 3}));
  const CompileCounters before = test::one_thread().counters();
  for (const RecordedAnswer& each : all) ids_of(model.generate(each.prompt, {.max_tokens = 3}));
  const CompileCounters after = test::one_thread().counters();
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(after.kernels_from_disk, before.kernels_from_disk);
  EXPECT_EQ(after.kernels_shared, before.kernels_shared);
}

TEST_P(T5Answers, AreTheSameWithGuesses) {
  Model model = open_small(fixture("hf/" + GetParam()));
  for (const RecordedAnswer& each : recorded(GetParam())) {
    Generation answer = model.generate(each.prompt, {.max_tokens = 24, .guesses = 4});
    EXPECT_EQ(ids_of(answer), each.answer);
    EXPECT_LE(answer.guesses().right, answer.guesses().tried);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, T5Answers, testing::Values("t5", "t5-gated"), [](const auto& each) {
  std::string name = each.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

/// The logits of the first token of an answer.
std::vector<float> first_logits(const std::filesystem::path& path, const Ids& prompt) {
  std::vector<float> seen;
  ids_of(open_small(path).generate(prompt, {.max_tokens = 1, .choose = [&](std::span<const float> logits, std::span<const std::int32_t>) {
                                              seen.assign(logits.begin(), logits.end());
                                              return 1;
                                            }}));
  return seen;
}

/// transformers 5 says of T5 1.1 that its head is tied, and by another field that it scales nothing: by 64^-0.5 = 1/8 here.
TEST(T5, AHeadThatAFileLacksIsItsEmbeddings) {
  const Ids prompt = recorded("t5")[2].prompt;
  std::vector<float> wanted = first_logits(fixture("hf/t5"), prompt);
  for (float& logit : wanted) logit *= 8;
  const T5OfWords unscaled(json::Value{{"scale_decoder_outputs", false}});
  EXPECT_EQ(first_logits(unscaled.path(), prompt), wanted);
  std::filesystem::remove(unscaled.path() / "tokenizer.json");  // such words have no form in GGUF files
  const TemporaryFolder folder;
  convert_t5(unscaled.path(), folder / "f32.gguf", "F32");
  const std::vector<float> converted = first_logits(folder / "f32.gguf", prompt);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(converted[i], wanted[i], 1e-5) << i;  // of up to 7
}

/// As of a T5EncoderModel, which gives its states alone.
TEST(T5, RecordingsOfTheEncoderAloneAreCompared) {
  const auto folder_of = [](const TemporaryFolder& folder, const std::function<bool(const std::string&)>& kept,
                            const NamedArrays& recorded) {
    NamedArrays weights = load_safetensors(fixture("hf/t5/model.safetensors")).arrays;
    std::erase_if(weights, [&](const auto& each) { return !kept(each.first); });
    save_safetensors(folder / "model.safetensors", weights);
    save_safetensors(folder / "expected.safetensors", recorded);
    std::filesystem::copy_file(fixture("hf/t5/config.json"), folder / "config.json");
  };
  const NamedArrays all = load_safetensors(fixture("hf/t5/expected.safetensors")).arrays;
  const NamedArrays states{{"input_ids", all.at("input_ids")},
                           {"attention_mask", all.at("attention_mask")},
                           {"last_hidden_state", all.at("encoder_last_hidden_state")},
                           {"last_hidden_state_f64", all.at("encoder_last_hidden_state_f64")}};
  const TemporaryFolder whole, encoder;
  folder_of(whole, [](const std::string&) { return true; }, states);
  folder_of(encoder, [](const std::string& name) { return name.starts_with("encoder.") || name.starts_with("shared"); }, states);
  for (const TemporaryFolder* folder : {&whole, &encoder}) {
    const auto results = verify_folder(folder->path(), Session());
    ASSERT_EQ(results.size(), 1u);
    EXPECT_TRUE(results[0].passed()) << results[0].difference << " > " << results[0].allowed;
  }
}

TEST(T5, AHeadOfItsOwnThatAFileLacksIsMissing) {
  const T5OfWords untied(json::Value{{"tie_word_embeddings", false}});
  EXPECT_NE(error_of([&] { open_small(untied.path()); }).find("lm_head.weight"), std::string::npos);
}

TEST(T5, PartsOfTheFeedForwardCountBesideItsName) {
  const Ids prompt = recorded("t5")[2].prompt;
  const T5OfWords part(json::Value{{"dense_act_fn", "silu"}}), name(json::Value{{"feed_forward_proj", "silu"}, {"dense_act_fn", nullptr}});
  const std::vector<float> seen = first_logits(part.path(), prompt);
  EXPECT_EQ(seen, first_logits(name.path(), prompt));
  EXPECT_NE(seen, first_logits(fixture("hf/t5"), prompt));
  const T5OfWords gated(json::Value{{"is_gated_act", true}});
  EXPECT_NE(error_of([&] { open_small(gated.path()); }).find("DenseReluDense.wi_0.weight"), std::string::npos);
}

double length_of(std::span<const float> numbers) {
  double squares = 0;
  for (const float x : numbers) squares += static_cast<double>(x) * x;
  return std::sqrt(squares);
}

TEST(QuantizedT5, LogitsMoveByTheRoundingOfWeightsAndInputs) {
  const RecordedAnswer each = recorded("t5").back();
  const TemporaryFolder folder;
  convert_t5(fixture("hf/t5"), folder / "q8.gguf", "Q8_0");
  convert_t5(fixture("hf/t5"), folder / "q4.gguf", "Q4_0");
  const std::vector<float> exact = first_logits(fixture("hf/t5"), each.prompt);
  const auto error_with = [&](const char* file) {
    std::vector<float> difference = first_logits(folder / file, each.prompt);
    for (std::size_t i = 0; i < exact.size(); ++i) difference[i] -= exact[i];
    return length_of(difference) / length_of(exact);
  };
  // A rounded number is off by some 1/127 / sqrt(12), or 1/8 / sqrt(12), of the largest of its 32, which is about twice the usual one;
  // errors of the four layers, of weights and inputs in six products each, add up as squares: sqrt(4 * 6 * 2) = 7.
  const double q8 = error_with("q8.gguf"), q4 = error_with("q4.gguf");
  EXPECT_GT(q8, 0);
  EXPECT_LE(q8, 7 * 2 / 127.0 / std::sqrt(12));
  EXPECT_GT(q4, q8);
  EXPECT_LE(q4, 7 * 2 / 8.0 / std::sqrt(12));
  EXPECT_EQ(ids_of(open_small(folder / "q4.gguf").generate(each.prompt, {.max_tokens = 24})).size(), 24u);
}

TEST(T5Text, IsATextOfItsOwn) {
  const T5OfWords words;
  const RecordedAnswer each = recorded("t5")[2];
  Generation answer = load(words.path()).generate(test::words_of(each.prompt), {.max_tokens = 24});
  EXPECT_EQ(text_of(answer), test::words_of(each.answer));
  EXPECT_EQ(answer.finish_reason(), FinishReason::max_tokens);
}

TEST(T5Text, EndsWhereItsTokensStopTextsAndGrammarsSaySo) {
  const RecordedAnswer each = recorded("t5").front();  // whose first tokens are 201 201 189 161
  const T5OfWords words(json::Value{{"eos_token_id", 189}});
  Model model = open_small(words.path());
  Generation ended = model.generate(each.prompt);
  EXPECT_EQ(text_of(ended), "w201 w201");
  EXPECT_EQ(ended.finish_reason(), FinishReason::end_of_text);
  Generation stopped = model.generate(each.prompt, {.stop = {"1 w2"}});
  EXPECT_EQ(text_of(stopped), "w20");
  EXPECT_EQ(stopped.finish_reason(), FinishReason::stop);
  Generation limited = model.generate(each.prompt, {.grammar = parse_grammar(R"(root ::= " w7" " w8")")});
  EXPECT_EQ(ids_of(limited), (Ids{7, 8}));
  EXPECT_EQ(limited.finish_reason(), FinishReason::end_of_text);
}

TEST(T5, AnswersOfOneModelTakeTurns) {
  Model model = open_small(fixture("hf/t5"));
  const std::vector<RecordedAnswer> both = recorded("t5");
  Generation one = model.generate(both[0].prompt, {.max_tokens = 8}), other = model.generate(both[1].prompt, {.max_tokens = 8});
  while (one.next_token() && other.next_token()) {
  }
  EXPECT_TRUE(std::ranges::equal(one.ids(), std::span(both[0].answer).first(one.ids().size())));
  EXPECT_TRUE(std::ranges::equal(other.ids(), std::span(both[1].answer).first(other.ids().size())));
}

TEST(T5Text, BeginsBehindTheTokenThatTheConfigNames) {
  const Ids prompt{3, 4};
  const auto start_in = [&](const std::filesystem::path& path) {
    Ids seen;
    ids_of(open_small(path).generate(prompt, {.max_tokens = 1, .choose = [&](auto, std::span<const std::int32_t> ids) {
                                                seen.assign(ids.begin(), ids.end());
                                                return 1;
                                              }}));
    return seen;
  };
  const T5OfWords named(json::Value{{"decoder_start_token_id", 5}}),
      padded(json::Value{{"decoder_start_token_id", nullptr}, {"pad_token_id", 6}});
  const TemporaryFolder folder;
  std::filesystem::remove(named.path() / "tokenizer.json");  // such words have no form in GGUF files
  convert_t5(named.path(), folder / "named.gguf", "F32");
  write_model_folder(GgufFile::open(folder / "named.gguf"), folder / "back", f32, {});
  EXPECT_EQ(start_in(named.path()), Ids{5});
  EXPECT_EQ(start_in(folder / "named.gguf"), Ids{5});
  EXPECT_EQ(start_in(folder / "back"), Ids{5});
  EXPECT_EQ(start_in(padded.path()), Ids{6});
  const T5OfWords wrong(json::Value{{"decoder_start_token_id", 256}});
  EXPECT_NE(error_of([&] { open_small(wrong.path()); }).find("config.json: decoder_start_token_id: "), std::string::npos);
}

TEST(T5Text, TheContextHoldsAsMuchOfThePromptAsOfTheAnswer) {
  Model model = open_small(fixture("hf/t5"), {.context = 8});
  EXPECT_EQ(model.context(), 8);
  Generation answer = model.generate(Ids(8, 3));
  EXPECT_EQ(ids_of(answer).size(), 8u);  // the token that begins it and seven of them are in the cache; the eighth is the answer to those
  EXPECT_EQ(answer.finish_reason(), FinishReason::context_full);
  EXPECT_EQ(error_of([&] { model.generate(Ids(9, 3)); }), "9 tokens are more than the context holds (allowed: up to 8)");
  EXPECT_EQ(error_of([&] { model.generate(Ids()); }), "there are no tokens to answer");
  EXPECT_EQ(error_of([&] { model.generate(Ids{256}); }), "token 256 is not in the vocabulary (allowed: 0..255)");
  EXPECT_EQ(open_small(fixture("hf/t5")).context(), 512);
}

TEST(T5, WhatNeedsATextToContinueIsRefused) {
  const auto path = fixture("hf/t5");
  Model model = open_small(path);
  EXPECT_FALSE(model.continues_texts());
  const Ids ids{1};
  const auto refused = [&](const char* what, auto call) {
    EXPECT_EQ(error_of(call),
              fmt::format("{}: a model with an encoder and a decoder reads a prompt and answers it (rlx run): {} is not for it",
                          path.string(), what));
  };
  refused("append", [&] { model.append(ids); });
  refused("rewind", [&] { model.rewind(0); });
  refused("a file of the cache", [&] { model.save_cache("cache"); });
  refused("a file of the cache", [&] { model.load_cache("cache"); });
  refused("context shift", [&] { model.generate(ids, {.context_shift = true}); });
  const auto llama = std::make_shared<Model>(open_small(fixture("hf/llama"), {.context = 16})),
             other = std::make_shared<Model>(open_small(path));
  refused("a draft model", [&] { model.generate(ids, {.guesses = 2, .draft = llama}); });
  refused("guessing", [&] { llama->generate(ids, {.guesses = 2, .draft = other}); });
  refused("an adapter", [&] { open_small(path, {.adapters = {{"adapter", 1}}}); });
  refused("this", [&] { Batch::open(path, test::one_thread()); });
  EXPECT_EQ(error_of([&] { open_small(path, {.cache = CacheType::q8}); }),
            "model: a cache of q8 (allowed for an encoder with a decoder: f32)");
}

}  // namespace t5_test
}  // namespace rlx
