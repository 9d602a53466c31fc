// OLMo 2: norms behind attention and the feed-forward block, and over all heads of queries and keys together.
#include "models/decoder_family.h"
#include "models/families/llama.h"
#include "models/rope_config.h"

namespace rlx {
namespace {

WeightNames olmo2_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.layer.push_back({{"attention_post_norm"}, "post_attention_layernorm"});
  names.layer.push_back({{"ffn_post_norm"}, "post_feedforward_layernorm"});
  return names;
}

const DecoderFamily olmo2_family(
    {"olmo2"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.ropes = {read_rope(config, c.head_size)};
      c.norm_before = false, c.norm_after = true;
      c.query_key_norm = QueryKeyNorm::whole;
      return c;
    },
    olmo2_names);

}  // namespace
}  // namespace rlx
