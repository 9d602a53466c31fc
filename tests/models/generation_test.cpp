// What steers an answer: sampling options, grammars, log-probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "message.h"
#include "models/answers.h"
#include "models/logits.h"
#include "models/tiny_language_model.h"
#include "rlx/model.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx::test {
namespace {

class GenerationOfWords : public testing::Test {
 protected:
  static std::filesystem::path folder() {
    static const TinyLanguageModel words(tokenizer_of_words());
    return words.path();
  }
  /// Logits behind the tokens, computed from nothing.
  std::vector<float> logits_behind(const Ids& ids) {
    reference_.rewind(0);
    return reference_.append(ids);
  }

  const Ids prompt_ = recorded_ids("prompt_ids"), greedy_ = recorded_ids("greedy_ids");
  Model model_ = open_small(folder()), reference_ = open_small(folder());
};

TEST_F(GenerationOfWords, AGrammarLimitsWhatIsChosenAndEndsTheAnswer) {
  const auto grammar = parse_grammar(R"(root ::= (" w" [1-9]){3})");
  Generation generation = model_.generate(prompt_, {.max_tokens = 20, .grammar = grammar});
  const Ids answer = ids_of(generation);
  EXPECT_EQ(generation.finish_reason(), FinishReason::end_of_text);
  Ids all = prompt_, expected;
  for (int i = 0; i < 3; ++i) {
    const auto logits = logits_behind(all);
    expected.push_back(static_cast<std::int32_t>(std::max_element(logits.begin() + 1, logits.begin() + 10) - logits.begin()));
    all.push_back(expected.back());
  }
  EXPECT_EQ(answer, expected);
  EXPECT_EQ(model_.ids().size(), prompt_.size() + 2);  // what is complete runs no further
}

TEST_F(GenerationOfWords, TheCallersChoiceSeesWhatAGrammarForbids) {
  const auto grammar = parse_grammar(R"(root ::= " w7" " w8")");
  std::size_t allowed = 0;
  const auto choose = [&](std::span<const float> logits, std::span<const std::int32_t>) {
    allowed = static_cast<std::size_t>(std::count_if(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); }));
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  EXPECT_EQ(ids_of(model_.generate(prompt_, {.grammar = grammar, .choose = choose})), (Ids{7, 8}));
  EXPECT_EQ(allowed, 1u);
  Generation wrong = model_.generate(prompt_, {.grammar = grammar, .choose = [](auto, auto) { return 9; }});
  EXPECT_EQ(error_of([&] { wrong.next_token(); }), "grammar: token 9 (' w9') may not come next");
}

