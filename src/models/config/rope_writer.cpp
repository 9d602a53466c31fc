#include "models/config/rope_writer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/config/rope_factors.h"

namespace rlx {

namespace {

/// Llama 3's scaling, of which a file keeps only the factors. All its models have these two bounds; the length is found by trying.
/// Nothing where the factors are others.
std::optional<json::Value> llama3_scaling(const RopeOptions& rope) {
  RopeOptions tried = rope;
  tried.factor = *std::max_element(rope.short_factors.begin(), rope.short_factors.end());
  if (tried.factor > 1e6) return std::nullopt;
  tried.low_freq_factor = 1, tried.high_freq_factor = 4;
  for (tried.original_length = 16; tried.original_length < 1 << 20; tried.original_length *= 2) {
    const std::vector<float> factors = llama3_factors(tried);
    if (!nearly({factors.begin(), factors.end()}, rope.short_factors)) continue;
    return json::Value{{"rope_type", "llama3"},
                       {"factor", tried.factor},
                       {"low_freq_factor", tried.low_freq_factor},
                       {"high_freq_factor", tried.high_freq_factor},
                       {"original_max_position_embeddings", static_cast<std::int64_t>(tried.original_length)}};
  }
  return std::nullopt;
}

}  // namespace

void write_rope(const DecoderConfig& c, json::Value& out) {
  if (c.ropes.empty()) return;
  const RopeOptions& rope = c.ropes.front();
  out["rope_theta"] = rope.theta;
  out["partial_rotary_factor"] = static_cast<double>(rope.dims) / static_cast<double>(c.head_size);
  const auto length = static_cast<std::int64_t>(rope.original_length);
  if (rope.scaling == RopeScaling::linear) out["rope_scaling"] = {{"rope_type", "linear"}, {"factor", rope.factor}};
  if (rope.scaling == RopeScaling::yarn) {
    out["rope_scaling"] = {{"rope_type", "yarn"},
                           {"factor", rope.factor},
                           {"original_max_position_embeddings", length},
                           {"beta_fast", rope.beta_fast},
                           {"beta_slow", rope.beta_slow}};
    if (rope.attention_factor > 0) out["rope_scaling"]["attention_factor"] = rope.attention_factor;
  }
  if (rope.scaling != RopeScaling::longrope) return;
  const auto llama3 = rope.short_factors == rope.long_factors ? llama3_scaling(rope) : std::nullopt;
  if (llama3) {
    out["rope_scaling"] = *llama3;
  } else {
    out["original_max_position_embeddings"] = length;
    out["rope_scaling"] = {{"rope_type", "longrope"},
                           {"short_factor", rope.short_factors},
                           {"long_factor", rope.long_factors},
                           {"attention_factor", rope.attention_factor}};
  }
}

}  // namespace rlx
