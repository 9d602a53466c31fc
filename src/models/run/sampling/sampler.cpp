#include "models/run/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "models/run/sampling/penalties.h"
#include "rlx/error.h"

namespace rlx::sampling {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

void check_range(std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  if (high == infinite) fail("sampling: {} is {} (allowed: at least {})", name, value, low);
  fail("sampling: {} is {} (allowed: {}..{})", name, value, low, high);
}

/// A number above `low`.
void check_above(std::string_view name, double value, double low, double high) {
  if (!(value > low && value <= high)) fail("sampling: {} is {} (allowed: above {}, at most {})", name, value, low, high);
}

void check_count(std::string_view name, std::int64_t value, std::int64_t low) {
  if (value < low) fail("sampling: {} is {} (allowed: at least {})", name, value, low);
}

void check_id(std::string_view name, std::int32_t id, std::int64_t vocabulary) {
  if (id < 0 || id >= vocabulary) fail("sampling: {}: token {} is not in the vocabulary (allowed: 0..{})", name, id, vocabulary - 1);
}

/// What a value of the exponent of Zipf's law, of ranks by the probabilities of the first hundred tokens, is estimated to be.
double zipf_exponent(std::span<const double> probabilities) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < probabilities.size(); ++i) {
    if (!(probabilities[i + 1] > 0)) break;
    const double rank = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += rank * std::log(probabilities[i] / probabilities[i + 1]);
    squares += rank * rank;
  }
  return squares > 0 ? products / squares : 0;
}

/// How many tokens have a surprise below `mu` under Zipf's law (Mirostat, eq. 11), rounded down as in llama.cpp. All for exponents that it
/// is not defined for.
std::int64_t zipf_count(double exponent, double mu, std::int64_t vocabulary) {
  const double excess = exponent - 1, size = static_cast<double>(vocabulary);
  if (!(exponent > 0)) return vocabulary;
  const double base = std::abs(excess) < 1e-9 ? std::exp2(mu) / std::log(size) : excess * std::exp2(mu) / (1 - std::pow(size, -excess));
  const double count = std::floor(std::pow(base, 1 / exponent));
  if (!(count < size)) return vocabulary;
  return static_cast<std::int64_t>(std::max(count, 1.0));
}

}  // namespace

void check(const Options& options, std::int64_t vocabulary) {
  constexpr double large = 1e6;
  check_count("the size of the vocabulary", vocabulary, 1);
  check_range("temperature", options.temperature, 0, large);
  check_range("temperature_range", options.temperature_range, 0, large);
  check_range("temperature_exponent", options.temperature_exponent, 0, large);
  check_count("top_k", options.top_k, 0);
  check_above("typical_p", options.typical_p, 0, 1);
  check_above("top_p", options.top_p, 0, 1);
  check_range("min_p", options.min_p, 0, 1);
  check_range("xtc_probability", options.xtc_probability, 0, 1);
  check_range("xtc_threshold", options.xtc_threshold, 0, 1);
  check_above("repetition_penalty", options.repetition_penalty, 0, large);
  check_range("frequency_penalty", options.frequency_penalty, -large, large);
  check_range("presence_penalty", options.presence_penalty, -large, large);
  check_count("penalty_window", options.penalty_window, -1);
  check_range("dry_multiplier", options.dry_multiplier, 0, large);
  check_range("dry_base", options.dry_base, 1, large);
  check_count("dry_allowed_length", options.dry_allowed_length, 0);
  check_count("dry_window", options.dry_window, -1);
  check_range("mirostat", options.mirostat, 0, 2);
  check_above("mirostat_tau", options.mirostat_tau, 0, large);
  check_above("mirostat_eta", options.mirostat_eta, 0, large);
  check_range("log_probabilities", options.log_probabilities, -1, static_cast<double>(vocabulary));
  for (std::int32_t id : options.dry_breakers) check_id("dry_breakers", id, vocabulary);
  for (const auto& [id, bias] : options.logit_bias) {
    check_id("logit_bias", id, vocabulary);
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      fail("sampling: logit_bias of token {} is {} (allowed: numbers, -inf)", id, bias);
  }
}

std::vector<LogProbability> log_probabilities(std::span<const float> logits, std::int32_t chosen, int count) {
  Candidates all(logits);
  const float highest = all.best().score;
  double total = 0;
  for (const Candidate& candidate : all.all()) total += std::exp(static_cast<double>(candidate.score) - highest);
  std::vector<LogProbability> out;
  const auto add = [&](std::int32_t id) {
    out.push_back({id, static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(id)]) - highest - std::log(total))});
  };
  add(chosen);
  const std::size_t likeliest = all.top_probabilities(static_cast<std::size_t>(count)).size();
  for (const Candidate& candidate : all.all().first(likeliest)) add(candidate.id);
  return out;
}

Sampler::Sampler(Options options, std::int64_t vocabulary)
    : options_(std::move(options)), vocabulary_(vocabulary), mirostat_mu_(2 * options_.mirostat_tau) {
  check(options_, vocabulary_);
}

void Sampler::accept(std::int32_t id) {
  check_id("accept", id, vocabulary_);
  history_.push_back(id);
}

