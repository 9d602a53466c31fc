#include "models/families/llama.h"

#include <algorithm>

#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"

namespace rlx {

DecoderConfig read_llama(const JsonField& config) {
  DecoderConfig c;
  c.vocab_size = as_size(config.at("vocab_size"));
  c.hidden_size = as_size(config.at("hidden_size"));
  c.max_positions = as_size(config.at("max_position_embeddings"));
  c.heads = as_size(config.at("num_attention_heads"));
  c.kv_heads = size_or(config, "num_key_value_heads", c.heads);
  if (c.heads % c.kv_heads != 0) config.at("num_key_value_heads").refuse("{} do not divide {} attention heads", c.kv_heads, c.heads);
  c.head_size = size_or(config, "head_dim", 0);
  if (c.head_size == 0) {
    if (c.hidden_size % c.heads != 0) config.at("num_attention_heads").refuse("{} do not divide hidden_size {}", c.heads, c.hidden_size);
    c.head_size = c.hidden_size / c.heads;
  }
  c.ffn_size = size_or(config, "intermediate_size", 0);
  c.layers.resize(static_cast<std::size_t>(config.at("num_hidden_layers").as_integer(1, 1024)));
  c.norm.eps = non_negative_or(config, "rms_norm_eps", 1e-6);
  c.qkv_bias = c.attention_output_bias = flag_or(config, "attention_bias", false);
  c.ffn_bias = flag_or(config, "mlp_bias", false);
  if (const auto act = config.find("hidden_act")) c.activation = read_activation(*act);
  c.tied_output = flag_or(config, "tie_word_embeddings", false);
  return c;
}

WeightNames llama_names(const DecoderConfig& config) {
  WeightNames names{.prefix = "model.",
                    .unused = {"self_attn.rotary_emb", "rotary_emb"},
                    .whole = {{{"token_embedding"}, "embed_tokens"}, {{"output_norm"}, "norm"}, {{"output"}, "lm_head"}},
                    .layer = {{{"attention_norm"}, "input_layernorm"},
                              {{"attention.q"}, "self_attn.q_proj"},
                              {{"attention.k"}, "self_attn.k_proj"},
                              {{"attention.v"}, "self_attn.v_proj"},
                              {{"attention.output"}, "self_attn.o_proj"},
                              {{"attention.q_norm"}, "self_attn.q_norm"},
                              {{"attention.k_norm"}, "self_attn.k_norm"},
                              {{"ffn_norm"}, "post_attention_layernorm"},
                              {{"ffn.gate"}, "mlp.gate_proj"},
                              {{"ffn.up"}, "mlp.up_proj"},
                              {{"ffn.down"}, "mlp.down_proj"}}};
  if (config.tied_output) names.unused.push_back("lm_head");  // some files bring it all the same
  return names;
}

std::vector<bool> read_sliding_layers(const JsonField& config, std::size_t layers) {
  const auto types = config.find("layer_types");
  if (!types) return {};
  const auto items = types->items();
  if (items.size() != layers) types->refuse("{} entries for {} layers", items.size(), layers);
  std::vector<bool> sliding;
  for (const JsonField& item : items) sliding.push_back(item.as_one_of({"full_attention", "sliding_attention"}) == 1);
  return sliding;
}

json::Value llama_fields(const DecoderConfig& c) {
  json::Value out{{"vocab_size", c.vocab_size},
                  {"hidden_size", c.hidden_size},
                  {"intermediate_size", c.ffn_size > 0 ? c.ffn_size : c.experts.width},
                  {"num_hidden_layers", c.layers.size()},
                  {"num_attention_heads", c.heads},
                  {"num_key_value_heads", c.kv_heads},
                  {"head_dim", c.head_size},
                  {"max_position_embeddings", c.max_positions},
                  {"hidden_act", activation_name(c.activation)},
                  {"tie_word_embeddings", c.tied_output}};
  out[c.norm.centred ? "layer_norm_eps" : "rms_norm_eps"] = c.norm.eps;
  return out;
}

std::int64_t widest_window(const DecoderConfig& c) {
  std::int64_t window = 0;
  for (const DecoderLayer& layer : c.layers) window = std::max(window, layer.window);
  return window;
}

void write_sliding_layers(const DecoderConfig& c, json::Value& out) {
  for (const DecoderLayer& layer : c.layers) out["layer_types"].push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
}

void write_windows(const DecoderConfig& c, json::Value& out) {
  const std::int64_t window = widest_window(c);
  out["sliding_window"] = window > 0 ? json::Value(window) : json::Value();  // left out, it would be that of the class
  if (window == 0) return;
  write_sliding_layers(c, out);
}

json::Value write_llama(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  out["attention_bias"] = c.qkv_bias, out["mlp_bias"] = c.ffn_bias;
  write_rope(c, out);
  out["sliding_window"] = widest_window(c) > 0 ? json::Value(widest_window(c)) : json::Value();
  return out;
}

namespace {

const DecoderFamily llama_family(
    {"llama"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.ropes = {read_rope(config, c.head_size)};
      return c;
    },
    llama_names, write_llama);

/// Arcee: feed-forward blocks have no gate, and square what is positive.
const DecoderFamily arcee_family(
    {"arcee"},
    [](const JsonField& config) {
      DecoderConfig c = read_llama(config);
      c.ropes = {read_rope(config, c.head_size)};
      c.gated = false;
      return c;
    },
    llama_names, write_llama);

}  // namespace
}  // namespace rlx
