#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace rlx {

/// How the next token is chosen from logits. The steps, in this order; each is off at its initial value:
/// 1. logit_bias is added;
/// 2. tokens that a grammar forbids are excluded;
/// 3. penalties of the tokens among the last `penalty_window`: repetition, frequency, presence;
/// 4. DRY penalties;
/// 5. top_k, typical_p, top_p, min_p, XTC, each on what the one before left; with mirostat none of them;
/// 6. temperature;
/// 7. mirostat, or a draw.
/// At temperature 0 the token with the highest score after step 4 is taken, of equal ones that of the lowest id.
struct SamplingOptions {
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

/// Of a token by the model's own logits, before any step of sampling.
struct LogProbability {
  std::int32_t id;
  float value;  // natural logarithm
};

}  // namespace rlx
