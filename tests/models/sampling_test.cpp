#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/philox.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "message.h"
#include "models/run/sampling/sampler.h"

namespace rlx::test {
namespace {

using sampling::Options, sampling::Sampler;
using Ids = std::vector<std::int32_t>;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

Options options_from(const json::Value& value) {
  Options options;
  const auto number = [&](const char* name, auto& field) {
    if (value.contains(name)) field = value[name].get<std::remove_reference_t<decltype(field)>>();
  };
  number("temperature", options.temperature), number("temperature_range", options.temperature_range);
  number("temperature_exponent", options.temperature_exponent), number("top_k", options.top_k), number("typical_p", options.typical_p);
  number("top_p", options.top_p), number("min_p", options.min_p), number("xtc_probability", options.xtc_probability);
  number("xtc_threshold", options.xtc_threshold), number("repetition_penalty", options.repetition_penalty);
  number("frequency_penalty", options.frequency_penalty), number("presence_penalty", options.presence_penalty);
  number("penalty_window", options.penalty_window), number("dry_multiplier", options.dry_multiplier), number("dry_base", options.dry_base);
  number("dry_allowed_length", options.dry_allowed_length), number("dry_window", options.dry_window);
  number("dry_breakers", options.dry_breakers), number("logit_bias", options.logit_bias), number("mirostat", options.mirostat),
      number("mirostat_tau", options.mirostat_tau);
  number("mirostat_eta", options.mirostat_eta), number("seed", options.seed);
  return options;
}

/// The bits of all tokens but the forbidden ones.
std::vector<std::uint64_t> mask_from(const json::Value& options, std::size_t vocabulary) {
  std::vector<std::uint64_t> mask((vocabulary + 63) / 64, ~std::uint64_t{0});
  if (!options.contains("forbidden")) return mask;
  for (const auto id : options["forbidden"].get<std::vector<std::size_t>>()) mask[id / 64] &= ~(std::uint64_t{1} << (id % 64));
  return mask;
}

// Recorded by tests/fixtures/sampling/make_cases.py from formulas in numpy.
TEST(Sampling, DrawsTokensAsOftenAsRecorded) {
  const json::Value file = json::read_file(fixture("sampling/cases.json"));
  ASSERT_GT(file.at("cases").size(), 90u);
  constexpr int draws = 5000;
  for (const json::Value& item : file.at("cases")) {
    SCOPED_TRACE(item.at("options").dump());
    const auto logits = item.at("logits").get<std::vector<float>>();
    const auto expected = item.at("probabilities").get<std::vector<double>>();
    const auto mask = mask_from(item.at("options"), logits.size());
    Sampler sampler(options_from(item.at("options")), static_cast<std::int64_t>(logits.size()));
    for (const auto id : item.at("history").get<Ids>()) sampler.accept(id);
    std::vector<int> counts(logits.size());
    for (int i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(sampler.sample(logits, mask).id)];
    double chi_square = 0;
    int possible = 0;
    for (std::size_t id = 0; id < counts.size(); ++id) {
      if (expected[id] < 1e-12) {
        EXPECT_EQ(counts[id], 0) << id;
        continue;
      }
      ++possible;
      chi_square += std::pow(counts[id] - draws * expected[id], 2) / (draws * expected[id]);
    }
    const double freedom = possible - 1;
    EXPECT_LE(chi_square,
              freedom + 6 * std::sqrt(2 * freedom) + 10);  // six deviations; rare tokens make the tail heavier than a normal one
  }
}

TEST(Sampling, PhiloxGivesThePublishedWords) {  // the known answers of Random123's kat_vectors
  EXPECT_EQ(philox::words({0, 0, 0, 0}, {0, 0}), (philox::Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox::words({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (philox::Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Ids choices(const Options& options, const std::vector<float>& logits, int count) {
  Sampler sampler(options, static_cast<std::int64_t>(logits.size()));
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back(sampler.sample(logits).id), sampler.accept(ids.back());
  return ids;
}

TEST(Sampling, ASeedReproducesItsChoicesAndAnotherGivesOthers) {
  const std::vector<float> logits(1000, 0.5F);
  EXPECT_EQ(choices({.seed = 7}, logits, 50), choices({.seed = 7}, logits, 50));
  EXPECT_NE(choices({.seed = 7}, logits, 50), choices({.seed = 8}, logits, 50));
  EXPECT_NE(choices({.seed = 7}, logits, 50), choices({.seed = 7 + (std::uint64_t{1} << 32)}, logits, 50));
}

TEST(Sampling, TemperatureZeroTakesTheLowestOfEqualTokensWhateverElseIsAsked) {
  const std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(choices({.temperature = 0}, logits, 3), (Ids{1, 1, 1}));
  EXPECT_EQ(choices({.temperature = 0, .top_k = 1, .xtc_probability = 1, .mirostat = 2}, logits, 1), (Ids{1}));
}

// Of 0 1 2 0 1 3 0 1 the last five tokens have lost what 2 would repeat, the last four half of what 3 would, and the last three all of it.
TEST(Sampling, DryFindsRepetitionsWithinItsWindow) {
  struct Penalties {
    std::int64_t window;
    float of_2, of_3;  // 2^(repeated tokens - 1)
  };
  for (const auto& [window, of_2, of_3] :
       {Penalties{-1, 2, 2}, Penalties{8, 2, 2}, Penalties{5, 0, 2}, Penalties{4, 0, 1}, Penalties{3, 0, 0}, Penalties{0, 0, 0}}) {
    const auto choice = [&, window = window](std::size_t id, float logit) {  // beside tokens of logit 0
      Sampler sampler({.temperature = 0, .dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 1, .dry_window = window}, 4);
      for (const std::int32_t seen : {0, 1, 2, 0, 1, 3, 0, 1}) sampler.accept(seen);
      std::vector<float> logits(4, 0);
      logits[id] = logit;
      return sampler.sample(logits).id;
    };
    EXPECT_EQ(choice(2, of_2 + 0.01F), 2) << window;
    EXPECT_EQ(choice(2, of_2 - 0.01F), 0) << window;
    EXPECT_EQ(choice(3, of_3 + 0.01F), 3) << window;
    EXPECT_EQ(choice(3, of_3 - 0.01F), 0) << window;
  }
}

TEST(Sampling, LargeVocabulariesAreCutAsSmallOnesAre) {
  std::vector<float> logits(200'000);
  for (std::size_t id = 0; id < logits.size(); ++id) logits[id] = -static_cast<float>((id * 7919) % logits.size()) * 1e-3F;
  const auto rank = [&](std::int32_t id) { return (static_cast<std::size_t>(id) * 7919) % logits.size(); };
  for (std::int32_t id : choices({.top_k = 40}, logits, 30)) EXPECT_LT(rank(id), 40u);
  for (std::int32_t id : choices({.top_k = 5000}, logits, 30)) EXPECT_LT(rank(id), 5000u);
  // exp(-r / 1000): half of the probability lies in the first 1000 ln 2 = 693.1 ranks.
  for (std::int32_t id : choices({.top_p = 0.5}, logits, 200)) EXPECT_LE(rank(id), 693u);
  EXPECT_LE(rank(choices({.min_p = 0.9}, logits, 1)[0]), 105u);  // -1000 ln 0.9
}

TEST(Sampling, MirostatHoldsTheSurpriseAtItsTarget) {
  std::vector<float> logits(2000);
  for (std::size_t id = 0; id < logits.size(); ++id) logits[id] = -1.1F * std::log(static_cast<float>(id + 1));  // Zipf's law
  double total = 0;
  for (float logit : logits) total += std::exp(logit);
  for (int version : {1, 2}) {
    for (double tau : {2.0, 4.0}) {
      double surprise = 0;
      const Ids ids = choices({.mirostat = version, .mirostat_tau = tau}, logits, 2000);
      for (std::int32_t id : ids) surprise -= (logits[static_cast<std::size_t>(id)] - std::log(total)) / std::log(2.0);
      // Surprise is counted here before the cut, which adds the bits of what was cut away: at most one at these targets.
      EXPECT_NEAR(surprise / 2000, tau + 0.6, 1.0) << version << " " << tau;
    }
  }
}

// Recorded by tests/fixtures/sampling/make_mirostat.py from formulas in numpy, which no choice is too near to tell apart.
TEST(Sampling, MirostatDrawsTheRecordedTokens) {
  const json::Value file = json::read_file(fixture("sampling/mirostat.json"));
  const auto rows = file.at("rows").get<std::vector<std::vector<float>>>();
  ASSERT_EQ(file.at("cases").size(), 8U);
  for (const json::Value& item : file.at("cases")) {
    SCOPED_TRACE(fmt::format("version {}, tau {}", item.at("mirostat").dump(), item.at("mirostat_tau").dump()));
    Sampler sampler(options_from(item), static_cast<std::int64_t>(rows[0].size()));
    Ids drawn;
    for (std::size_t i = 0; i < item.at("tokens").size(); ++i) drawn.push_back(sampler.sample(rows[i % rows.size()]).id);
    EXPECT_EQ(drawn, item.at("tokens").get<Ids>());
  }
}

TEST(Sampling, LogProbabilitiesAreThoseOfTheModel) {
  const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F), minus_infinity};
  Sampler sampler({.temperature = 0, .logit_bias = {{0, 50.0F}}, .log_probabilities = 3}, 4);
  const sampling::Choice sample = sampler.sample(logits);
  ASSERT_EQ(sample.log_probabilities.size(), 4u);
  const Ids order = {0, 2, 1, 0};
  const double parts[] = {1, 5, 2, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sample.log_probabilities[i].id, order[i]);
    EXPECT_NEAR(sample.log_probabilities[i].value, std::log(parts[i] / 8), 1e-6);  // logits are rounded to f32
  }
}

TEST(Sampling, AbsurdOptionsAreRefusedByName) {
  const auto error = [](const Options& options) { return error_of([&] { sampling::check(options, 10); }); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error({}), "no error");
  EXPECT_EQ(error({.temperature = -1}), "sampling: temperature is -1 (allowed: 0..1000000)");
  EXPECT_EQ(error({.temperature = nan}), "sampling: temperature is nan (allowed: 0..1000000)");
  EXPECT_EQ(error({.top_k = -1}), "sampling: top_k is -1 (allowed: at least 0)");
  EXPECT_EQ(error({.top_p = 0}), "sampling: top_p is 0 (allowed: above 0, at most 1)");
  EXPECT_EQ(error({.min_p = 1.5}), "sampling: min_p is 1.5 (allowed: 0..1)");
  EXPECT_EQ(error({.repetition_penalty = 0}), "sampling: repetition_penalty is 0 (allowed: above 0, at most 1000000)");
  EXPECT_EQ(error({.dry_base = 0.5}), "sampling: dry_base is 0.5 (allowed: 1..1000000)");
  EXPECT_EQ(error({.mirostat = 3}), "sampling: mirostat is 3 (allowed: 0..2)");
  EXPECT_EQ(error({.logit_bias = {{10, 1.0F}}}), "sampling: logit_bias: token 10 is not in the vocabulary (allowed: 0..9)");
}

TEST(Sampling, BadLogitsAreRefused) {
  Sampler sampler({}, 3);
  const auto error = [&](const std::vector<float>& logits, std::vector<std::uint64_t> mask = {}) {
    return error_of([&] { sampler.sample(logits, mask); });
  };
  EXPECT_EQ(error({0, std::numeric_limits<float>::quiet_NaN(), 0}), "sampling: the logit of token 1 is nan (allowed: numbers, -inf)");
  EXPECT_EQ(error({0, 0, -minus_infinity}), "sampling: the logit of token 2 is inf (allowed: numbers, -inf)");
  EXPECT_EQ(error({0, 0}), "sampling: 2 logits for a vocabulary of 3");
  EXPECT_EQ(error({0, 0, 0}, {0}), "sampling: every one of 3 tokens is excluded");
  EXPECT_EQ(error_of([&] { sampler.accept(3); }), "sampling: accept: token 3 is not in the vocabulary (allowed: 0..2)");
}

}  // namespace
}  // namespace rlx::test
