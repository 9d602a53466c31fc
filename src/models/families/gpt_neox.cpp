// GPT-NeoX (Pythia): attention and feed-forward block side by side, layer norms, biases, one tensor for queries, keys and values.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

DecoderConfig read_gpt_neox(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, "layer_norm_eps", 1e-5)};
  c.parallel = flag_or(config, "use_parallel_residual", true);
  c.qkv_bias = c.attention_output_bias = flag_or(config, "attention_bias", true);
  c.ffn_bias = true, c.gated = false;
  RopeOptions rope = read_rope(config, c.head_size);
  if (const auto theta = config.find("rotary_emb_base"); theta && !config.find("rope_parameters"))
    rope.theta = number_or(config, "rotary_emb_base", 10000);
  if (config.find("rotary_pct") && !config.find("rope_parameters"))
    rope.dims = rotary_part(config, c.head_size, number_or(config, "rotary_pct", 1));
  c.ropes = {rope};
  return c;
}

WeightNames gpt_neox_names(const DecoderConfig& config) {
  return {.prefix = "gpt_neox.",
          .unused = {"attention.bias", "attention.masked_bias", "attention.rotary_emb"},
          .whole = {{{"token_embedding"}, "embed_in"}, {{"output_norm"}, "final_layer_norm"}, {{"output"}, "embed_out"}},
          .layer = {{{"attention_norm"}, "input_layernorm"},
                    {{"attention.q", "attention.k", "attention.v"}, "attention.query_key_value", config.heads},
                    {{"attention.output"}, "attention.dense"},
                    {{"ffn_norm"}, "post_attention_layernorm"},
                    {{"ffn.up"}, "mlp.dense_h_to_4h"},
                    {{"ffn.down"}, "mlp.dense_4h_to_h"}}};
}

json::Value write_gpt_neox(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  out.erase("num_key_value_heads");
  out["use_parallel_residual"] = c.parallel;
  out["attention_bias"] = c.qkv_bias;
  return out;
}

const DecoderFamily gpt_neox_family({"gpt_neox"}, read_gpt_neox, gpt_neox_names, write_gpt_neox);

}  // namespace
}  // namespace rlx
