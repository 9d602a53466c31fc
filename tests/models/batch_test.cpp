// Many prompts answered at a time: as each of them is answered alone.
#include "rlx/batch.h"
#include "formats/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "models/tiny_language_model.h"

namespace rlx {
namespace {

using test::error_of;
using test::words_of;
using Ids = std::vector<std::int32_t>;

std::filesystem::path folder() {
  static const test::TinyLanguageModel model(test::tokenizer_of_words());
  return model.path();
}

/// Prompts that share their first `common` tokens.
std::vector<Ids> some_prompts(std::size_t count, std::size_t common) {
  std::vector<Ids> prompts;
  for (std::size_t i = 0; i < count; ++i) {
    Ids& prompt = prompts.emplace_back();
    for (std::size_t at = 0; at < common; ++at) prompt.push_back(static_cast<std::int32_t>((at * at * 7 + 3) % 190 + 5));
    for (std::size_t at = 0; at < 2 + 5 * i; ++at) prompt.push_back(static_cast<std::int32_t>((at * 31 + i * 17) % 190 + 5));
  }
  return prompts;
}

std::vector<Answer> alone(std::span<const Ids> prompts, const GenerateOptions& options, std::int64_t context) {
  Model model = load(folder(), {.context = context});
  std::vector<Answer> answers;
  for (const Ids& prompt : prompts) {
    model.rewind(0);
    Generation generation = model.generate(prompt, options);
    Answer answer;
    for (const std::string& piece : generation) answer.text += piece;
    answer.ids.assign(generation.ids().begin(), generation.ids().end());
    answer.finish_reason = generation.finish_reason();
    answers.push_back(std::move(answer));
  }
  return answers;
}

void expect_as_alone(Batch& batch, std::span<const Ids> prompts, const GenerateOptions& options, std::int64_t context) {
  const auto expected = alone(prompts, options, context), seen = batch.generate(prompts, options);
  ASSERT_EQ(seen.size(), prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(seen[i].ids, expected[i].ids) << i;
    EXPECT_EQ(seen[i].text, expected[i].text) << i;
    EXPECT_EQ(name_of(seen[i].finish_reason), name_of(expected[i].finish_reason)) << i;
  }
}

TEST(Batch, AnswersAreThoseOfEachPromptAlone) {
  Batch batch = Batch::open(folder(), Session(), {.context = 64, .sequences = 3});
  const auto prompts = some_prompts(7, 0);
  expect_as_alone(batch, prompts, {.max_tokens = 12}, 64);
  expect_as_alone(batch, prompts, {.max_tokens = 9, .sampling = {.seed = 5, .temperature = 1}}, 64);
  expect_as_alone(batch, prompts, {}, 64);  // until the context is full
  expect_as_alone(batch, std::span(prompts).first(1), {.max_tokens = 3}, 64);
  EXPECT_TRUE(batch.generate(std::span<const Ids>(), {}).empty());
}

TEST(Batch, WhatAllPromptsBeginWithIsShared) {
  Batch batch = Batch::open(folder(), Session(), {.context = 300, .chunk = 64, .sequences = 2});
  expect_as_alone(batch, some_prompts(4, 200), {.max_tokens = 10}, 300);
}

// Recurrent and hybrid models; these folders have no tokenizer.
TEST(Batch, AnswersOfRecurrentModelsAreThoseOfEachPromptAlone) {
  for (const char* name : {"hf_more/mamba2", "hf_more/jamba"}) {
    const auto path = test::fixture(name);
    Batch batch = Batch::open(path, Session(), {.context = 200, .chunk = 64, .sequences = 2, .cache = CacheType::f32});
    Model model = load(path, {.context = 200, .cache = CacheType::f32});
    auto prompts = some_prompts(4, 130);
    for (Ids& prompt : prompts)
      for (std::int32_t& id : prompt) id %= 120;
    const auto answers = batch.generate(prompts, {.max_tokens = 8});
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      model.rewind(0);
      Generation generation = model.generate(prompts[i], {.max_tokens = 8});
      while (generation.next_token()) {
      }
      EXPECT_EQ(answers[i].ids, Ids(generation.ids().begin(), generation.ids().end())) << name << i;
    }
  }
}

TEST(Batch, TextsStopWhereTheyAreToldTo) {
  const Ids prompt = test::recorded_ids("prompt_ids"), all = test::recorded_ids("greedy_ids");
  const std::string whole = " " + words_of(std::span(all).subspan(prompt.size()));
  const std::string stop = " " + words_of(std::span(all).subspan(prompt.size() + 3, 2));
  Batch batch = Batch::open(folder(), Session(), {.context = 64});
  const std::string text = words_of(prompt);
  const auto answers = batch.generate(std::vector<std::string>{text, text}, {.max_tokens = 24, .stop = {stop}});
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.text, whole.substr(0, whole.find(stop)));
    EXPECT_EQ(answer.finish_reason, FinishReason::stop);
  }
}

