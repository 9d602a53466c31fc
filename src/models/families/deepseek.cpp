// DeepSeek V2 and V3: latent attention, mixtures with shared experts behind the first layers; V3's router usually scores experts by
// sigmoids, and chooses them with a bias.
#include <algorithm>
#include <cmath>

#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/mixture.h"

namespace rlx {
namespace {

/// Elements of a head; bounded so that sums of products with other sizes fit 64 bits.
std::int64_t head_part(const JsonField& field) { return static_cast<std::int64_t>(field.as_integer(1, 65536)); }

void read_latent_attention(const JsonField& config, DecoderConfig& c) {
  LatentAttentionConfig& l = c.latent;
  l.query_rank = count_or(config, "q_lora_rank", 0);
  l.rank = as_size(config.at("kv_lora_rank"));
  l.plain_size = head_part(config.at("qk_nope_head_dim"));
  l.rope_size = head_part(config.at("qk_rope_head_dim"));
  l.value_size = head_part(config.at("v_head_dim"));
  if (const auto turning = config.find("head_dim"); turning && as_size(*turning) != l.rope_size)
    turning->refuse("{} is not supported (allowed: qk_rope_head_dim, {})", as_size(*turning), l.rope_size);
  c.head_size = l.plain_size + l.rope_size;
  c.ropes = {read_rope(config, l.rope_size)};
  c.ropes[0].style = flag_or(config, "rope_interleave", true) ? RopeStyle::interleaved : RopeStyle::half;
  c.attention_scale = yarn_score_factor(config) / std::sqrt(static_cast<double>(c.head_size));
  for (DecoderLayer& layer : c.layers) layer.mixer = Mixer::latent_attention;
}

void read_deepseek_experts(const JsonField& config, DecoderConfig& c) {
  ExpertsConfig& e = c.experts;
  e.count = expert_count(config, "n_routed_experts");
  e.chosen = as_size(config.at("num_experts_per_tok"));
  e.width = as_size(config.at("moe_intermediate_size"));
  e.shared_width = count_or(config, "n_shared_experts", 0) * e.width;
  e.scale = number_or(config, "routed_scaling_factor", 1);
  check_experts(config, e);
  const auto dense = static_cast<std::size_t>(count_or(config, "first_k_dense_replace", 0));
  const auto step = static_cast<std::size_t>(size_or(config, "moe_layer_freq", 1));
  for (std::size_t i = 0; i < c.layers.size(); ++i) c.layers[i].experts = i >= dense && i % step == 0;
}

void read_groups(const JsonField& config, std::int64_t judges, ExpertsConfig& e) {
  e.groups = size_or(config, "n_group", 1);
  e.chosen_groups = size_or(config, "topk_group", 1);
  e.group_judges = judges;
  if (!groups_suffice(e))
    config.refuse("a token takes {} of {} experts from {} of {} groups, each judged by its best {} (allowed: equal groups that suffice)",
                  e.chosen, e.count, e.chosen_groups, e.groups, judges);
}

/// How experts are scored, chosen and weighed. A group is judged by its best expert, or where there is a bias by its best two.
void read_router(const JsonField& config, bool third, ExpertsConfig& e) {
  const auto scores = config.find("scoring_func"), method = config.find("topk_method");
  e.sigmoid = scores ? scores->as_one_of({"softmax", "sigmoid"}) == 1 : third;
  const std::size_t chosen = method ? method->as_one_of({"greedy", "group_limited_greedy", "noaux_tc"}) : third ? 2 : 0;
  e.router_bias = chosen == 2;
  e.normalize = flag_or(config, "norm_topk_prob", third);
  if (chosen > 0) read_groups(config, e.router_bias ? 2 : 1, e);
}

DecoderConfig read_deepseek(const JsonField& config, bool third) {
  DecoderConfig c = read_llama(config);
  read_latent_attention(config, c);
  read_deepseek_experts(config, c);
  read_router(config, third, c.experts);
  return c;
}

WeightNames deepseek_names(const DecoderConfig& config) {
  WeightNames names = mixture_names(config);
  for (const WeightName& line : std::vector<WeightName>{{{"attention.q_input"}, "self_attn.q_a_proj"},
                                                        {{"attention.q_input_norm"}, "self_attn.q_a_layernorm"},
                                                        {{"attention.latent", "attention.rope_key"}, "self_attn.kv_a_proj_with_mqa"},
                                                        {{"attention.latent_norm"}, "self_attn.kv_a_layernorm"},
                                                        {{"attention.k", "attention.v"}, "self_attn.kv_b_proj", config.heads},
                                                        {{"experts.router_bias"}, "mlp.gate.e_score_correction_bias"},
                                                        {{"experts.shared.gate"}, "mlp.shared_experts.gate_proj"},
                                                        {{"experts.shared.up"}, "mlp.shared_experts.up_proj"},
                                                        {{"experts.shared.down"}, "mlp.shared_experts.down_proj"}})
    names.layer.push_back(line);
  if (config.latent.query_rank > 0) names.layer.push_back({{"attention.q"}, "self_attn.q_b_proj"});
  names.used_layers = config.layers.size();  // those behind predict several tokens at a time
  return names;
}

/// YaRN's scores of latent attention are multiplied by a number that the config gives by its weight.
void write_latent_rope(const DecoderConfig& c, json::Value& out) {
  if (c.ropes.empty()) return;
  const RopeOptions& rope = c.ropes.front();
  out["rope_theta"] = rope.theta;
  out["rope_interleave"] = rope.style == RopeStyle::interleaved;
  if (rope.scaling != RopeScaling::yarn) return;
  const double scale = std::sqrt(c.attention_scale * std::sqrt(static_cast<double>(c.head_size)));
  out["rope_scaling"] = {{"type", "yarn"},
                         {"factor", rope.factor},
                         {"original_max_position_embeddings", static_cast<std::int64_t>(rope.original_length)},
                         {"beta_fast", rope.beta_fast},
                         {"beta_slow", rope.beta_slow},
                         {"attention_factor", rope.attention_factor},
                         {"mscale_all_dim", (scale - 1) / (0.1 * std::log(rope.factor))}};
}

json::Value write_deepseek(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  const LatentAttentionConfig& l = c.latent;
  const ExpertsConfig& e = c.experts;
  out["num_key_value_heads"] = c.heads;
  out.erase("head_dim");
  write_latent_rope(c, out);
  out["attention_bias"] = c.qkv_bias;
  out["q_lora_rank"] = l.query_rank > 0 ? json::Value(l.query_rank) : json::Value();
  out["kv_lora_rank"] = l.rank;
  out["qk_nope_head_dim"] = l.plain_size, out["qk_rope_head_dim"] = l.rope_size, out["v_head_dim"] = l.value_size;
  out["n_routed_experts"] = e.count;
  out["num_experts_per_tok"] = e.chosen;
  out["moe_intermediate_size"] = e.width;
  out["n_shared_experts"] = e.shared_width / e.width;
  out["routed_scaling_factor"] = e.scale;
  out["norm_topk_prob"] = e.normalize;
  out["n_group"] = e.groups, out["topk_group"] = e.chosen_groups;
  out["first_k_dense_replace"] = std::ranges::find(c.layers, true, &DecoderLayer::experts) - c.layers.begin();
  out["scoring_func"] = e.sigmoid ? "sigmoid" : "softmax";
  out["topk_method"] = e.router_bias ? "noaux_tc" : e.groups > 1 ? "group_limited_greedy" : "greedy";
  return out;
}

const DecoderFamily deepseek_v2_family(
    {"deepseek_v2"}, [](const JsonField& config) { return read_deepseek(config, false); }, deepseek_names, write_deepseek);
const DecoderFamily deepseek_v3_family(
    {"deepseek_v3"}, [](const JsonField& config) { return read_deepseek(config, true); }, deepseek_names, write_deepseek);

}  // namespace
}  // namespace rlx
