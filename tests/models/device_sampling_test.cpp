// Tokens that are chosen on the device where the logits lie.
#include <gtest/gtest.h>

#include <limits>

#include "backends/dummy_device.h"
#include "models/answers.h"
#include "models/run/sampling/device_sampler.h"
#include "models/run/sampling/sampler.h"
#include "models/tiny_language_model.h"
#include "rlx/batch.h"
#include "rlx/model.h"

namespace rlx::test {
namespace {

using Ids = std::vector<std::int32_t>;

Model open_on(const Device& device) { return Model::open(fixture("hf/llama"), session_on(device)); }

const std::vector<SamplingOptions>& all_options() {
  static const std::vector<SamplingOptions> options{{.temperature = 0},
                                                    {.seed = 3},
                                                    {.seed = 4, .temperature = 0.7, .top_k = 5},
                                                    {.seed = 5, .temperature = 1.3, .top_p = 0.8},
                                                    {.seed = 6, .temperature = 0.9, .min_p = 0.05},
                                                    {.seed = 7, .temperature = 2, .top_k = 40, .top_p = 0.95, .min_p = 0.01}};
  return options;
}

TEST(DeviceSampling, AnswersAreThoseOfTheCpuAndOneIntegerCrossesForEachToken) {
  Model there = open_on(dummy_device()), here = open_on(Device::cpu());
  const Ids prompt = recorded_ids("prompt_ids");
  for (const SamplingOptions& sampling : all_options()) {
    SCOPED_TRACE(fmt::format("seed {}", sampling.seed));
    Generation mine = there.generate(prompt, {.max_tokens = 24, .sampling = sampling});
    Generation wanted = here.generate(prompt, {.max_tokens = 24, .sampling = sampling});
    const DummyMemory& memory = *dummy_backend().memory();
    mine.next_token(), wanted.next_token();
    const std::int64_t up = memory.uploaded, down = memory.downloaded;
    std::int64_t tokens = 0;
    while (mine.next_token()) ++tokens;
    while (wanted.next_token()) {
    }
    EXPECT_EQ(Ids(mine.ids().begin(), mine.ids().end()), Ids(wanted.ids().begin(), wanted.ids().end()));
    EXPECT_EQ(memory.downloaded - down, 4 * tokens);
    EXPECT_LE(memory.uploaded - up, 64 * tokens);
  }
}

TEST(DeviceSampling, OfABatchToo) {
  Ids prompt = recorded_ids("prompt_ids"), shorter(prompt.begin(), prompt.begin() + 3), longer = prompt;
  longer.insert(longer.end(), prompt.begin(), prompt.end());
  const std::vector<Ids> prompts{prompt, shorter, longer};
  const BatchOptions two{.context = 64, .chunk = 16, .sequences = 2};
  const auto path = fixture("hf/llama");
  Batch there = Batch::open(path, session_on(dummy_device()), two), here = Batch::open(path, session_on(Device::cpu()), two);
  for (const SamplingOptions& sampling : all_options()) {
    SCOPED_TRACE(fmt::format("seed {}", sampling.seed));
    const std::int64_t down = dummy_backend().memory()->downloaded;
    const auto mine = there.generate(prompts, {.max_tokens = 12, .sampling = sampling});
    const std::int64_t crossed = dummy_backend().memory()->downloaded - down;
    const auto wanted = here.generate(prompts, {.max_tokens = 12, .sampling = sampling});
    std::int64_t chosen = 0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(mine[i].ids, wanted[i].ids) << i;
      chosen += static_cast<std::int64_t>(mine[i].ids.size()) + (mine[i].finish_reason == FinishReason::end_of_text ? 1 : 0);
    }
    EXPECT_EQ(crossed, 4 * chosen);
  }
}

TEST(DeviceSampling, ChoosesAsTheHostDoes) {
  constexpr std::int64_t vocabulary = 300, rows = 3;
  Array logits(f32, {1, rows, vocabulary});
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    const bool excluded = i % 7 == 3;
    logits.set_double(i, excluded ? -std::numeric_limits<double>::infinity() : static_cast<double>(i * 7919 % 61) / 9);  // many are equal
  }
  const Array there = logits.to(dummy_device());
  sampling::DeviceSampler on_device(session_on(dummy_device()), vocabulary);
  for (const SamplingOptions& options : all_options()) {
    sampling::Sampler host(options, vocabulary), numbers(options, vocabulary);
    for (std::int64_t i = 0; i < 70; ++i) {
      std::vector<sampling::DeviceSampler::Draw> draws;
      for (std::int64_t row = i % 2; row < rows; ++row) draws.push_back({rows - 1 - row, numbers.next_unit()});
      ASSERT_TRUE(sampling::DeviceSampler::can_choose(options, there));
      const auto chosen = on_device.choose(options, there, draws);
      ASSERT_EQ(chosen.size(), draws.size());
      for (std::size_t d = 0; d < draws.size(); ++d) {
        const auto of_row = logits.values<float>().subspan(static_cast<std::size_t>(draws[d].row * vocabulary), vocabulary);
        ASSERT_EQ(chosen[d], host.sample(of_row).id) << "seed " << options.seed << ", " << i << ", " << d;
      }
    }
  }
}

TEST(DeviceSampling, LeavesToTheHostWhatItRefusesOrCountsOtherwise) {
  constexpr std::int64_t vocabulary = 8;
  sampling::DeviceSampler on_device(session_on(dummy_device()), vocabulary);
  const double not_a_number = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  for (const double wrong : {not_a_number, infinite, -infinite}) {
    Array logits(f32, {1, 1, vocabulary});
    for (std::int64_t i = 0; i < vocabulary; ++i) logits.set_double(i, wrong == -infinite || i == 5 ? wrong : 1);
    const sampling::DeviceSampler::Draw draw{0, 0.5};
    for (const SamplingOptions& options : all_options())
      EXPECT_EQ(on_device.choose(options, logits.to(dummy_device()), std::span(&draw, 1)).front(), std::nullopt) << wrong;
  }
  const Array logits = Array(f32, {1, 1, vocabulary}).to(dummy_device());
  EXPECT_FALSE(sampling::DeviceSampler::can_choose({.temperature = 0}, Array(f32, {1, 1, vocabulary})));
  for (const SamplingOptions& options :
       {SamplingOptions{.repetition_penalty = 1.1}, SamplingOptions{.mirostat = 2}, SamplingOptions{.typical_p = 0.5},
        SamplingOptions{.temperature_range = 0.5}, SamplingOptions{.logit_bias = {{1, 2.0F}}}, SamplingOptions{.log_probabilities = 0}})
    EXPECT_FALSE(sampling::DeviceSampler::can_choose(options, logits));
}

}  // namespace
}  // namespace rlx::test
