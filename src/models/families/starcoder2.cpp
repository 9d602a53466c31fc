// StarCoder 2: Llama's attention with biases, layer norms, and a feed-forward block without a gate.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

DecoderConfig read_starcoder2(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, "norm_epsilon", 1e-5)};
  c.qkv_bias = c.attention_output_bias = c.ffn_bias = flag_or(config, "use_bias", true);
  c.gated = false;
  c.tied_output = flag_or(config, "tie_word_embeddings", true);
  c.ropes = {read_rope(config, c.head_size)};
  read_windows(config, c, [](std::size_t) { return true; });
  return c;
}

WeightNames starcoder2_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.layer.push_back({{"ffn.up"}, "mlp.c_fc"});
  names.layer.push_back({{"ffn.down"}, "mlp.c_proj"});
  return names;
}

json::Value write_starcoder2(const DecoderConfig& c) {
  json::Value out = write_llama(c);
  out["norm_epsilon"] = c.norm.eps;
  out["use_bias"] = c.ffn_bias;
  return out;
}

const DecoderFamily starcoder2_family({"starcoder2"}, read_starcoder2, starcoder2_names, write_starcoder2);

}  // namespace
}  // namespace rlx