TEST_F(GenerationOfWords, LogProbabilitiesAreGivenForEachToken) {
  Generation generation = model_.generate(prompt_, {.max_tokens = 3, .sampling = {.temperature = 0, .log_probabilities = 2}});
  ids_of(generation);
  ASSERT_EQ(generation.log_probabilities().size(), 3u);
  Ids all = prompt_;
  const double rounding = 2 * f32_distance("hf/llama");
  for (std::size_t i = 0; i < 3; ++i) {
    const auto logits = logits_behind(all);
    double total = 0;
    for (float logit : logits) total += std::exp(static_cast<double>(logit));
    Ids order(logits.size());
    for (std::size_t id = 0; id < order.size(); ++id) order[id] = static_cast<std::int32_t>(id);
    std::sort(order.begin(), order.end(),
              [&](std::int32_t a, std::int32_t b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
    const auto& reported = generation.log_probabilities()[i];
    ASSERT_EQ(reported.size(), 3u);
    EXPECT_EQ((Ids{reported[0].id, reported[1].id, reported[2].id}), (Ids{generation.ids()[i], order[0], order[1]}));
    // Sums over a prompt run in another order than token by token, those of a logit and of all that it is compared with.
    for (const LogProbability& each : reported)
      EXPECT_NEAR(each.value, logits[static_cast<std::size_t>(each.id)] - std::log(total), rounding);
    all.push_back(generation.ids()[i]);
  }
  EXPECT_TRUE(model_.generate(prompt_).log_probabilities().empty());
}

TEST_F(GenerationOfWords, SamplingOptionsAreUsedAndChecked) {
  const SamplingOptions without_first{.temperature = 0, .logit_bias = {{greedy_[prompt_.size()], -INFINITY}}};
  auto logits = logits_behind(prompt_);
  logits[static_cast<std::size_t>(greedy_[prompt_.size()])] = -INFINITY;
  EXPECT_EQ(ids_of(model_.generate(prompt_, {.max_tokens = 1, .sampling = without_first})),
            Ids{static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin())});
  const auto drawn = [&](std::uint64_t seed) { return ids_of(model_.generate(prompt_, {.max_tokens = 12, .sampling = {.seed = seed}})); };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
  EXPECT_EQ(error_of([&] { model_.generate(prompt_, {.sampling = {.top_p = 1.5}}); }),
            "sampling: top_p is 1.5 (allowed: above 0, at most 1)");
}

TEST_F(GenerationOfWords, IsCancelledBetweenRunsAndTokens) {
  constexpr std::int64_t chunk = 3;
  Model chunks = open_small(folder(), {.chunk = chunk});
  const auto runs = (static_cast<int>(prompt_.size()) + chunk - 1) / chunk;
  const auto generate = [&](std::int64_t questions) {
    return chunks.generate(prompt_, {.max_tokens = 8, .cancelled = [questions]() mutable { return --questions < 0; }});
  };
  for (const std::int64_t run : {1, 0}) {  // the second reads what the first has not, and has nothing to read again
    Generation none = generate(run);
    EXPECT_EQ(none.next_token(), std::nullopt);
    EXPECT_EQ(none.finish_reason(), FinishReason::cancelled);
    EXPECT_EQ(chunks.ids().size(), static_cast<std::size_t>(chunk));
  }
  const Ids whole = ids_of(chunks.generate(prompt_, {.max_tokens = 8}));
  EXPECT_EQ(whole, ids_of(model_.generate(prompt_, {.max_tokens = 8})));
  chunks.rewind(0);
  Generation some = generate(runs + 3);
  EXPECT_EQ(ids_of(some), Ids(whole.begin(), whole.begin() + 3));
  EXPECT_EQ(some.finish_reason(), FinishReason::cancelled);
}

TEST_F(GenerationOfWords, AFullContextIsShiftedWhereAskedFor) {
  constexpr std::int64_t context = 16, keep = 3;
  Model small = open_small(folder(), {.context = context});
  Generation generation = small.generate(prompt_, {.max_tokens = 40, .context_shift = true, .keep = keep});
  const Ids answer = ids_of(generation);
  EXPECT_EQ(generation.finish_reason(), FinishReason::max_tokens);
  Ids seen = prompt_, expected;  // what the model is to see, each time read from the beginning
  while (expected.size() < 40) {
    const auto logits = logits_behind(seen);
    expected.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    if (seen.size() == context) seen.erase(seen.begin() + keep, seen.begin() + keep + (context - keep + 1) / 2);
    seen.push_back(expected.back());
  }
  EXPECT_EQ(answer, expected);
  EXPECT_EQ(error_of([&] { small.generate(prompt_, {.context_shift = true, .keep = 15}); }),
            "generate: 15 tokens are to be kept in a context of 16 (allowed: 0..14)");
}

TEST_F(GenerationOfWords, IsCancelledWhileAContextShiftReadsAgain) {
  constexpr std::size_t context = 16, keep = 3, chunk = 2;
  Model small = open_small(folder(), {.context = context, .chunk = chunk});
  GenerateOptions options{.max_tokens = 40, .context_shift = true, .keep = keep};
  const Ids whole = ids_of(small.generate(prompt_, options));
  bool was_full = false;
  int questions = 0;  // since then
  options.cancelled = [&] {
    was_full |= small.ids().size() == context;
    return was_full && small.ids().size() < context && ++questions == 2;
  };
  small.rewind(0);
  Generation some = small.generate(prompt_, options);
  EXPECT_EQ(ids_of(some), Ids(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(context - prompt_.size() + 1)));
  EXPECT_EQ(some.finish_reason(), FinishReason::cancelled);
  EXPECT_EQ(small.ids().size(), keep + chunk);
  EXPECT_EQ(ids_of(small.generate(prompt_, {.max_tokens = 40, .context_shift = true, .keep = keep})), whole);
}

TEST_F(GenerationOfWords, GuessesDoNotChangeTheAnswer) {
  Ids prompt = greedy_;  // in which something is repeated
  prompt.insert(prompt.end(), greedy_.begin(), greedy_.begin() + 20);
  const auto same = std::make_shared<Model>(open_small(folder())), other = std::make_shared<Model>(open_small(fixture("hf/llama-tied")));
  const auto grammar = parse_grammar(R"(root ::= (" w" [1-9])+)");
  const std::pair<const char*, GenerateOptions> cases[] = {
      {"greedy", {.max_tokens = 30}},
      {"sampled", {.max_tokens = 30, .sampling = {.seed = 5, .temperature = 0.4, .repetition_penalty = 1.1, .log_probabilities = 1}}},
      {"grammar", {.max_tokens = 30, .grammar = grammar}},
  };
  for (const auto& [name, options] : cases) {
    SCOPED_TRACE(name);
    const Ids expected = ids_of(model_.generate(prompt, options));
    for (const auto& draft : {std::shared_ptr<Model>(), same, other}) {
      GenerateOptions guessing = options;
      guessing.guesses = 5, guessing.draft = draft;
      Generation generation = model_.generate(prompt, guessing);
      EXPECT_EQ(ids_of(generation), expected);
      if (draft || std::string_view(name) == "greedy") {
        EXPECT_GT(generation.guesses().tried, 0);
      }
      EXPECT_EQ(generation.log_probabilities().size(), options.sampling.log_probabilities >= 0 ? 30u : 0u);
      if (draft == same && std::string_view(name) == "greedy") {
        EXPECT_EQ(generation.guesses().right, generation.guesses().tried);
      }
      Ids all = prompt;
      all.insert(all.end(), expected.begin(), expected.end());
      const auto held = model_.ids();  // nothing of the wrong guesses is left
      ASSERT_LE(held.size(), all.size());
      EXPECT_TRUE(std::equal(held.begin(), held.end(), all.begin()));
    }
  }
}

TEST_F(GenerationOfWords, GuessesFillTheContextToItsEnd) {
  const auto draft = std::make_shared<Model>(open_small(folder()));
  Model small = open_small(folder(), {.context = 16}), plain = open_small(folder(), {.context = 16});
  EXPECT_EQ(ids_of(small.generate(prompt_, {.guesses = 5, .draft = draft})), ids_of(plain.generate(prompt_)));
  EXPECT_EQ(ids_of(small.generate(prompt_, {.max_tokens = 30, .context_shift = true, .guesses = 5, .draft = draft})),
            ids_of(plain.generate(prompt_, {.max_tokens = 30, .context_shift = true})));
}

TEST_F(GenerationOfWords, AnswersOfOneModelTakeTurns) {
  const Ids others{9, 8, 7, 6, 5};
  const GenerateOptions shifted{.max_tokens = 40, .context_shift = true, .keep = 3};
  for (const auto& [context, options] :
       {std::pair(64, GenerateOptions{.max_tokens = 12}), {64, GenerateOptions{.max_tokens = 12, .guesses = 4}}, {16, shifted}}) {
    Model model = open_small(folder(), {.context = context});
    const Ids first = ids_of(model.generate(prompt_, options)), second = ids_of(model.generate(others, options));
    Generation one = model.generate(prompt_, options), other = model.generate(others, options);
    for (bool goes_on = true; goes_on;) {
      goes_on = one.next_token().has_value();
      goes_on = other.next_token().has_value() || goes_on;
      if (one.ids().size() % 4 == 3) model.rewind(0), model.append(others);
    }
    EXPECT_EQ(Ids(one.ids().begin(), one.ids().end()), first);
    EXPECT_EQ(Ids(other.ids().begin(), other.ids().end()), second);
  }
}

TEST_F(GenerationOfWords, WhatCannotGuessIsRefused) {
  EXPECT_EQ(error_of([&] { model_.generate(prompt_, {.guesses = 2, .draft = std::make_shared<Model>(model_)}); }),
            "generate: a model cannot guess for itself (open it a second time)");
  const TinyLanguageModel bytes(tokenizer_of_bytes());
  EXPECT_EQ(error_of([&] { model_.generate(prompt_, {.guesses = 2, .draft = std::make_shared<Model>(open_small(bytes.path()))}); }),
            fmt::format("generate: {}: this draft model has other tokens than {}", bytes.path().string(), folder().string()));
}

/// The words with another one in the place of one of them, and perhaps one more, which the embeddings have no row for.
std::string changed_words(std::int32_t id, const char* word, bool one_more) {
  json::Value tokenizer = json::parse(tokenizer_of_words(), "tokenizer.json");
  json::Value& words = tokenizer["model"]["vocab"];
  words.erase(fmt::format("w{}", id));
  words[word] = id;
  if (one_more) words["more"] = 256;
  return tokenizer.dump();
}

TEST_F(GenerationOfWords, ADraftModelHasTheSameTokensWhereBothHaveThem) {
  const auto guesses = [&](const std::string& tokenizer) {
    const TinyLanguageModel other(tokenizer);
    const auto draft = std::make_shared<Model>(open_small(other.path()));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(ids_of(model_.generate(prompt_, {.max_tokens = 6, .guesses = 2, .draft = draft})).size(), 6u);
  };
  guesses(changed_words(200, "w200", true));
  for (const std::int32_t id : {1, 255}) {
    const std::string error = error_of([&] { guesses(changed_words(id, "other", false)); });
    EXPECT_NE(error.find("this draft model has other tokens than"), std::string::npos) << id << ": " << error;
  }
}

class RecurrentGuesses : public testing::TestWithParam<const char*> {};

// Wrong guesses are taken out of states that hold all tokens at once; sampled answers make some of a draft's guesses right and others
// wrong.
TEST_P(RecurrentGuesses, DoNotChangeTheAnswer) {
  constexpr ModelOptions short_context{.context = 160};
  Model model = open_small(fixture(GetParam()), short_context);
  const auto same = std::make_shared<Model>(open_small(fixture(GetParam()), short_context)),
             other = std::make_shared<Model>(open_small(fixture("hf/llama"), short_context));
  Ids prompt;
  for (std::int32_t i = 0; i < 24; ++i) prompt.push_back((i % 9) * 13 + 5);
  for (const SamplingOptions& sampling : {SamplingOptions{.temperature = 0}, SamplingOptions{.seed = 5, .temperature = 0.6}}) {
    const GenerateOptions options{.max_tokens = 60, .sampling = sampling};
    const Ids expected = ids_of(model.generate(prompt, options));
    Guesses all;
    for (const auto& draft : {std::shared_ptr<Model>(), same, other}) {
      GenerateOptions guessing = options;
      guessing.guesses = 4, guessing.draft = draft;
      Generation generation = model.generate(prompt, guessing);
      EXPECT_EQ(ids_of(generation), expected);
      all.tried += generation.guesses().tried, all.right += generation.guesses().right;
      EXPECT_EQ(model.ids().size(), prompt.size() + expected.size() - 1);  // nothing of the wrong guesses is left
    }
    if (std::string_view(GetParam()) == "hf_more/mamba2") {
      EXPECT_EQ(all.tried, 0) << "chunks of its tokens round otherwise than single ones";
      continue;
    }
    EXPECT_GT(all.right, 0);
    EXPECT_LT(all.right, all.tried);
  }
}

// Longrope turns all keys anew behind 16 tokens here: those that run together would all be turned so.
TEST(LongRopeGuesses, DoNotChangeTheAnswer) {
  constexpr ModelOptions short_context{.context = 60};
  Model model = open_small(fixture("hf/phi3-longrope"), short_context);
  const auto same = std::make_shared<Model>(open_small(fixture("hf/phi3-longrope"), short_context));
  const Ids prompt{5, 18, 31, 5, 18, 31, 5};
  const Ids expected = ids_of(model.generate(prompt, {.max_tokens = 40}));
  EXPECT_EQ(ids_of(model.generate(prompt, {.max_tokens = 40, .guesses = 5, .draft = same})), expected);
}

INSTANTIATE_TEST_SUITE_P(Families, RecurrentGuesses,
                         testing::Values("hf/mamba", "hf/qwen3_next", "hf_more/mamba2", "hf_more/falcon_mamba", "hf_more/jamba",
                                         "hf_more/lfm2", "hf_more/qwen3_5"));

// Random weights, so that nothing but the mask makes JSON of it.
TEST(GenerationOfBytes, AnswersSatisfyTheirSchema) {
  const TinyLanguageModel bytes(tokenizer_of_bytes());
  Model model = open_small(bytes.path());
  const auto grammar = parse_json_schema(
      R"({"type": "object", "properties": {"kind": {"enum": ["ä", "b\n"]}, "on": {"type": "boolean"}}, "required": ["kind", "on"],
          "additionalProperties": false})");
  int ended = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Generation generation = model.generate("{}", {.max_tokens = 200, .sampling = {.seed = seed}, .grammar = grammar});
    std::string text;
    for (const std::string& piece : generation) text += piece;
    if (generation.finish_reason() == FinishReason::max_tokens) continue;  // white space, all the way
    ++ended;
    const json::Value value = json::parse(text, "answer");
    EXPECT_TRUE(value.at("kind") == "ä" || value.at("kind") == "b\n") << text;
    EXPECT_TRUE(value.at("on").is_boolean()) << text;
    EXPECT_EQ(value.size(), 2u) << text;
  }
  EXPECT_GE(ended, 3);
}

