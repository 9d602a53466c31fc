// StableLM: Llama with layer norms, part of whose heads turns; in some models each head has a norm of its own.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

json::Value write_stablelm(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  out["use_qkv_bias"] = c.qkv_bias;
  out["use_parallel_residual"] = c.parallel;
  out["qk_layernorm"] = c.query_key_norm == QueryKeyNorm::own_head;
  return out;
}

WeightNames stablelm_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.layer.push_back({{"attention.q_norm"}, "self_attn.q_layernorm.norms.{e}"});
  names.layer.push_back({{"attention.k_norm"}, "self_attn.k_layernorm.norms.{e}"});
  return names;
}

const DecoderFamily stablelm_family(
    {"stablelm"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      if (flag_or(config, "qk_layernorm", false)) c.query_key_norm = QueryKeyNorm::own_head;
      c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, "layer_norm_eps", 1e-5)};
      c.qkv_bias = flag_or(config, "use_qkv_bias", false), c.attention_output_bias = false;
      c.parallel = c.shared_norm = flag_or(config, "use_parallel_residual", false);
      c.ropes = {read_rope(config, c.head_size)};
      return c;
    },
    stablelm_names, write_stablelm);

}  // namespace
}  // namespace rlx
