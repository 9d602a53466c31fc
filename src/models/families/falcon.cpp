// Falcon: attention and feed-forward block side by side, layer norms, matrices without biases; one head of keys, or groups of them.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

std::int64_t falcon_kv_heads(const JsonField& config, std::int64_t heads, bool grouped) {
  if (grouped) return size_or(config, "num_kv_heads", heads);
  return flag_or(config, "multi_query", true) ? 1 : heads;
}

void read_positions(const JsonField& config, DecoderConfig& c) {
  c.alibi = flag_or(config, "alibi", false);
  if (!c.alibi) c.ropes = {read_rope(config, c.head_size)};
  else
    for (DecoderLayer& layer : c.layers) layer.rope = -1;
}

DecoderConfig read_falcon(const JsonField& config) {
  DecoderConfig c;
  c.vocab_size = as_size(config.at("vocab_size"));
  c.hidden_size = as_size(config.at("hidden_size"));
  c.max_positions = size_or(config, "max_position_embeddings", 2048);
  c.heads = as_size(config.at("num_attention_heads"));
  if (c.hidden_size % c.heads != 0) config.at("num_attention_heads").refuse("{} do not divide hidden_size {}", c.heads, c.hidden_size);
  c.head_size = c.hidden_size / c.heads;
  const bool grouped = flag_or(config, "new_decoder_architecture", false);
  c.kv_heads = falcon_kv_heads(config, c.heads, grouped);
  if (c.heads % c.kv_heads != 0) config.at("num_kv_heads").refuse("{} do not divide {} attention heads", c.kv_heads, c.heads);
  c.ffn_size = size_or(config, "ffn_hidden_size", 4 * c.hidden_size);
  c.layers.resize(static_cast<std::size_t>(config.at("num_hidden_layers").as_integer(1, 1024)));
  c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, "layer_norm_epsilon", 1e-5)};
  c.parallel = grouped || flag_or(config, "parallel_attn", true);
  c.shared_norm = c.parallel && (!grouped || size_or(config, "num_ln_in_parallel_attn", 2) == 1);
  c.qkv_bias = c.attention_output_bias = c.ffn_bias = flag_or(config, "bias", false);
  c.gated = false;
  c.activation = HiddenActivation::gelu;
  if (const auto act = config.find("activation")) c.activation = read_activation(*act);
  c.tied_output = flag_or(config, "tie_word_embeddings", true);
  read_positions(config, c);
  return c;
}

WeightNames falcon_names(const DecoderConfig& config) {
  WeightNames names{.prefix = "transformer.",
                    .whole = {{{"token_embedding"}, "word_embeddings"}, {{"output_norm"}, "ln_f"}, {{"output"}, "lm_head"}},
                    .layers = "h",
                    .layer = {{{"attention_norm"}, config.shared_norm || !config.parallel ? "input_layernorm" : "ln_attn"},
                              {{"attention.q", "attention.k", "attention.v"}, "self_attention.query_key_value", config.kv_heads},
                              {{"attention.output"}, "self_attention.dense"},
                              {{"ffn_norm"}, config.parallel ? "ln_mlp" : "post_attention_layernorm"},
                              {{"ffn.up"}, "mlp.dense_h_to_4h"},
                              {{"ffn.down"}, "mlp.dense_4h_to_h"}}};
  if (config.tied_output) names.unused.push_back("lm_head");
  return names;
}

json::Value write_falcon(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  const bool grouped = c.parallel && !c.shared_norm;  // only the newer ones have two norms
  out["layer_norm_epsilon"] = c.norm.eps;
  out["ffn_hidden_size"] = c.ffn_size;
  out["num_kv_heads"] = c.kv_heads;
  out["new_decoder_architecture"] = grouped || (c.kv_heads != 1 && c.kv_heads != c.heads);
  out["num_ln_in_parallel_attn"] = grouped ? 2 : 1;
  out["multi_query"] = c.kv_heads == 1;
  out["parallel_attn"] = c.parallel;
  out["bias"] = c.qkv_bias;
  out["alibi"] = c.alibi;
  out["activation"] = activation_name(c.activation);
  return out;
}

const DecoderFamily falcon_family({"falcon"}, read_falcon, falcon_names, write_falcon);

}  // namespace
}  // namespace rlx
