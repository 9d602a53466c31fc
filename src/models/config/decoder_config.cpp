#include "models/config/decoder_config.h"

#include <algorithm>

namespace rlx {

std::int64_t DecoderConfig::length_of_short_factors() const {
  for (const RopeOptions& rope : ropes)
    if (rope.scaling == RopeScaling::longrope && rope.short_factors != rope.long_factors)
      return static_cast<std::int64_t>(rope.original_length);
  return 0;
}

bool DecoderConfig::is_recurrent() const {
  return std::any_of(layers.begin(), layers.end(), [](const DecoderLayer& layer) { return !is_attention(layer.mixer); });
}

bool DecoderConfig::has_mixer(Mixer mixer) const {
  return std::any_of(layers.begin(), layers.end(), [mixer](const DecoderLayer& layer) { return layer.mixer == mixer; });
}

void DecoderConfig::see_both_ways() {
  causal = output = false;
  for (DecoderLayer& layer : layers) layer.window /= 2;
}

}  // namespace rlx