std::span<const std::int32_t> Sampler::recent(std::int64_t window) const {
  const std::size_t count = window < 0 ? history_.size() : std::min(history_.size(), static_cast<std::size_t>(window));
  return std::span(history_).last(count);
}

/// The scores after steps 1 to 4.
void Sampler::copy_scores(std::span<const float> logits, TokenMask allowed) {
  if (static_cast<std::int64_t>(logits.size()) != vocabulary_)
    fail("sampling: {} logits for a vocabulary of {}", logits.size(), vocabulary_);
  if (!allowed.empty() && allowed.size() != (logits.size() + 63) / 64)
    fail("sampling: a mask of {} words for a vocabulary of {}", allowed.size(), vocabulary_);
  const auto wrong =
      std::find_if(logits.begin(), logits.end(), [](float logit) { return !(logit < std::numeric_limits<float>::infinity()); });
  if (wrong != logits.end()) fail("sampling: the logit of token {} is {} (allowed: numbers, -inf)", wrong - logits.begin(), *wrong);
  scores_.assign(logits.begin(), logits.end());
  for (const auto& [id, bias] : options_.logit_bias) scores_[static_cast<std::size_t>(id)] += bias;
  if (!allowed.empty())
    for (std::size_t id = 0; id < scores_.size(); ++id)
      if ((allowed[id / 64] >> (id % 64) & 1) == 0) scores_[id] = -std::numeric_limits<float>::infinity();
  penalize(recent(options_.penalty_window), options_.repetition_penalty, options_.frequency_penalty, options_.presence_penalty, scores_);
  const Dry dry = {options_.dry_multiplier,
                   options_.dry_base,
                   options_.dry_allowed_length,
                   {options_.dry_breakers.begin(), options_.dry_breakers.end()}};
  penalize_repetition(recent(options_.dry_window), dry, scores_);
}

void Sampler::truncate(Candidates& candidates, double unit) const {
  if (options_.top_k > 0) candidates.keep_top(static_cast<std::size_t>(options_.top_k));
  if (options_.typical_p < 1) candidates.keep_typical(options_.typical_p);
  if (options_.top_p < 1) candidates.keep_mass(options_.top_p);
  if (options_.min_p > 0) candidates.keep_ratio(options_.min_p);
  if (options_.xtc_probability > 0 && unit < options_.xtc_probability) candidates.drop_top(options_.xtc_threshold);
}

void Sampler::apply_temperature(Candidates& candidates) const {
  double temperature = options_.temperature;
  if (options_.temperature_range > 0 && candidates.all().size() > 1) {
    const double low = std::max(0.0, options_.temperature - options_.temperature_range);
    const double high = options_.temperature + options_.temperature_range;
    const double share = std::max(0.0, candidates.entropy()) / std::log(static_cast<double>(candidates.all().size()));
    temperature = low + (high - low) * std::pow(share, options_.temperature_exponent);
  }
  constexpr double coldest = 1e-6;  // exp(-1e6 times any difference that a float has) is 0: no more than the best is left
  if (temperature < coldest) candidates.keep_top(1);
  else if (temperature != 1) candidates.divide(temperature);
}

std::int32_t Sampler::draw(Candidates& candidates, double unit) {
  const std::size_t index = candidates.draw(unit);
  return candidates.all()[index].id;
}

std::int32_t Sampler::draw_with_mirostat(Candidates& candidates, double unit) {
  constexpr std::size_t estimated_from = 100;
  if (options_.mirostat == 1) {
    const double exponent = zipf_exponent(candidates.top_probabilities(estimated_from));
    candidates.keep_top(static_cast<std::size_t>(zipf_count(exponent, mirostat_mu_, vocabulary_)));
  } else {
    candidates.keep_surprise(mirostat_mu_);
  }
  const std::size_t index = candidates.draw(unit);
  const double surprise = -std::log2(candidates.probabilities()[index]);
  mirostat_mu_ -= options_.mirostat_eta * (surprise - options_.mirostat_tau);
  return candidates.all()[index].id;
}

philox::Words Sampler::next_words() {
  const std::uint64_t choice = choices_++;
  return philox::words({static_cast<std::uint32_t>(choice), static_cast<std::uint32_t>(choice >> 32), 0, 0},
                       {static_cast<std::uint32_t>(options_.seed), static_cast<std::uint32_t>(options_.seed >> 32)});
}

double Sampler::next_unit() {
  const philox::Words words = next_words();
  return philox::unit(words[0], words[1]);
}

Choice Sampler::sample(std::span<const float> logits, TokenMask allowed) {
  copy_scores(logits, allowed);
  const philox::Words words = next_words();
  const double unit = philox::unit(words[0], words[1]), xtc_unit = philox::unit(words[2], words[3]);
  Candidates candidates(scores_);
  std::int32_t id = 0;
  if (options_.temperature == 0 && options_.temperature_range == 0) {
    id = candidates.best().id;
  } else if (options_.mirostat != 0) {
    apply_temperature(candidates);
    id = draw_with_mirostat(candidates, unit);
  } else {
    truncate(candidates, xtc_unit);
    apply_temperature(candidates);
    id = draw(candidates, unit);
  }
  if (options_.log_probabilities < 0) return {id, {}};
  return {id, log_probabilities(logits, id, options_.log_probabilities)};
}

}  // namespace rlx::sampling
