#include "rlx/model.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>

#include "models/answers.h"
#include "models/conversion/quantize_model.h"
#include "models/tiny_language_model.h"

namespace rlx {
namespace {

using test::error_of, test::fixture, test::ids_of, test::text_of, test::words_of;

std::vector<std::int32_t> recorded(const char* name) { return test::recorded_ids(name); }

class ModelWithWords : public testing::Test {
 protected:
  static std::filesystem::path folder() {
    static const test::TinyLanguageModel model(test::tokenizer_of_words());
    return model.path();
  }

  Model model_ = load(folder());
};

TEST_F(ModelWithWords, TextIsContinuedAsRecorded) {
  const auto prompt = recorded("prompt_ids"), all = recorded("greedy_ids");
  Generation generation = model_.generate(words_of(prompt), {.max_tokens = 24});
  EXPECT_EQ(words_of(prompt) + text_of(generation), words_of(all));
  EXPECT_EQ(generation.finish_reason(), FinishReason::max_tokens);
  EXPECT_TRUE(std::ranges::equal(generation.ids(), std::span(all).subspan(prompt.size())));
}

TEST_F(ModelWithWords, AStopTextEndsTheAnswerAndIsNoPartOfIt) {
  const auto prompt = recorded("prompt_ids"), all = recorded("greedy_ids");
  const std::string whole = " " + words_of(std::span(all).subspan(prompt.size()));
  const std::string stop = " " + words_of(std::span(all).subspan(prompt.size() + 3, 2));
  const std::string begun = words_of(std::span(all).subspan(prompt.size() + 2, 3)) + " never";  // before it, and given away all the same
  Generation generation = model_.generate(words_of(prompt), {.max_tokens = 24, .stop = {"never", stop, begun, ""}});
  EXPECT_EQ(text_of(generation), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(generation.finish_reason(), FinishReason::stop);
}

TEST_F(ModelWithWords, TheBeginningOfAStopTextIsHeldBackUntilItIsNone) {
  const auto prompt = recorded("prompt_ids"), all = recorded("greedy_ids");
  const std::string stop = words_of(std::span(all).subspan(prompt.size() + 3, 2)) + " never";
  EXPECT_EQ(text_of(model_.generate(words_of(prompt), {.max_tokens = 24, .stop = {stop}})),
            " " + words_of(std::span(all).subspan(prompt.size())));
}

TEST_F(ModelWithWords, AConversationIsWrittenAsItsTemplateSays) {
  write_file(folder() / "chat_template.jinja",
             "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{% if add_generation_prompt %}w1{% endif %}");
  const ChatMessage messages[] = {{"user", "w2"}, {"assistant", "w3"}};
  const std::string prompt = load(folder()).chat_prompt(messages);
  EXPECT_EQ(load(folder()).chat_prompt(R"([{"role": "tool", "content": 7}])", {.add_generation_prompt = false}), "tool=7;");
  std::filesystem::remove(folder() / "chat_template.jinja");
  EXPECT_EQ(prompt, "user=w2;assistant=w3;w1");
  EXPECT_THROW(load(folder()).chat_prompt(messages), Error);
}

TEST_F(ModelWithWords, TheContextEndsAnAnswer) {
  Model small = load(folder(), {.context = 10});
  Generation generation = small.generate(recorded("prompt_ids"));
  while (generation.next_token()) {
  }
  // Eight of the prompt and two behind it are in the cache; the third is the answer to those.
  EXPECT_EQ(generation.ids().size(), 3u);
  EXPECT_EQ(generation.finish_reason(), FinishReason::context_full);
}

TEST_F(ModelWithWords, AnotherPromptSharesWhatTheCacheHolds) {
  const auto prompt = recorded("prompt_ids");
  std::vector<std::int32_t> other(prompt.begin(), prompt.begin() + 5);
  other.push_back(9);
  const auto answer = [](Model model, const std::vector<std::int32_t>& ids) { return ids_of(model.generate(ids, {.max_tokens = 6})); };
  const auto expected = answer(load(folder()), other);
  answer(model_, prompt);
  EXPECT_EQ(answer(model_, other), expected);
  EXPECT_EQ(answer(model_, other), expected);  // all of it is held
}

TEST_F(ModelWithWords, AChosenTokenIsTakenAndCheckedAndEndTokensEnd) {
  const auto prompt = recorded("prompt_ids");
  std::size_t seen = 0;
  Generation generation =
      model_.generate(prompt, {.max_tokens = 2, .choose = [&](std::span<const float>, std::span<const std::int32_t> ids) {
                                 seen = ids.size();
                                 return 7;
                               }});
  EXPECT_EQ(generation.next(), " w7");
  EXPECT_EQ(generation.next(), " w7");
  EXPECT_EQ(seen, prompt.size() + 1);
  Generation wrong = model_.generate(prompt, {.choose = [](auto, auto) { return 256; }});
  EXPECT_THROW(wrong.next_token(), Error);

  write_file(folder() / "generation_config.json", R"({"eos_token_id": 7})");
  Model ending = load(folder());
  std::filesystem::remove(folder() / "generation_config.json");
  Generation ended = ending.generate(prompt, {.choose = [](auto, auto) { return 7; }});
  EXPECT_EQ(ended.next_token(), std::nullopt);
  EXPECT_EQ(ended.finish_reason(), FinishReason::end_of_text);
}

TEST(Model, WithoutATokenizerTakesTokensOnly) {
  Model model = load(fixture("hf/llama"), {.context = 16});
  EXPECT_EQ(model.vocab_size(), 256);
  EXPECT_EQ(model.context(), 16);
  EXPECT_THROW(model.generate("text"), Error);
  EXPECT_EQ(model.append(recorded("prompt_ids")).size(), 256u);
  EXPECT_EQ(model.ids().size(), 8u);
  EXPECT_THROW(model.rewind(9), Error);
}

TEST(ModelFile, HasNoMoreTokensThanRowsOfItsEmbeddings) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "m.gguf";
  for (const char* name : {"gguf_models/llama.gguf", "gguf_models/t5.gguf"}) {
    const auto vocab_size_with = [&](std::size_t count) {
      ModelSource source = source_of(GgufFile::open(fixture(name)));
      std::vector<std::string> tokens;
      for (std::size_t id = 0; id < count; ++id) tokens.push_back(fmt::format("w{}", id));
      source.metadata.set("tokenizer.ggml.model", "llama");
      source.metadata.set_strings("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
      source.metadata.set_numbers<float>("tokenizer.ggml.scores", std::vector<float>(count));
      quantize_model(source, path, nullptr, {});
      const Model model = load(path, {.context = 16});
      EXPECT_EQ(model.text_of(std::vector<std::int32_t>{199}), "w199");
      return model.vocab_size();
    };
    EXPECT_EQ(vocab_size_with(200), 256) << "rows without a token";
    EXPECT_EQ(vocab_size_with(256), 256);
    EXPECT_EQ(error_of([&] { vocab_size_with(257); }),
              fmt::format("{}: tokenizer.ggml.tokens: 257 tokens, but 'token_embd.weight' has 256 rows (allowed: no more tokens than rows)",
                          path.string()));
  }
}

// Folders of models may have added tokens that these do not know, such as that of pictures in Gemma 3's model of texts.
TEST(ModelFolder, MayHaveTokensWithoutARowWhichNoPromptMayHave) {
  json::Value tokenizer = json::parse(test::tokenizer_of_words(), "tokenizer.json");
  tokenizer["added_tokens"] = {{{"id", 256},
                                {"content", "<picture>"},
                                {"special", true},
                                {"single_word", false},
                                {"lstrip", false},
                                {"rstrip", false},
                                {"normalized", false}}};
  const test::TinyLanguageModel folder(tokenizer.dump());
  Model model = load(folder.path());
  const auto expected = ids_of(model.generate("w1 w2", {.max_tokens = 3}));
  EXPECT_EQ(error_of([&] { model.generate("w1 <picture> w2"); }), "token 256 is not in the vocabulary (allowed: 0..255)");
  EXPECT_EQ(ids_of(model.generate("w1 w2", {.max_tokens = 3})), expected);
}

TEST(UsualPrecision, IsThatOfMostWeightsWhereTheCpuMultipliesIt) {
  const Precision narrow = Device::cpu().multiplies(bf16) ? Precision::bf16 : Precision::f32;
  EXPECT_EQ(usual_precision(fixture("hf/gemma3")), narrow);
  EXPECT_EQ(usual_precision(fixture("hf/llama")), Precision::f32);
  EXPECT_EQ(usual_precision(fixture("hf/qwen3")), Precision::f32) << "F16: no CPU's products";
  EXPECT_THROW(usual_precision(fixture("hf/none")), Error);
}

}  // namespace
}  // namespace rlx
