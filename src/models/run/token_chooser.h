#pragma once
#include <optional>
#include <span>
#include <vector>

#include "models/run/sampling/device_sampler.h"
#include "models/run/sampling/sampler.h"
#include "rlx/model.h"
#include "text/grammar/matcher.h"

namespace rlx {

/// Chooses the tokens of one answer, by sampling or as the caller does, among those that its grammar allows.
class TokenChooser {
 public:
  /// `matcher` follows the options' grammar. Throws Error for sampling options that are not allowed, naming them, and for ids of the
  /// prompt outside the vocabulary.
  TokenChooser(const GenerateOptions& options, std::int64_t vocabulary, std::span<const std::int32_t> prompt,
               std::optional<grammar::Matcher> matcher);

  /// The token behind `ids`, prompt and answer so far, whose logits these are. It counts as taken.
  sampling::Choice choose(std::span<const float> logits, std::span<const std::int32_t> ids);
  /// The same by a row of logits (1, rows, vocabulary) that a device may have: it chooses where it can.
  sampling::Choice choose(const Array& logits, std::int64_t row, sampling::DeviceSampler& on_device, std::span<const std::int32_t> ids);
  /// An answer that waits for its next token.
  struct Next {
    TokenChooser* chooser;
    std::int64_t row;  // of the logits
    std::span<const std::int32_t> ids;
  };
  /// The same for several answers by the same options, one row each.
  static std::vector<sampling::Choice> choose_together(std::span<const Next> answers, const Array& logits,
                                                       sampling::DeviceSampler& on_device);
  /// Whether the answer is whole and cannot go on.
  bool is_complete() { return matcher_ && matcher_->is_complete(); }

 private:
  sampling::Choice ask_caller(std::span<const float> logits, sampling::TokenMask allowed, std::span<const std::int32_t> ids) const;

  decltype(GenerateOptions::choose) caller_;
  int log_probabilities_;
  sampling::Sampler sampler_;
  std::optional<grammar::Matcher> matcher_;
};

}  // namespace rlx
