// Phi 1 and 2: attention and feed-forward block side by side on one layer norm, biases everywhere, part of a head turns.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

DecoderConfig read_phi(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  if (flag_or(config, "qk_layernorm", false)) c.query_key_norm = QueryKeyNorm::head;
  c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, "layer_norm_eps", 1e-5)};
  c.parallel = c.shared_norm = true;
  c.qkv_bias = c.attention_output_bias = c.ffn_bias = c.output_bias = true;
  c.gated = false;
  c.ropes = {read_rope(config, c.head_size)};
  return c;
}

WeightNames phi_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.whole.push_back({{"output_norm"}, "final_layernorm"});
  names.layer.push_back({{"attention.output"}, "self_attn.dense"});
  names.layer.push_back({{"attention.q_norm"}, "self_attn.q_layernorm"});
  names.layer.push_back({{"attention.k_norm"}, "self_attn.k_layernorm"});
  names.layer.push_back({{"ffn.up"}, "mlp.fc1"});
  names.layer.push_back({{"ffn.down"}, "mlp.fc2"});
  return names;
}

json::Value write_phi(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  out["qk_layernorm"] = c.query_key_norm == QueryKeyNorm::head;
  return out;
}

const DecoderFamily phi_family({"phi"}, read_phi, phi_names, write_phi);

}  // namespace
}  // namespace rlx
