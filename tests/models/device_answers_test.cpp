// Answers of models on a device with memory of its own, beside the CPU's: what is kept, cut, guessed, adapted and batched.
#include <gtest/gtest.h>

#include "backends/dummy_device.h"
#include "models/answers.h"
#include "models/tiny_language_model.h"
#include "rlx/batch.h"
#include "rlx/grammar.h"
#include "rlx/model.h"

namespace rlx::test {
namespace {

using Ids = std::vector<std::int32_t>;

class DeviceAnswers : public testing::Test {
 protected:
  static std::filesystem::path folder() {
    static const TinyLanguageModel words(tokenizer_of_words());
    return words.path();
  }
  /// The same answer from both.
  static void expect_same(const GenerateOptions& options, const ModelOptions& model = {}) {
    Model there = Model::open(folder(), there_, model), here = Model::open(folder(), here_, model);
    const Ids prompt = recorded_ids("prompt_ids");
    EXPECT_EQ(ids_of(there.generate(prompt, options)), ids_of(here.generate(prompt, options)));
    const Ids shorter(prompt.begin(), prompt.begin() + 5);  // goes on from what the cache holds
    EXPECT_EQ(ids_of(there.generate(shorter, options)), ids_of(here.generate(shorter, options)));
  }

  static inline const Session here_ = session_on(Device::cpu()), there_ = session_on(dummy_device());
};

TEST_F(DeviceAnswers, FollowAGrammar) { expect_same({.max_tokens = 20, .grammar = parse_grammar(R"(root ::= (" w" [1-9]){3})")}); }

TEST_F(DeviceAnswers, ArePenalizedAndReported) {
  expect_same({.max_tokens = 12, .sampling = {.seed = 2, .temperature = 0.8, .repetition_penalty = 1.2, .log_probabilities = 3}});
}

TEST_F(DeviceAnswers, AreGuessed) {
  expect_same({.max_tokens = 24, .guesses = 4});
  const auto draft = [&](const Session& session) { return std::make_shared<Model>(Model::open(folder(), session)); };
  expect_same({.max_tokens = 12, .guesses = 4, .draft = draft(there_)});
  expect_same({.max_tokens = 12, .guesses = 4, .draft = draft(here_)});
}

TEST_F(DeviceAnswers, GoOnWhereTheContextIsFull) {
  expect_same({.max_tokens = 40, .context_shift = true, .keep = 2}, {.context = 32, .chunk = 8});
}

TEST_F(DeviceAnswers, AreThoseOfAdaptedModels) {
  expect_same({.max_tokens = 12}, {.adapters = {{fixture("lora/llama"), 1}}, .cache = CacheType::f16});
}

TEST_F(DeviceAnswers, GoOnFromAFile) {
  const TemporaryFolder files;
  const Ids prompt = recorded_ids("prompt_ids"), greedy = recorded_ids("greedy_ids");
  Model first = Model::open(folder(), there_), second = Model::open(folder(), there_);
  first.append(prompt);
  first.save_cache(files / "cache");
  second.load_cache(files / "cache");
  const Ids next = ids_of(second.generate(prompt, {.max_tokens = 6}));
  EXPECT_EQ(next, Ids(greedy.begin() + std::ssize(prompt), greedy.begin() + std::ssize(prompt) + 6));
}

TEST_F(DeviceAnswers, AreThoseOfManyPromptsTogether) {
  const Ids prompt = recorded_ids("prompt_ids");
  const std::vector<Ids> prompts{prompt, Ids(prompt.begin(), prompt.begin() + 3), Ids{7, 9, 11}};
  for (const char* model : {"hf/llama", "hf/mamba", "hf/qwen3_next"}) {
    SCOPED_TRACE(model);
    Batch there = Batch::open(fixture(model), there_), here = Batch::open(fixture(model), here_);
    const auto seen = there.generate(prompts, {.max_tokens = 8}), wanted = here.generate(prompts, {.max_tokens = 8});
    for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(seen[i].ids, wanted[i].ids) << i;
  }
}

}  // namespace
}  // namespace rlx::test
