#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "models/run/sampling/candidates.h"
#include "rlx/sampling.h"

namespace rlx::sampling {

using Options = SamplingOptions;

/// Throws Error naming the option, its value and the values allowed; ids are those of a vocabulary of `vocabulary` tokens.
void check(const Options& options, std::int64_t vocabulary);

/// The chosen token first, then the `count` likeliest.
std::vector<LogProbability> log_probabilities(std::span<const float> logits, std::int32_t chosen, int count);

struct Choice {
  std::int32_t id = 0;
  /// Empty unless asked for.
  std::vector<LogProbability> log_probabilities;
};

/// Bit `id % 64` of word `id / 64` says whether a token is allowed. Empty: all are.
using TokenMask = std::span<const std::uint64_t>;

/// Chooses one sequence's tokens. The same options, tokens and logits give the same choices: the random numbers of the n-th choice are
/// those of Philox at counter n with the seed as key.
class Sampler {
 public:
  /// Throws Error as `check` does.
  Sampler(Options options, std::int64_t vocabulary);

  /// A token of the prompt, or one that was chosen: penalties look back at it. Throws Error for an id that the vocabulary lacks.
  void accept(std::int32_t id);
  /// Logits of the next token, one for each of the vocabulary. Throws Error for a NaN or +infinity, naming the token, for another number of
  /// logits or bits, and where nothing is allowed.
  Choice sample(std::span<const float> logits, TokenMask allowed = {});
  const Options& options() const { return options_; }
  /// The next random number, for a choice that is made elsewhere: in 0..1 without 1.
  double next_unit();

 private:
  philox::Words next_words();
  std::span<const std::int32_t> recent(std::int64_t window) const;
  void copy_scores(std::span<const float> logits, TokenMask allowed);
  void truncate(Candidates& candidates, double unit) const;
  void apply_temperature(Candidates& candidates) const;
  std::int32_t draw(Candidates& candidates, double unit);
  std::int32_t draw_with_mirostat(Candidates& candidates, double unit);

  Options options_;
  std::int64_t vocabulary_;
  std::vector<std::int32_t> history_;
  std::vector<float> scores_;
  std::uint64_t choices_ = 0;
  double mirostat_mu_;  // greatest surprise that is let through, in bits
};

}  // namespace rlx::sampling
