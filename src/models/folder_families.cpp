#include "models/folder_families.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "models/gguf_config.h"
#include "models/same_model.h"

namespace rlx {
namespace {

/// Sizes in the spelling of Llama, which most families took over.
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

/// Llama 3's scaling, of which a file keeps only the factors. All its models have these two bounds; the length is found by trying.
json::Value llama3_scaling(const RopeOptions& rope) {
  RopeOptions tried = rope;
  tried.factor = *std::max_element(rope.short_factors.begin(), rope.short_factors.end());
  tried.low_freq_factor = 1, tried.high_freq_factor = 4;
  for (tried.original_length = 16; tried.original_length < 1 << 20; tried.original_length *= 2) {
    const std::vector<float> factors = llama3_factors(tried);
    if (nearly({factors.begin(), factors.end()}, rope.short_factors)) break;
  }
  return {{"rope_type", "llama3"},
          {"factor", tried.factor},
          {"low_freq_factor", tried.low_freq_factor},
          {"high_freq_factor", tried.high_freq_factor},
          {"original_max_position_embeddings", static_cast<std::int64_t>(tried.original_length)}};
}

void write_rope(const DecoderConfig& c, json::Value& out) {
  if (c.ropes.empty()) return;
  const RopeOptions& rope = c.ropes.front();
  out["rope_theta"] = rope.theta;
  if (rope.dims != c.head_size) out["partial_rotary_factor"] = static_cast<double>(rope.dims) / static_cast<double>(c.head_size);
  const auto length = static_cast<std::int64_t>(rope.original_length);
  if (rope.scaling == RopeScaling::linear) out["rope_scaling"] = {{"rope_type", "linear"}, {"factor", rope.factor}};
  if (rope.scaling == RopeScaling::yarn)
    out["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", rope.factor}, {"original_max_position_embeddings", length}};
  if (rope.scaling != RopeScaling::longrope) return;
  if (rope.short_factors == rope.long_factors) {
    out["rope_scaling"] = llama3_scaling(rope);
  } else {
    out["original_max_position_embeddings"] = length;
    out["rope_scaling"] = {{"rope_type", "longrope"},
                           {"short_factor", rope.short_factors},
                           {"long_factor", rope.long_factors},
                           {"attention_factor", rope.attention_factor}};
  }
}

std::int64_t window_of(const DecoderConfig& c) {
  std::int64_t window = 0;
  for (const DecoderLayer& layer : c.layers) window = std::max(window, layer.window);
  return window;
}

void write_windows(const DecoderConfig& c, json::Value& out) {
  const std::int64_t window = window_of(c);
  if (window == 0) return;
  out["sliding_window"] = window;
  for (const DecoderLayer& layer : c.layers) out["layer_types"].push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
}

void write_experts(const DecoderConfig& c, json::Value& out) {
  out["num_experts"] = c.experts.count;
  out["num_experts_per_tok"] = c.experts.chosen;
  out["moe_intermediate_size"] = c.experts.width;
  out["norm_topk_prob"] = c.experts.normalize;
  if (c.experts.shared_width > 0) out["shared_expert_intermediate_size"] = c.experts.shared_width;
  out["decoder_sparse_step"] = 1;
  out["mlp_only_layers"] = json::Value::array();
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    if (!c.layers[i].experts) out["mlp_only_layers"].push_back(i);
}

void write_llama(const DecoderConfig& c, json::Value& out) {
  out["attention_bias"] = c.qkv_bias, out["mlp_bias"] = c.ffn_bias;
  write_rope(c, out);
  if (window_of(c) > 0) out["sliding_window"] = window_of(c);
}

void write_mixtral(const DecoderConfig& c, json::Value& out) {
  write_llama(c, out);
  out["num_local_experts"] = c.experts.count;
  out["num_experts_per_tok"] = c.experts.chosen;
}

void write_qwen(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  write_windows(c, out);
  if (window_of(c) > 0) out["use_sliding_window"] = true;
  if (c.experts.count > 0) write_experts(c, out);
}

void write_gemma(const DecoderConfig& c, json::Value& out) {
  out["hidden_activation"] = activation_name(c.activation);
  write_rope(c, out);
  if (!c.norm_after) return;
  const double scale = c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  out["query_pre_attn_scalar"] = static_cast<std::int64_t>(std::llround(1 / (scale * scale)));  // an integer in all of the family
  if (c.attention_softcap > 0) out["attn_logit_softcapping"] = c.attention_softcap;
  if (c.logits_softcap > 0) out["final_logit_softcapping"] = c.logits_softcap;
  write_windows(c, out);
  if (c.ropes.size() > 1) out["rope_local_base_freq"] = c.ropes[1].theta;
}

void write_phi3(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  if (window_of(c) > 0) out["sliding_window"] = window_of(c);
}

void write_gpt2(const DecoderConfig& c, json::Value& out) {
  out = {{"vocab_size", c.vocab_size},          {"n_embd", c.hidden_size},
         {"n_positions", c.max_positions},      {"n_head", c.heads},
         {"n_layer", c.layers.size()},          {"n_inner", c.ffn_size},
         {"layer_norm_epsilon", c.norm.eps},    {"activation_function", "gelu_new"},
         {"tie_word_embeddings", c.tied_output}};
}

void write_granite(const DecoderConfig& c, json::Value& out) {
  write_llama(c, out);
  out["embedding_multiplier"] = c.embedding_scale;
  out["residual_multiplier"] = c.residual_scale;
  out["attention_multiplier"] = c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  out["logits_scaling"] = 1 / c.logits_scale;
}

void write_bert(const DecoderConfig& c, json::Value& out) {
  out.erase("head_dim");
  out["type_vocab_size"] = c.token_types;
}

void write_distilbert(const DecoderConfig& c, json::Value& out) {
  out = {{"vocab_size", c.vocab_size},
         {"dim", c.hidden_size},
         {"hidden_dim", c.ffn_size},
         {"n_layers", c.layers.size()},
         {"n_heads", c.heads},
         {"max_position_embeddings", c.max_positions},
         {"activation", activation_name(c.activation)}};
}

void write_nomic(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  out["type_vocab_size"] = c.token_types;
}

void write_modernbert(const DecoderConfig& c, json::Value& out) {
  out.erase("layer_norm_eps");
  out["norm_eps"] = c.norm.eps;
  out["hidden_activation"] = activation_name(c.activation);
  out["local_attention"] = 2 * window_of(c);
  for (const DecoderLayer& layer : c.layers) out["layer_types"].push_back(layer.window > 0 ? "sliding_attention" : "full_attention");
  out["global_rope_theta"] = c.ropes[0].theta, out["local_rope_theta"] = c.ropes.size() > 1 ? c.ropes[1].theta : c.ropes[0].theta;
  out["classifier_pooling"] = c.text_head.mean ? "mean" : "cls";
}

void write_gpt_neox(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  out.erase("num_key_value_heads");
  out["use_parallel_residual"] = c.parallel;
  out["attention_bias"] = c.qkv_bias;
}

void write_falcon(const DecoderConfig& c, json::Value& out) {
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
  out["alibi"] = false;
  out["activation"] = activation_name(c.activation);
}

void write_starcoder2(const DecoderConfig& c, json::Value& out) {
  write_llama(c, out);
  out["norm_epsilon"] = c.norm.eps;
  out["use_bias"] = c.ffn_bias;
}

void write_stablelm(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  if (!c.ropes.empty() && c.ropes[0].dims == c.head_size) out["partial_rotary_factor"] = 1.0;  // what is left out means a quarter
  out["use_qkv_bias"] = c.qkv_bias;
  out["use_parallel_residual"] = c.parallel;
}

void write_phi(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  if (!c.ropes.empty() && c.ropes[0].dims == c.head_size) out["partial_rotary_factor"] = 1.0;  // what is left out means a half
}

void write_cohere(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  out["attention_bias"] = c.qkv_bias;
  out["logit_scale"] = c.logits_scale;
}

void write_smollm3(const DecoderConfig& c, json::Value& out) {
  write_llama(c, out);
  for (const DecoderLayer& layer : c.layers) out["no_rope_layers"].push_back(layer.rope < 0 ? 0 : 1);  // despite its name
}

void write_olmo3(const DecoderConfig& c, json::Value& out) {
  write_llama(c, out);
  write_windows(c, out);
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

void write_deepseek(const DecoderConfig& c, json::Value& out) {
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
  if (!e.sigmoid) out["topk_method"] = e.groups > 1 ? "group_limited_greedy" : "greedy";
}

void write_lfm2(const DecoderConfig& c, json::Value& out) {
  write_rope(c, out);
  out["norm_eps"] = c.norm.eps;
  out["conv_L_cache"] = c.short_convolution.kernel, out["conv_bias"] = c.short_convolution.bias;
  out["block_auto_adjust_ff_dim"] = false;
  for (const DecoderLayer& layer : c.layers)
    out["layer_types"].push_back(layer.mixer == Mixer::short_convolution ? "conv" : "full_attention");
  const ExpertsConfig& e = c.experts;
  if (e.count == 0) return;
  out["num_experts"] = e.count, out["num_experts_per_tok"] = e.chosen, out["moe_intermediate_size"] = e.width;
  out["norm_topk_prob"] = e.normalize, out["use_expert_bias"] = e.router_bias, out["routed_scaling_factor"] = e.scale;
  out["num_dense_layers"] = std::ranges::find(c.layers, true, &DecoderLayer::experts) - c.layers.begin();
}

void write_qwen3_5(const DecoderConfig& c, json::Value& out) {
  const DeltaNetConfig& d = c.delta_net;
  write_rope(c, out);
  out["linear_num_key_heads"] = d.key_heads, out["linear_num_value_heads"] = d.value_heads;
  out["linear_key_head_dim"] = d.key_size, out["linear_value_head_dim"] = d.value_size;
  out["linear_conv_kernel_dim"] = d.kernel;
  for (const DecoderLayer& layer : c.layers)
    out["layer_types"].push_back(layer.mixer == Mixer::delta_net ? "linear_attention" : "full_attention");
  if (c.experts.count > 0) write_experts(c, out);
}

/// What models of nothing but state spaces have in common.
json::Value state_space_fields(const DecoderConfig& c) {
  const StateSpaceConfig& s = c.state_space;
  return {{"vocab_size", c.vocab_size},
          {"hidden_size", c.hidden_size},
          {"intermediate_size", s.width},
          {"expand", s.width / c.hidden_size},
          {"num_hidden_layers", c.layers.size()},
          {"state_size", s.states},
          {"conv_kernel", s.kernel},
          {"use_bias", s.bias},
          {"use_conv_bias", s.convolution_bias},
          {"hidden_act", activation_name(c.activation)},
          {"layer_norm_epsilon", c.norm.eps},
          {"tie_word_embeddings", c.tied_output}};
}

void write_mamba(const DecoderConfig& c, json::Value& out) {
  out = state_space_fields(c);
  out["time_step_rank"] = c.state_space.step_rank;
  if (c.state_space.norm) out["mixer_rms_eps"] = c.state_space.norm->eps;
}

void write_mamba2(const DecoderConfig& c, json::Value& out) {
  const StateSpaceConfig& s = c.state_space;
  out = state_space_fields(c);
  out["num_heads"] = s.heads, out["head_dim"] = s.width / s.heads;
  out["n_groups"] = s.groups;
  if (s.least_step > 0 || std::isfinite(s.largest_step)) out["time_step_limit"] = {s.least_step, s.largest_step};
}

/// The first layer of a kind, and after how many layers the next one comes; the whole model where there is none.
std::pair<std::int64_t, std::int64_t> turn_of(const std::vector<DecoderLayer>& layers, bool (*is)(const DecoderLayer& layer)) {
  const auto first = std::find_if(layers.begin(), layers.end(), is);
  if (first == layers.end()) return {0, std::ssize(layers) + 1};
  const auto next = std::find_if(first + 1, layers.end(), is);
  return {first - layers.begin(), next == layers.end() ? std::ssize(layers) : next - first};
}

void write_jamba(const DecoderConfig& c, json::Value& out) {
  const StateSpaceConfig& s = c.state_space;
  out["mamba_expand"] = s.width / c.hidden_size;
  out["mamba_d_state"] = s.states, out["mamba_dt_rank"] = s.step_rank, out["mamba_d_conv"] = s.kernel;
  out["mamba_proj_bias"] = s.bias, out["mamba_conv_bias"] = s.convolution_bias;
  const auto [attention, attention_period] = turn_of(c.layers, [](const DecoderLayer& layer) { return layer.mixer == Mixer::attention; });
  out["attn_layer_offset"] = attention, out["attn_layer_period"] = attention_period;
  const auto [experts, expert_period] = turn_of(c.layers, [](const DecoderLayer& layer) { return layer.experts; });
  out["expert_layer_offset"] = experts, out["expert_layer_period"] = expert_period;
  out["num_experts"] = std::max<std::int64_t>(c.experts.count, 1), out["num_experts_per_tok"] = std::max<std::int64_t>(c.experts.chosen, 1);
}

/// Positions begin behind that of padding.
void write_roberta(const DecoderConfig& c, json::Value& out) {
  constexpr std::int64_t first = 2;
  write_bert(c, out);
  out["pad_token_id"] = first - 1;
  out["max_position_embeddings"] = c.max_positions + first;
}

/// Whether the file's tokenizer is RoBERTa's, which GGUF files tell from BERT's by nothing else.
bool has_pre_tokenizer(const GgufFile& file, std::string_view model, std::string_view pre) {
  const GgufValue* kind = file.find_value("tokenizer.ggml.model");
  const GgufValue* split = file.find_value("tokenizer.ggml.pre");
  return kind && kind->string() == model && split && split->string() == pre;
}

constexpr FolderFamily::Fits has_latent_experts = [](const GgufFile&, const DecoderConfig& c) {
  return c.latent.rank > 0 && c.experts.count > 0;
};
constexpr FolderFamily::Fits has_state_space_heads = [](const GgufFile&, const DecoderConfig& c) { return c.state_space.heads > 0; };
constexpr FolderFamily::Fits has_experts = [](const GgufFile&, const DecoderConfig& c) { return c.experts.count > 0; };
constexpr FolderFamily::Fits has_window = [](const GgufFile&, const DecoderConfig& c) { return window_of(c) > 0; };

constexpr FolderFamily families[] = {
    {"mixtral", "llama", "Mixtral", write_mixtral, has_experts},
    {"mistral", "llama", "Mistral", write_llama, has_window},
    {"llama", "llama", "Llama", write_llama},
    {"ministral", "llama"},
    {"qwen2", "qwen2", "Qwen2", write_qwen},
    {"qwen2_moe", "qwen2moe", "Qwen2Moe", write_qwen},
    {"qwen3", "qwen3", "Qwen3", write_qwen},
    {"qwen3_moe", "qwen3moe", "Qwen3Moe", write_qwen},
    {"qwen3_next", "qwen3next", "Qwen3Next", write_qwen3_5},
    {"qwen3_5_text", "qwen35", "Qwen3_5", write_qwen3_5},
    {"qwen3_5", "qwen35"},
    {"gemma", "gemma", "Gemma", write_gemma},
    {"gemma2", "gemma2", "Gemma2", write_gemma},
    {"gemma3_text", "gemma3", "Gemma3", write_gemma},
    {"gemma3", "gemma3"},
    {"phi3", "phi3", "Phi3", write_phi3},
    {"phi", "phi2", "Phi", write_phi},
    {"gpt2", "gpt2", "GPT2", write_gpt2},
    {"gpt_neox", "gptneox", "GPTNeoX", write_gpt_neox},
    {"falcon", "falcon", "Falcon", write_falcon},
    {"starcoder2", "starcoder2", "Starcoder2", write_starcoder2},
    {"stablelm", "stablelm", "StableLm", write_stablelm},
    {"cohere", "command-r", "Cohere", write_cohere},
    {"smollm3", "smollm3", "SmolLM3", write_smollm3},
    {"granite", "granite", "Granite", write_granite},
    {"olmo3", "olmo2", "Olmo3", write_olmo3, has_window},
    {"olmo2", "olmo2", "Olmo2", write_llama},
    {"deepseek_v3", "deepseek2", "DeepseekV3", write_deepseek,
     [](const GgufFile& file, const DecoderConfig& c) { return has_latent_experts(file, c) && c.experts.sigmoid; }},
    {"deepseek_v2", "deepseek2", "DeepseekV2", write_deepseek, has_latent_experts},
    {"lfm2", "lfm2", "Lfm2", write_lfm2},
    {"lfm2_moe", "lfm2moe", "Lfm2Moe", write_lfm2},
    {"falcon_mamba", "mamba", "FalconMamba", write_mamba,
     [](const GgufFile&, const DecoderConfig& c) { return c.state_space.norm.has_value(); }},
    {"mamba", "mamba", "Mamba", write_mamba},
    {"mamba2", "mamba2", "Mamba2", write_mamba2, has_state_space_heads},
    {"jamba", "jamba", "Jamba", write_jamba},
    {"roberta", "bert", "Roberta", write_roberta,
     [](const GgufFile& file, const DecoderConfig&) { return has_pre_tokenizer(file, "gpt2", "roberta-bpe"); }},
    {"xlm-roberta", "bert", "XLMRoberta", write_roberta,
     [](const GgufFile& file, const DecoderConfig&) { return has_pre_tokenizer(file, "t5", "default"); }},
    {"camembert", "bert"},
    {"distilbert", "bert", "DistilBert", write_distilbert, [](const GgufFile&, const DecoderConfig& c) { return c.token_types == 0; }},
    {"bert", "bert", "Bert", write_bert},
    {"nomic_bert", "nomic-bert", "NomicBert", write_nomic},
    {"modernbert", "modern-bert", "ModernBert", write_modernbert},
    {"t5", "t5"}};

}  // namespace

json::Value FolderFamily::fields(const DecoderConfig& c) const {
  json::Value out = llama_fields(c);
  write(c, out);
  return out;
}

std::span<const FolderFamily> folder_families() { return families; }

}  // namespace rlx
