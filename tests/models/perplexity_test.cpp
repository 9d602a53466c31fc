#include "rlx/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "formats/tensors/safetensors.h"
#include "models/tiny_language_model.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;

/// Two texts of 24 tokens and the logits that another implementation computed for each of them in f64.
struct RecordedLogits {
  static constexpr std::size_t texts = 2, length = 24;
  std::vector<std::int32_t> ids;  // both texts, one behind the other
  Array logits;                   // (2, 24, vocab)

  static RecordedLogits read(std::string_view model) {
    const SafetensorsFile file = SafetensorsFile::open(fixture("hf") / model / "expected.safetensors");
    RecordedLogits result{.ids = {}, .logits = file.array("logits_f64")};
    const Array ids = file.array("input_ids");
    for (std::int64_t i = 0; i < ids.size(); ++i) result.ids.push_back(static_cast<std::int32_t>(ids.get_int(i)));
    return result;
  }

  /// -log(probability) of a token, from the logits before it.
  double nll(std::size_t text, std::size_t at) const {
    const auto vocab = static_cast<std::size_t>(logits.shape()[2]);
    const auto row = logits.values<double>().subspan((text * length + at - 1) * vocab, vocab);
    double sum = 0;
    for (double each : row) sum += std::exp(each);
    return std::log(sum) - row[static_cast<std::size_t>(ids[text * length + at])];
  }

  /// Mean and standard error of the last `judged` tokens of each text.
  std::pair<double, double> expected(std::size_t judged, std::size_t of_texts = texts) const {
    std::vector<double> all;
    double sum = 0, squares = 0;
    for (std::size_t text = 0; text < of_texts; ++text)
      for (std::size_t at = length - judged; at < length; ++at) all.push_back(nll(text, at)), sum += all.back();
    const double count = static_cast<double>(all.size()), mean = sum / count;
    for (double each : all) squares += (each - mean) * (each - mean);
    return {mean, std::sqrt(squares / (count - 1) / count)};
  }
};

class PerplexityOf : public testing::TestWithParam<const char*> {};

TEST_P(PerplexityOf, TheSecondHalvesIsThatOfTheRecordedLogits) {
  const RecordedLogits recorded = RecordedLogits::read(GetParam());
  const auto [mean, error] = recorded.expected(11);
  for (const std::int64_t chunk : {512, 7}) {  // wanted rows in one run, and in several
    // What was recorded was computed in f32, whatever the weights are stored in.
    Model model = Model::open(fixture("hf") / GetParam(), Session(), {.context = 24, .chunk = chunk, .cache = CacheType::f32});
    const Perplexity p = perplexity(model, recorded.ids, {.context = 24});
    EXPECT_EQ(p.windows, 2);
    EXPECT_EQ(p.tokens, 22);
    EXPECT_NEAR(p.nll, mean, 1e-5);
    EXPECT_NEAR(p.nll_error, error, 1e-5);
    EXPECT_NEAR(p.value(), std::exp(mean), 1e-5 * std::exp(mean));
    EXPECT_NEAR(p.error(), std::exp(mean) * error, 1e-4 * std::exp(mean));
  }
}
INSTANTIATE_TEST_SUITE_P(Models, PerplexityOf, testing::Values("llama", "gpt2", "qwen3_next"),
                         [](const auto& model) { return std::string(model.param); });

TEST(Perplexity, WithAStrideTheLastTokensOfEachWindowAreJudged) {
  const RecordedLogits recorded = RecordedLogits::read("llama");
  Model model = load(fixture("hf/llama"), {.context = 24, .cache = CacheType::f32});
  const std::span<const std::int32_t> ids(recorded.ids);
  const Perplexity one = perplexity(model, ids.first(24), {.context = 24, .stride = 5});
  EXPECT_EQ(one.tokens, 5);
  EXPECT_NEAR(one.nll, recorded.expected(5, 1).first, 1e-5);

  std::size_t windows = 0;
  const Perplexity all = perplexity(model, ids, {.context = 24, .stride = 10, .progress = [&](std::size_t done, std::size_t total) {
                                                   EXPECT_EQ(done, ++windows);
                                                   EXPECT_EQ(total, 3u);
                                                 }});
  EXPECT_EQ(windows, 3u);
  EXPECT_EQ(all.tokens, 30);
  double sum = 0;
  for (const std::size_t begin : {0, 10, 20}) sum += perplexity(model, ids.subspan(begin, 24), {.context = 24, .stride = 10}).nll;
  EXPECT_NEAR(all.nll, sum / 3, 1e-6);
}

TEST(Perplexity, TheFirstTokenStandsInFrontOfEveryWindow) {
  const RecordedLogits recorded = RecordedLogits::read("llama");
  Model model = load(fixture("hf/llama"), {.context = 24, .cache = CacheType::f32});
  std::vector<std::int32_t> first(recorded.ids.begin(), recorded.ids.begin() + 24);
  const std::int32_t begin = first[0];
  first[0] = (begin + 1) % 256;
  EXPECT_NEAR(perplexity(model, first, {.context = 24, .first_token = begin}).nll, recorded.expected(11, 1).first, 1e-5);
}

/// A file of the words of a text.
class PerplexityOfWords : public testing::Test {
 protected:
  std::string command(std::string_view options) const {
    return fmt::format("perplexity {} -f {} --cache-type f32 {}", model().string(), text().string(), options);
  }
  std::filesystem::path model() const { return model_.path(); }
  std::filesystem::path text() const { return folder_ / "text"; }