TEST(GrammarErrors, NameTheFileAndTheLine) {
  EXPECT_EQ(error_of([] { parse_grammar("root ::= \"a\"\nx = 1", "chess.gbnf"); }),
            "chess.gbnf: line 2, column 3: expected '::=', found '='");
  EXPECT_EQ(error_of([] { parse_json_schema("{", "person.json"); }).substr(0, 12), "person.json:");
  EXPECT_NE(error_of([] { parse_json_schema(R"({"if": {}, "type": "integer"})", "n.json"); }).find("'if'"), std::string::npos);
}

// The bytes of a text's tokens, one behind the other, are the text.
TEST(TokenBytes, OfATextAreTheText) {
  const std::string text = " Hello, w\xC3\xB6rld!  \xE4\xB8\x96\xE7\x95\x8C \xF0\x9F\x98\x80\n x";
  for (const char* name : {"bpe-gpt2", "bpe-llama2", "bpe-llama3"}) {
    const Tokenizer tokenizer = Tokenizer::open(fixture("tokenizers") / name / "tokenizer.json");
    std::string joined;
    for (std::int32_t id : tokenizer.encode_ids("a" + text, false)) joined += tokenizer.bytes_of(id);
    if (joined.starts_with(" a")) joined.erase(0, 1);  // a space that the tokenizer puts before a text
    EXPECT_EQ(joined, "a" + text) << name;
  }
}

}  // namespace
}  // namespace rlx::test