TEST(Batch, IsCancelledBetweenRuns) {
  Batch batch = Batch::open(folder(), Session(), {.context = 64, .sequences = 2});
  const auto prompts = some_prompts(3, 0);
  const auto whole = batch.generate(prompts, {.max_tokens = 12});
  int questions = 4;
  const auto answers = batch.generate(prompts, {.max_tokens = 12, .cancelled = [&] { return --questions < 0; }});
  for (const Answer& answer : answers) EXPECT_EQ(name_of(answer.finish_reason), "cancelled");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answers[i].ids, Ids(whole[i].ids.begin(), whole[i].ids.begin() + 4));
    EXPECT_EQ(answers[i].text, whole[i].text.substr(0, answers[i].text.size()));
  }
  EXPECT_TRUE(answers[2].ids.empty());
  expect_as_alone(batch, prompts, {.max_tokens = 12}, 64);
}

TEST(Batch, IsCancelledWhilePromptsAreRead) {
  Batch batch = Batch::open(folder(), Session(), {.context = 300, .chunk = 64, .sequences = 2});
  const auto prompts = some_prompts(4, 200);
  for (const std::size_t count : {4U, 1U}) {  // what all begin with, and a prompt by itself
    int questions = 1;
    const auto answers = batch.generate(std::span(prompts).first(count), {.max_tokens = 10, .cancelled = [&] { return --questions < 0; }});
    ASSERT_EQ(answers.size(), count);
    for (const Answer& answer : answers) {
      EXPECT_EQ(name_of(answer.finish_reason), "cancelled");
      EXPECT_TRUE(answer.ids.empty());
    }
  }
  expect_as_alone(batch, prompts, {.max_tokens = 10}, 300);
}

TEST(Batch, WhatItCannotDoIsRefusedAndItGoesOn) {
  Batch batch = Batch::open(folder(), Session(), {.context = 16, .sequences = 2});
  const auto generate = [&](std::vector<Ids> prompts, const GenerateOptions& options) {
    return error_of([&] { batch.generate(prompts, options); });
  };
  EXPECT_EQ(generate({{1, 2}, {}}, {}), "batch: prompt 1 has 0 tokens (allowed: 1..16)");
  EXPECT_EQ(generate({Ids(17, 3)}, {}), "batch: prompt 0 has 17 tokens (allowed: 1..16)");
  EXPECT_NE(generate({{1, 999999}}, {}), "");
  const GenerateOptions thrower{.choose = [](auto, auto) -> std::int32_t { throw Error("no more"); }};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(generate({{1, 2}, {3}}, thrower), "no more");
  EXPECT_EQ(generate({{1}}, {.guesses = 2}),
            "batch: guesses, a context shift or a grammar (allowed: one answer at a time, by Model::generate)");
  expect_as_alone(batch, some_prompts(2, 0), {.max_tokens = 4}, 16);
  EXPECT_NE(error_of([] { Batch::open(folder(), Session(), {.sequences = 0}); }), "");
}

}  // namespace
}  // namespace rlx