  const RecordedLogits recorded_ = RecordedLogits::read("llama");
  const test::TinyLanguageModel model_{test::tokenizer_of_words()};
  const test::TemporaryFolder folder_;
};

TEST_F(PerplexityOfWords, TheCommandPrintsThatOfAFile) {
  test::write_text(text(), test::words_of(recorded_.ids) + " w1 w2 w3\n");  // the last are no whole window
  const test::CommandResult result = test::run_rlx(command("--context 24 --json"));
  ASSERT_EQ(result.status, 0) << result.err;
  const json::Value line = json::Value::parse(result.out);
  const auto [mean, error] = recorded_.expected(11);
  EXPECT_NEAR(line.at("perplexity").get<double>(), std::exp(mean), 1e-5 * std::exp(mean));
  EXPECT_NEAR(line.at("nll_error").get<double>(), error, 1e-5);
  EXPECT_EQ(line.at("windows"), 2);
  EXPECT_EQ(line.at("tokens"), 22);
  const test::CommandResult people = test::run_rlx(command("--context 24"));
  double perplexity = 0;
  ASSERT_EQ(std::sscanf(people.out.c_str(), "perplexity %lf", &perplexity), 1) << people.out;
  EXPECT_NEAR(perplexity, std::exp(mean), 1e-5 * std::exp(mean));
}

TEST_F(PerplexityOfWords, AWindowIsNoLongerThanTheModelWasTrainedForUnlessAskedFor) {
  constexpr std::size_t trained = 256, usual = 512;
  std::vector<std::int32_t> ids;
  while (ids.size() < usual) ids.insert(ids.end(), recorded_.ids.begin(), recorded_.ids.end());
  test::write_text(text(), test::words_of(ids));
  const test::CommandResult small = test::run_rlx(command("--json")), asked = test::run_rlx(command("--json --context 300"));
  ASSERT_EQ(small.status, 0) << small.err;
  EXPECT_EQ(json::Value::parse(small.out).at("context"), trained);
  EXPECT_EQ(small.err.find("trained for"), std::string::npos) << small.err;
  EXPECT_EQ(json::Value::parse(asked.out).at("context"), 300);
  EXPECT_NE(asked.err.find("trained for"), std::string::npos) << asked.err;
}

TEST_F(PerplexityOfWords, TheTokenizersFirstTokenIsPutBeforeTheText) {
  const std::int32_t begin = recorded_.ids[0];
  const test::TinyLanguageModel with_begin(
      test::tokenizer_of_words(fmt::format(R"({{"type": "TemplateProcessing", "single": [{{"SpecialToken": {{"id": "w{0}", "type_id": 0}}}},
    {{"Sequence": {{"id": "A", "type_id": 0}}}}], "pair": [{{"Sequence": {{"id": "A", "type_id": 0}}}}, {{"Sequence": {{"id": "B", "type_id": 0}}}}],
    "special_tokens": {{"w{0}": {{"id": "w{0}", "ids": [{0}], "tokens": ["w{0}"]}}}}}})",
                                           begin)));
  Model model = load(with_begin.path(), {.context = 24, .cache = CacheType::f32});
  EXPECT_NEAR(perplexity(model, test::words_of(std::span(recorded_.ids).subspan(1, 23)), {.context = 24}).nll,
              recorded_.expected(11, 1).first, 1e-5);
}

TEST_F(PerplexityOfWords, WhatCannotBeJudgedIsAnError) {
  Model model = load(this->model(), {.context = 24});
  const auto error = [&](std::string_view words, PerplexityOptions options) {
    return error_of([&] { perplexity(model, words, options); });
  };
  EXPECT_EQ(error("", {.context = 24}), "perplexity: the text has no tokens");
  EXPECT_EQ(error("w1 w2 w3", {.context = 24}), "perplexity: the text has 3 tokens (needed: a window of 24 at least)");
  EXPECT_EQ(error("w1 w2 w3", {.context = 25}), "perplexity: windows of 25 tokens (allowed: 3..24, the model's context)");
  EXPECT_EQ(error("w1 w2 w3", {.context = 2}), "perplexity: windows of 2 tokens (allowed: 3..24, the model's context)");
  EXPECT_EQ(error("w1 w2 w3", {.context = 24, .stride = 24}),
            "perplexity: windows of 24 tokens every 24 tokens (allowed: below the length of a window)");
  const std::vector<std::int32_t> wrong(24, 256);
  EXPECT_EQ(error_of([&] { perplexity(model, wrong, {.context = 24}); }), "token 256 is not in the vocabulary (allowed: 0..255)");
  EXPECT_THROW(model.append(std::span(wrong).first(2), 3), Error);

  test::write_text(text(), "w1 w2");
  const test::CommandResult result = test::run_rlx(command("--context 24"));
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, fmt::format("rlx: {}: the text has 2 tokens (needed: a window of 24 at least)\n", text().string()));
  EXPECT_EQ(result.out, "");
  const std::string encoder = test::fixture("hf/bert").string();
  EXPECT_EQ(test::run_rlx(fmt::format("perplexity {} -f {}", encoder, text().string())).err,
            fmt::format("rlx: {}: this model is an encoder: it makes no text (rlx embed turns texts into vectors)\n", encoder));
}

}  // namespace
}  // namespace rlx
