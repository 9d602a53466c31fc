// GPT-2: learned positions, layer norms, biases everywhere, matrices stored (in, out).
#include "models/families/gpt2.h"

#include "models/config/config_field.h"
#include "models/families/decoder_family.h"

namespace rlx {

DecoderConfig read_gpt2_sizes(const JsonField& config) {
  DecoderConfig c;
  c.vocab_size = as_size(config.at("vocab_size"));
  c.hidden_size = as_size(config.at("n_embd"));
  c.max_positions = as_size(config.at("n_positions"));
  c.heads = c.kv_heads = as_size(config.at("n_head"));
  if (c.hidden_size % c.heads != 0) config.at("n_head").refuse("{} heads do not divide n_embd {}", c.heads, c.hidden_size);
  c.head_size = c.hidden_size / c.heads;
  c.ffn_size = size_or(config, "n_inner", 4 * c.hidden_size);
  c.layers.resize(static_cast<std::size_t>(config.at("n_layer").as_integer(1, 1024)));
  return c;
}

namespace {

DecoderConfig read_gpt2(const JsonField& config) {
  DecoderConfig c = read_gpt2_sizes(config);
  const bool by_layer = flag_or(config, "scale_attn_by_inverse_layer_idx", false);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    c.layers[i].rope = -1, c.layers[i].score_divisor = by_layer ? static_cast<double>(i + 1) : 1;
  if (flag_or(config, "add_cross_attention", false)) config.at("add_cross_attention").refuse("true is not supported (allowed: false)");
  if (!flag_or(config, "scale_attn_weights", true)) c.attention_scale = 1;
  c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, "layer_norm_epsilon", 1e-5)};
  c.qkv_bias = c.attention_output_bias = c.ffn_bias = true;
  c.gated = false;
  c.activation = HiddenActivation::gelu_tanh;
  if (const auto act = config.find("activation_function")) c.activation = read_activation(*act);
  c.position_embedding = true;
  c.tied_output = flag_or(config, "tie_word_embeddings", true);
  return c;
}

WeightNames gpt2_names(const DecoderConfig& config) {
  WeightNames names{
      .prefix = "transformer.",
      .unused = {"attn.bias", "attn.masked_bias"},  // the causal mask, in old files
      .whole = {{{"token_embedding"}, "wte"}, {{"position_embedding"}, "wpe"}, {{"output_norm"}, "ln_f"}, {{"output"}, "lm_head"}},
      .layers = "h",
      .layer = {{{"attention_norm"}, "ln_1"},
                {{"attention.q", "attention.k", "attention.v"}, "attn.c_attn", 1, true},
                {{"attention.output"}, "attn.c_proj", 1, true},
                {{"ffn_norm"}, "ln_2"},
                {{"ffn.up"}, "mlp.c_fc", 1, true},
                {{"ffn.down"}, "mlp.c_proj", 1, true}}};
  if (config.tied_output) names.unused.push_back("lm_head");
  return names;
}

json::Value write_gpt2(const DecoderConfig& c) {
  return {{"vocab_size", c.vocab_size},
          {"n_embd", c.hidden_size},
          {"n_positions", c.max_positions},
          {"n_head", c.heads},
          {"n_layer", c.layers.size()},
          {"n_inner", c.ffn_size},
          {"layer_norm_epsilon", c.norm.eps},
          {"activation_function", c.activation == HiddenActivation::gelu_tanh ? "gelu_new" : activation_name(c.activation)},
          {"scale_attn_weights", c.attention_scale != 1},
          {"tie_word_embeddings", c.tied_output}};
}

const DecoderFamily gpt2_family({"gpt2"}, read_gpt2, gpt2_names, write_gpt2);

}  // namespace
}  // namespace rlx
