// Command R: attention and feed-forward block side by side on one layer norm without bias; neighbours turn together; scaled logits.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

json::Value write_cohere(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  out["attention_bias"] = c.qkv_bias;
  out["logit_scale"] = c.logits_scale;
  out["use_qk_norm"] = c.query_key_norm == QueryKeyNorm::own_head;
  return out;
}

const DecoderFamily cohere_family(
    {"cohere"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      if (flag_or(config, "use_qk_norm", false)) c.query_key_norm = QueryKeyNorm::own_head;
      c.norm = {.centred = true, .eps = non_negative_or(config, "layer_norm_eps", 1e-5)};
      c.parallel = c.shared_norm = true;
      c.logits_scale = number_or(config, "logit_scale", 0.0625);
      c.tied_output = flag_or(config, "tie_word_embeddings", true);
      c.ropes = {read_rope(config, c.head_size)};
      c.ropes[0].style = RopeStyle::interleaved;
      return c;
    },
    llama_names, write_cohere);

}  // namespace
}  // namespace rlx
