// Mistral: Llama, every layer of which may look back over a window.
#include <algorithm>

#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

DecoderConfig read_mistral(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.qkv_bias = c.attention_output_bias = false;
  c.ropes = {read_rope(config, c.head_size)};
  read_windows(config, c, [](std::size_t) { return true; });
  return c;
}

/// Its class does not read layer_types: every layer has the window.
DecoderConfig read_one_window(const JsonField& config) {
  DecoderConfig c = read_mistral(config);
  const std::int64_t window = count_or(config, "sliding_window", 0);
  if (window > 0 && !std::ranges::all_of(c.layers, [](const DecoderLayer& layer) { return layer.window > 0; }))
    config.at("layer_types").refuse("full_attention is not supported by mistral beside a sliding_window (allowed: sliding_attention)");
  return c;
}

const DecoderFamily mistral_family({"mistral"}, read_one_window, llama_names, write_llama);
const DecoderFamily ministral_family({"ministral"}, read_mistral, llama_names, write_llama);

}  // namespace
}  // namespace rlx
