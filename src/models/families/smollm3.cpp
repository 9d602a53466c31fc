// SmolLM 3: Llama, some layers of which know no positions.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

void read_layers_without_rope(const JsonField& config, DecoderConfig& c) {
  const auto listed = config.find("no_rope_layers");
  const auto items = listed ? listed->items() : std::vector<JsonField>();
  if (!items.empty() && items.size() != c.layers.size()) listed->refuse("{} entries for {} layers", items.size(), c.layers.size());
  const auto every = static_cast<std::size_t>(size_or(config, "no_rope_layer_interval", 4));
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool turns = items.empty() ? (i + 1) % every != 0 : items[i].as_integer(0, 1) == 1;  // despite the list's name
    if (!turns) c.layers[i].rope = -1;
  }
}

json::Value write_smollm3(const DecoderConfig& c) {
  json::Value out = write_llama(c);
  for (const DecoderLayer& layer : c.layers) out["no_rope_layers"].push_back(layer.rope < 0 ? 0 : 1);  // despite its name
  return out;
}

const DecoderFamily smollm3_family(
    {"smollm3"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.tied_output = flag_or(config, "tie_word_embeddings", true);
      c.ropes = {read_rope(config, c.head_size)};
      read_layers_without_rope(config, c);
      if (flag_or(config, "use_sliding_window", false))
        read_windows(config, c, [&](std::size_t layer) { return c.layers[layer].rope < 0; });
      return c;
    },
    llama_names, write_smollm3);

}  // namespace
}  // namespace rlx
