#include "models/families/gguf/gguf_rope.h"

#include <algorithm>
#include <cmath>

#include "base/names.h"

namespace rlx {
namespace {

std::vector<double> factors_of(const GgufConfig& config, std::string_view tensor, std::int64_t pairs) {
  const Array values = config.file().array(tensor);
  if (values.size() != pairs || !is_float(values.dtype()))
    fail("{}: tensor '{}' is {} (allowed: {} numbers, one for each pair that turns)", config.file().name(), tensor,
         type_text(values.dtype(), values.shape()), pairs);
  std::vector<double> factors;
  for (std::int64_t i = 0; i < pairs; ++i) factors.push_back(values.get_double(i));
  if (std::any_of(factors.begin(), factors.end(), [](double f) { return !(f > 0) || std::isinf(f); }))
    fail("{}: tensor '{}' has a factor that is not above 0", config.file().name(), tensor);
  return factors;
}

/// Factors for each pair: one set (Llama 3), or two for short and long sequences (Phi 3).
void read_gguf_factors(const GgufConfig& config, RopeOptions& rope) {
  const std::int64_t pairs = rope.dims / 2;
  if (config.has("rope_freqs.weight")) {
    rope.short_factors = rope.long_factors = factors_of(config, "rope_freqs.weight", pairs);
    rope.attention_factor = 1;
  } else if (config.has("rope_factors_short.weight") || config.has("rope_factors_long.weight")) {
    rope.short_factors = factors_of(config, "rope_factors_short.weight", pairs);
    rope.long_factors = factors_of(config, "rope_factors_long.weight", pairs);
    rope.attention_factor = config.positive_or("rope.scaling.attn_factor", 1);
  } else {
    return;
  }
  rope.scaling = RopeScaling::longrope;
}

void read_gguf_yarn(const GgufConfig& config, RopeOptions& rope) {
  rope.scaling = RopeScaling::yarn;
  rope.beta_fast = config.positive_or("rope.scaling.yarn_beta_fast", rope.beta_fast);  // of both a logarithm is taken
  rope.beta_slow = config.positive_or("rope.scaling.yarn_beta_slow", rope.beta_slow);
  rope.attention_factor = config.non_negative_or("rope.scaling.yarn_attn_factor", 0);
}

}  // namespace

RopeOptions read_gguf_rope(const GgufConfig& config, const DecoderConfig& c, RopeStyle style) {
  RopeOptions rope{
      .theta = config.positive_or("rope.freq_base", 10000), .dims = config.size_or("rope.dimension_count", c.head_size), .style = style};
  if (rope.dims < 2 || rope.dims > c.head_size || rope.dims % 2 != 0)
    config.refuse("rope.dimension_count", "is {} (allowed: even, 2..{})", rope.dims, c.head_size);
  rope.original_length = static_cast<double>(config.size_or("rope.scaling.original_context_length", c.max_positions));
  const GgufValue* kind = config.find("rope.scaling.type");
  const double factor = config.number_or("rope.scaling.factor", config.number_or("rope.scale_linear", 0));  // its older name
  const std::string_view scaling = kind != nullptr ? kind->string() : factor != 0 ? "linear" : "none";
  if (scaling != "none") {
    rope.factor = factor != 0 ? factor : 1;
    if (!(rope.factor > 0)) config.refuse("rope.scaling.factor", "is {} (allowed: above 0)", rope.factor);
    if (scaling == "linear") rope.scaling = RopeScaling::linear;
    else if (scaling == "yarn") read_gguf_yarn(config, rope);
    else if (scaling != "longrope")
      config.refuse("rope.scaling.type", "is {} (allowed: none, linear, yarn, longrope)", quote_name(scaling));
  }
  read_gguf_factors(config, rope);
  return rope;
}

void read_gguf_yarn_scale(const GgufConfig& config, DecoderConfig& c) {
  RopeOptions& rope = c.ropes[0];
  if (rope.scaling != RopeScaling::yarn) return;
  if (rope.attention_factor == 0) rope.attention_factor = 1;
  const double scale = 1 + config.number_or("rope.scaling.yarn_log_multiplier", 0) * std::log(std::max(rope.factor, 1.0));
  c.attention_scale = scale * scale / std::sqrt(static_cast<double>(c.head_size));
}

}  // namespace rlx
