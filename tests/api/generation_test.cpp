// Texts and tokens of language models, in files and batches, with what transformers recorded, by the public headers alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "fixture.h"
#include "rlx/batch.h"
#include "rlx/convert.h"
#include "rlx/error.h"
#include "rlx/io.h"
#include "rlx/model.h"
#include "rlx/model_file.h"
#include "rlx/perplexity.h"

namespace rlx::test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

/// What another implementation gives for the model in hf/llama, which has 256 tokens.
struct Recorded {
  NamedArrays arrays = load_safetensors(fixture("hf/llama/expected.safetensors")).arrays;
  Ids prompt = ids("prompt_ids"), all = ids("greedy_ids");  // the prompt, and with its continuation
  Ids answer{all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};

  Ids ids(const char* name) const {
    const Array& array = arrays.at(name);
    Ids out;
    for (std::int64_t i = 0; i < array.size(); ++i) out.push_back(static_cast<std::int32_t>(array.get_int(i)));
    return out;
  }

  /// The mean of -log(probability) of the last `judged` tokens of the first text.
  double nll(std::int64_t judged) const {
    const Array &logits = arrays.at("logits_f64"), &ids = arrays.at("input_ids");
    const std::int64_t length = ids.shape()[1], vocabulary = logits.shape()[2];
    double total = 0;
    for (std::int64_t at = length - judged; at < length; ++at) {
      const std::int64_t row = (at - 1) * vocabulary;
      double sum = 0;
      for (std::int64_t i = 0; i < vocabulary; ++i) sum += std::exp(logits.get_double(row + i));
      total += std::log(sum) - logits.get_double(row + ids.get_int(at));
    }
    return total / static_cast<double>(judged);
  }
};

std::string words_of(std::span<const std::int32_t> ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "w" : " w") + std::to_string(id);
  return text;
}

/// A copy of that model whose tokens are the words w0 to w255; it goes away with the object, and with it what is written beside it.
class FolderOfWords {
 public:
  FolderOfWords() : path_(fs::path(testing::TempDir()) / "rlx_api_generation") {
    fs::remove_all(path_);
    fs::create_directories(path_);
    for (const char* name : {"config.json", "model.safetensors"}) fs::copy_file(fixture("hf/llama") / name, path_ / name);
    std::string words;
    for (int i = 0; i < 256; ++i) words += (i > 0 ? ", \"w" : "\"w") + std::to_string(i) + "\": " + std::to_string(i);
    std::ofstream(path_ / "tokenizer.json") << R"({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
      "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false}, "model": {"type": "WordPiece", "unk_token": "w0",
      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {)"
                                            << words << "}}}";
  }
  ~FolderOfWords() { fs::remove_all(path_); }
  FolderOfWords(const FolderOfWords&) = delete;
  FolderOfWords& operator=(const FolderOfWords&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class Generating : public testing::Test {
 protected:
  const FolderOfWords folder_;
  const Recorded recorded_;
};

Ids tokens_of(Generation generation) {
  Ids ids;
  while (const auto id = generation.next_token()) ids.push_back(*id);
  EXPECT_TRUE(std::ranges::equal(generation.ids(), ids));
  return ids;
}

TEST_F(Generating, TextsAndTokensAreTheRecordedOnes) {
  Model model = Model::open(folder_.path(), Session(), {.cache = CacheType::f32});
  EXPECT_EQ(model.tokenize(words_of(recorded_.prompt)), recorded_.prompt);
  std::string text = words_of(recorded_.prompt);
  const auto most = static_cast<std::int64_t>(recorded_.answer.size());
  Generation generation = model.generate(text, {.max_tokens = most});
  for (const std::string& piece : generation) text += piece;
  EXPECT_EQ(text, words_of(recorded_.all));
  EXPECT_EQ(name_of(generation.finish_reason()), "max_tokens");
  EXPECT_EQ(tokens_of(model.generate(recorded_.prompt, {.max_tokens = most})), recorded_.answer);
  EXPECT_EQ(tokens_of(model.generate(recorded_.prompt, {.max_tokens = most, .guesses = 3})), recorded_.answer);
  EXPECT_EQ(model.text_of(recorded_.answer), words_of(recorded_.answer));
  EXPECT_THROW(model.generate(Ids{256}), Error);
}

TEST_F(Generating, ABatchGivesEachPromptItsRecordedAnswer) {
  Batch batch = Batch::open(folder_.path(), Session(), {.context = 64, .sequences = 2, .cache = CacheType::f32});
  const std::span<const std::int32_t> all(recorded_.all);
  const std::vector<std::size_t> lengths{8, 17, 13};
  std::vector<std::string> prompts;
  for (const std::size_t length : lengths) prompts.push_back(words_of(all.first(length)));
  const std::vector<Answer> answers = batch.generate(prompts, {.max_tokens = 6});
  ASSERT_EQ(answers.size(), lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_EQ(prompts[i] + answers[i].text, words_of(all.first(lengths[i] + 6)));
    EXPECT_TRUE(std::ranges::equal(answers[i].ids, all.subspan(lengths[i], 6)));
  }
}

TEST_F(Generating, QuantizedFilesAreModels) {
  const fs::path file = folder_.path() / "m.gguf";
  const auto most = static_cast<std::int64_t>(recorded_.answer.size());
  std::size_t done = 0;
  const QuantizeReport plain =
      quantize(fixture("hf/llama"), file, {.type = "F32", .progress = [&](std::size_t values, std::size_t) { done = values; }});
  EXPECT_EQ(static_cast<std::int64_t>(done), plain.values);
  EXPECT_EQ(plain.files, std::vector{file});
  EXPECT_EQ(tokens_of(load(file, {.cache = CacheType::f32}).generate(recorded_.prompt, {.max_tokens = most})), recorded_.answer);
  const QuantizeReport narrow = quantize(file, folder_.path() / "q.gguf", {.type = "Q8_0"});
  EXPECT_EQ(narrow.types.at(0).type, "Q8_0");
  EXPECT_LT(narrow.bytes, plain.bytes / 3);
  const ModelFile written = ModelFile::open(folder_.path() / "q.gguf");
  EXPECT_EQ(written.summary().architecture, "llama");
  EXPECT_EQ(written.summary().values, plain.values);
  EXPECT_EQ(load(folder_.path() / "q.gguf").append(recorded_.prompt).size(), 256u);
  EXPECT_THROW(quantize(file, file, {.type = "Q9"}), Error);
}

TEST_F(Generating, PerplexityIsThatOfTheRecordedLogits) {
  Model model = load(folder_.path(), {.context = 24, .cache = CacheType::f32});
  const Ids ids = recorded_.ids("input_ids");
  const Perplexity judged = perplexity(model, words_of(std::span(ids).first(24)), {.context = 24});
  EXPECT_EQ(judged.tokens, 11);
  EXPECT_NEAR(judged.nll, recorded_.nll(11), 1e-5);
  EXPECT_EQ(judged.value(), std::exp(judged.nll));
  EXPECT_THROW(perplexity(model, "w1 w2", {.context = 24}), Error);
}

}  // namespace
}  // namespace rlx::test
