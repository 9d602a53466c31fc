#pragma once
#include "formats/json/json_field.h"
#include "models/config/decoder_config.h"
#include "models/families/weight_names.h"

namespace rlx {

/// What Llama's config says, in the fields that most families took over: sizes, one rope, a gated feed-forward block.
DecoderConfig read_llama(const JsonField& config);
/// Llama's names of tensors, which most families took over.
WeightNames llama_names(const DecoderConfig& config);
/// The fields of `read_llama` but for those that only some families have: biases, rope, windows.
json::Value llama_fields(const DecoderConfig& config);
/// Llama's config.json, with the window that Mistral's has.
json::Value write_llama(const DecoderConfig& config);

/// `layer_types` where the config has it: sliding layers see `sliding_window` tokens, full ones all. Else `sliding(i)` says which slide.
/// The window is 0 where the config has none.
template <class Sliding>
void read_windows(const JsonField& config, DecoderConfig& result, Sliding sliding);
/// True for the layers whose type is "sliding_attention"; nothing where the config has no layer_types.
std::vector<bool> read_sliding_layers(const JsonField& config, std::size_t layers);
void write_sliding_layers(const DecoderConfig& config, json::Value& out);
/// The tokens that sliding layers see; 0 where none slides.
std::int64_t widest_window(const DecoderConfig& config);
/// `sliding_window` and `layer_types`, where some layer slides.
void write_windows(const DecoderConfig& config, json::Value& out);

template <class Sliding>
void read_windows(const JsonField& config, DecoderConfig& result, Sliding sliding) {
  const auto window = config.find("sliding_window");
  if (!window) return;
  const std::vector<bool> listed = read_sliding_layers(config, result.layers.size());
  const auto tokens = static_cast<std::int64_t>(window->as_integer(1, 1u << 30u));
  for (std::size_t i = 0; i < result.layers.size(); ++i)
    if (listed.empty() ? sliding(i) : listed[i]) result.layers[i].window = tokens;
}

}  // namespace rlx
