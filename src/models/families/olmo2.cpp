// OLMo 2 and 3: norms behind attention and the feed-forward block, and over all heads of queries and keys together; 3 has sliding layers,
// whose rope is never stretched.
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

WeightNames olmo2_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.layer.push_back({{"attention_post_norm"}, "post_attention_layernorm"});
  names.layer.push_back({{"ffn_post_norm"}, "post_feedforward_layernorm"});
  return names;
}

DecoderConfig read_olmo2(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.ropes = {read_rope(config, c.head_size, "full_attention")};
  c.norm_before = false, c.norm_after = true;
  c.query_key_norm = QueryKeyNorm::whole;
  return c;
}

json::Value write_olmo3(const DecoderConfig& c) {
  json::Value out = write_llama(c);
  write_windows(c, out);
  return out;
}

const DecoderFamily olmo2_family({"olmo2"}, read_olmo2, olmo2_names, write_llama);
const DecoderFamily olmo3_family(
    {"olmo3"},
    [](const JsonField& config) {
      DecoderConfig c = read_olmo2(config);
      read_windows(config, c, [](std::size_t layer) { return (layer + 1) % 4 != 0; });
      RopeOptions sliding{.theta = c.ropes[0].theta, .dims = c.ropes[0].dims};
      if (config.find("rope_parameters")) sliding = read_rope(config, c.head_size, "sliding_attention");
      c.ropes.push_back(sliding);
      for (DecoderLayer& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
      return c;
    },
    olmo2_names, write_olmo3);

}  // namespace
}  // namespace rlx
