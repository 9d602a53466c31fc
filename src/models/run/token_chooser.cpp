#include "models/run/token_chooser.h"

#include <limits>
#include <vector>

#include "models/run/caches/token_predictor.h"

namespace rlx {

TokenChooser::TokenChooser(const GenerateOptions& options, std::int64_t vocabulary, std::span<const std::int32_t> prompt,
                           std::optional<grammar::Matcher> matcher)
    : caller_(options.choose),
      log_probabilities_(options.sampling.log_probabilities),
      sampler_(options.sampling, vocabulary),
      matcher_(std::move(matcher)) {
  check_ids(prompt, vocabulary);
  for (std::int32_t id : prompt) sampler_.accept(id);
}

sampling::Choice TokenChooser::ask_caller(std::span<const float> logits, sampling::TokenMask allowed,
                                          std::span<const std::int32_t> ids) const {
  std::vector<float> masked;
  if (!allowed.empty()) {
    masked.assign(logits.begin(), logits.end());
    for (std::size_t id = 0; id < masked.size(); ++id)
      if ((allowed[id / 64] >> (id % 64) & 1) == 0) masked[id] = -std::numeric_limits<float>::infinity();
  }
  const std::int32_t id = caller_(allowed.empty() ? logits : masked, ids);
  if (id < 0 || id >= static_cast<std::int32_t>(logits.size()))
    fail("generate: token {} was chosen (allowed: 0..{})", id, logits.size() - 1);
  if (log_probabilities_ < 0) return {id, {}};
  return {id, sampling::log_probabilities(logits, id, log_probabilities_)};
}

sampling::Choice TokenChooser::choose(std::span<const float> logits, std::span<const std::int32_t> ids) {
  const sampling::TokenMask allowed = matcher_ ? matcher_->allowed() : sampling::TokenMask();
  sampling::Choice sample = caller_ ? ask_caller(logits, allowed, ids) : sampler_.sample(logits, allowed);
  if (matcher_) matcher_->accept(sample.id);
  sampler_.accept(sample.id);
  return sample;
}

sampling::Choice TokenChooser::choose(const Array& logits, std::int64_t row, sampling::DeviceSampler& on_device,
                                      std::span<const std::int32_t> ids) {
  const Next next{this, row, ids};
  return std::move(choose_together(std::span(&next, 1), logits, on_device).front());
}

std::vector<sampling::Choice> TokenChooser::choose_together(std::span<const Next> answers, const Array& logits,
                                                            sampling::DeviceSampler& on_device) {
  const TokenChooser& any = *answers.front().chooser;
  std::vector<std::optional<std::int32_t>> chosen(answers.size());
  if (!any.caller_ && !any.matcher_ && sampling::DeviceSampler::can_choose(any.sampler_.options(), logits)) {
    std::vector<sampling::DeviceSampler::Draw> draws;
    for (const Next& next : answers) draws.push_back({next.row, next.chooser->sampler_.next_unit()});
    chosen = on_device.choose(any.sampler_.options(), logits, draws);
  }
  const auto vocabulary = static_cast<std::size_t>(logits.shape().back());
  std::vector<sampling::Choice> choices;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Next& next = answers[i];
    if (chosen[i]) {
      next.chooser->sampler_.accept(*chosen[i]);
      choices.push_back({*chosen[i], {}});
    } else {
      const auto row = logits.values<float>().subspan(static_cast<std::size_t>(next.row) * vocabulary, vocabulary);
      choices.push_back(next.chooser->choose(row, next.ids));
    }
  }
  return choices;
}

}  // namespace rlx
