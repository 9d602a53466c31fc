#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/sampling/candidates.h"

namespace rlx::sampling {

/// How the next token is chosen from logits. The steps, in this order; each is off at its initial value:
/// 1. logit_bias is added;
/// 2. tokens that a grammar forbids are excluded;
/// 3. penalties of the tokens among the last `penalty_window`: repetition, frequency, presence;
/// 4. DRY penalties;
/// 5. top_k, typical_p, top_p, min_p, XTC, each on what the one before left; with mirostat none of them;
/// 6. temperature;
/// 7. mirostat, or a draw.
/// At temperature 0 the token with the highest score after step 4 is taken, of equal ones that of the lowest id.
struct Options {
  std::uint64_t seed = 0;
  double temperature = 1;
  double temperature_range = 0;     ///< the temperature is in temperature ± range, by the entropy of what is left
  double temperature_exponent = 1;  ///< of the entropy, as a share of the greatest possible
  std::int64_t top_k = 0;           ///< 0: all
  double typical_p = 1, top_p = 1, min_p = 0;
  double xtc_probability = 0, xtc_threshold = 0.1;
  double repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::int64_t penalty_window = 64;  ///< tokens; -1: all
  double dry_multiplier = 0, dry_base = 1.75;
  std::int64_t dry_allowed_length = 2, dry_window = -1;  ///< tokens; -1: all
  std::vector<std::int32_t> dry_breakers = {};           ///< ids
  int mirostat = 0;                                      ///< 0, 1 or 2 (Basu et al., "Mirostat", 2021)
  double mirostat_tau = 5, mirostat_eta = 0.1;           ///< bits of surprise to keep, and how fast it is corrected
  std::vector<std::pair<std::int32_t, float>> logit_bias = {};
  int log_probabilities = -1;  ///< how many of the likeliest tokens are reported beside the chosen one; -1: not even that one
};

/// Throws Error naming the option, its value and the values allowed; ids are those of a vocabulary of `vocabulary` tokens.
void check(const Options& options, std::int64_t vocabulary);

struct LogProbability {
  std::int32_t id;
  float value;  // natural logarithm
};

struct Sample {
  std::int32_t id = 0;
  /// By the model's own logits, before any step. Empty unless asked for: the chosen token first, then the likeliest.
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
  Sample sample(std::span<const float> logits, TokenMask allowed = {});

 private:
  std::span<const std::int32_t> recent(std::int64_t window) const;
  void copy_scores(std::span<const float> logits, TokenMask allowed);
  void truncate(Candidates& candidates, double unit) const;
  void apply_temperature(Candidates& candidates) const;
  std::int32_t draw(Candidates& candidates, double unit);
  std::int32_t draw_with_mirostat(Candidates& candidates, double unit);
  std::vector<LogProbability> report(std::span<const float> logits, std::int32_t chosen) const;

  Options options_;
  std::int64_t vocabulary_;
  std::vector<std::int32_t> history_;
  std::vector<float> scores_;
  std::uint64_t choices_ = 0;
  double mirostat_mu_;  // greatest surprise that is let through, in bits
};

}  // namespace rlx::sampling
