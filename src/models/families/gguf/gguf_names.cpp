// The names of tensors in GGUF files, which all architectures share but for a few.
#include "models/families/gguf/gguf_decoder.h"
#include "models/families/gguf/gguf_encoder.h"
#include "models/families/gguf/gguf_keys.h"

namespace rlx {
namespace {

const std::vector<WeightName>& common_names() {
  static const std::vector<WeightName> names{
      {{"attention_norm"}, "attn_norm"},
      {{"attention_post_norm"}, "post_attention_norm"},
      {{"attention.q"}, "attn_q"},
      {{"attention.k"}, "attn_k"},
      {{"attention.v"}, "attn_v"},
      {{"attention.output"}, "attn_output"},
      {{"attention.q_norm"}, "attn_q_norm"},
      {{"attention.k_norm"}, "attn_k_norm"},
      {{"ffn_norm"}, "ffn_norm"},
      {{"ffn_post_norm"}, "post_ffw_norm"},
      {{"ffn.gate"}, "ffn_gate"},
      {{"ffn.up"}, "ffn_up"},
      {{"ffn.down"}, "ffn_down"},
      {{"experts.router"}, "ffn_gate_inp"},
      {{"experts.gate"}, "ffn_gate_exps"},
      {{"experts.up"}, "ffn_up_exps"},
      {{"experts.down"}, "ffn_down_exps"},
      {{"experts.shared.gate"}, "ffn_gate_shexp"},
      {{"experts.shared.up"}, "ffn_up_shexp"},
      {{"experts.shared.down"}, "ffn_down_shexp"},
      {{"experts.shared_gate"}, "ffn_gate_inp_shexp"},
      {{"experts.router_bias"}, "exp_probs_b.bias"},
      {{"attention.q_input"}, "attn_q_a"},
      {{"attention.q_input_norm"}, "attn_q_a_norm"},
      {{"attention.latent", "attention.rope_key"}, "attn_kv_a_mqa"},
      {{"attention.latent_norm"}, "attn_kv_a_norm"},
      {{"state_space.input", "state_space.gate"}, "ssm_in"},
      {{"state_space.convolution"}, "ssm_conv1d"},
      {{"state_space.step_input", "state_space.b", "state_space.c"}, "ssm_x"},
      {{"state_space.step"}, "ssm_dt"},
      {{"state_space.step_norm"}, "ssm_dt_norm"},
      {{"state_space.b_norm"}, "ssm_b_norm"},
      {{"state_space.c_norm"}, "ssm_c_norm"},
      {{"state_space.decay"}, "ssm_a"},
      {{"state_space.skip"}, "ssm_d"},
      {{"state_space.norm"}, "ssm_norm"},
      {{"state_space.output"}, "ssm_out"},
      {{"short_convolution.before", "short_convolution.after", "short_convolution.input"}, "shortconv.in_proj"},
      {{"short_convolution.kernel"}, "shortconv.conv"},
      {{"short_convolution.output"}, "shortconv.out_proj"}};
  return names;
}

void add_latent_names(const DecoderConfig& c, std::vector<WeightName>& layer) {
  if (c.latent.query_rank > 0) layer.push_back({{"attention.q"}, "attn_q_b"});
  if (c.latent.keys_by_feature) layer.push_back({{"attention.k"}, "attn_k_b"}), layer.push_back({{"attention.v"}, "attn_v_b"});
  else layer.push_back({{"attention.k", "attention.v"}, "attn_kv_b", c.heads});
}

void add_delta_names(const DecoderConfig& c, const GgufLayout& layout, std::vector<WeightName>& layer) {
  for (const WeightName& line : std::vector<WeightName>{{{"attention.q", "attention.gate"}, "attn_q", c.heads},
                                                        {{"ffn_norm"}, "post_attention_norm"},
                                                        {{"delta_net.q", "delta_net.k", "delta_net.v"}, "attn_qkv"},
                                                        {{"delta_net.gate"}, "attn_gate"},
                                                        {{"delta_net.convolution"}, "ssm_conv1d"},
                                                        {{"delta_net.decay_bias"}, "ssm_dt.bias"},
                                                        {{"delta_net.decay_rate"}, "ssm_a"},
                                                        {{"delta_net.norm"}, "ssm_norm"},
                                                        {{"delta_net.output"}, "ssm_out"},
                                                        {{"delta_net.beta"}, "ssm_beta"},
                                                        {{"delta_net.decay"}, "ssm_alpha"}})
    layer.push_back(line);
  const std::int64_t groups = c.delta_net.key_heads;
  if (!c.delta_net.heads_in_turn) layer.push_back({{"delta_net.beta", "delta_net.decay"}, "ssm_ba", groups});
  if (layout.one_delta_input) layer.push_back({{"delta_net.q", "delta_net.k", "delta_net.v", "delta_net.gate"}, "ssm_in", groups});
}

}  // namespace

GgufLayout GgufLayout::of(const GgufFile& file, const DecoderConfig& c) {
  const auto has = [&](std::string_view tensor) {
    for (std::size_t i = 0; i < c.layers.size(); ++i)
      if (file.find(fmt::format("blk.{}.{}.weight", i, tensor)) != nullptr) return true;
    return false;
  };
  const bool delta = c.delta_net.key_heads > 0;
  const std::int64_t several = GgufConfig(file, file.value("general.architecture").string()).size_or("nextn_predict_layers", 0);
  return {.fused_attention = has("attn_qkv") && !delta,
          .fused_feed_forward = c.gated && c.experts.count == 0 && !has("ffn_gate"),
          .second_norm = has("attn_norm_2"),
          .last_norm_of_embeddings = c.causal && file.find("token_embd_norm.weight") != nullptr,
          .one_delta_input = delta && has("ssm_in"),
          .used_layers = several > 0 ? c.layers.size() : 0};
}

GgufLayout GgufLayout::of(std::string_view architecture, const DecoderConfig& c, const WeightNames& folder) {
  const auto parts = [&](std::string_view param) { return place_of(param, 1, folder).siblings.size(); };
  return {.fused_attention = parts("layers.0.attention.q.weight") == 3,
          .fused_feed_forward = parts("layers.0.ffn.gate.weight") == 2,
          .second_norm = architecture == "falcon" && c.parallel && !c.shared_norm,
          .last_norm_of_embeddings = architecture.starts_with("lfm2")};
}

WeightNames gguf_names(const DecoderConfig& c, const GgufLayout& layout) {
  WeightNames names{.unused = {"rope_freqs", "rope_factors_long", "rope_factors_short"},
                    .whole = {{{"token_embedding"}, "token_embd"},
                              {{"position_embedding"}, "position_embd"},
                              {{"output_norm"}, layout.last_norm_of_embeddings ? "token_embd_norm" : "output_norm"},
                              {{"output"}, "output"}},
                    .layers = "blk",
                    .layer = common_names(),
                    .used_layers = layout.used_layers};
  if (layout.fused_attention) names.layer.push_back({{"attention.q", "attention.k", "attention.v"}, "attn_qkv"});
  if (layout.fused_feed_forward) names.layer.push_back({{"ffn.gate", "ffn.up"}, "ffn_up"});
  if (layout.second_norm) names.layer.push_back({{"attention_norm"}, "attn_norm_2"}), names.layer.push_back({{"ffn_norm"}, "attn_norm"});
  if (c.latent.rank > 0) add_latent_names(c, names.layer);
  if (c.delta_net.key_heads > 0) add_delta_names(c, layout, names.layer);
  if (c.state_space.heads > 0) {
    names.layer.push_back({{"state_space.gate", "state_space.input", "state_space.step"}, "ssm_in"});
    names.layer.push_back({{"state_space.step_bias"}, "ssm_dt.bias"});
  }
  if (!c.causal && !c.norm_after) add_gguf_encoder_names(names);
  if (!c.causal) add_gguf_dense_names(names);
  return names;
}

}  // namespace rlx
