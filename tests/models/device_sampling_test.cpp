// Tokens that are chosen on the device where the logits lie.
#include <gtest/gtest.h>

#include <limits>

#include "backends/dummy_device.h"
#include "models/run/sampling/device_sampler.h"
#include "models/run/sampling/sampler.h"
#include "models/tiny_language_model.h"
#include "rlx/model.h"

namespace rlx::test {
namespace {

using Ids = std::vector<std::int32_t>;

Session session_on(const Device& device) { return Session(device, {.threads = 1, .cache_folder = std::filesystem::path()}); }

Model open(const Device& device) { return Model::open(fixture("hf/llama"), session_on(device)); }

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
  Model there = open(dummy_device()), here = open(Device::cpu());
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
    for (std::int64_t i = 0; i < 200; ++i) {
      const std::int64_t row = i % rows;
      const auto of_row = logits.values<float>().subspan(static_cast<std::size_t>(row * vocabulary), vocabulary);
      ASSERT_TRUE(sampling::DeviceSampler::can_choose(options, there));
      ASSERT_EQ(on_device.choose(options, numbers.next_unit(), there, row), host.sample(of_row).id) << "seed " << options.seed << ", " << i;
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
    for (const SamplingOptions& options : all_options())
      EXPECT_EQ(on_device.choose(options, 0.5, logits.to(dummy_device()), 0), std::nullopt) << wrong;
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
