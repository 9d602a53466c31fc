#include "models/families/gguf/gguf_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/families/gguf/gguf_encoder.h"
#include "models/families/gguf/gguf_keys.h"
#include "models/families/gguf/gguf_rope.h"
#include "models/families/mixture.h"

namespace rlx {
namespace {

/// What the tensors and numbers of a file do not tell about its architecture.
struct GgufArchitecture {
  std::string_view name;
  // Files of Llama's kin have the rows of queries and keys reordered, so that the elements that turn together are neighbours.
  RopeStyle rope = RopeStyle::half;
  HiddenActivation activation = HiddenActivation::silu;
  bool embedding_root_scale = false;  // embeddings are multiplied by the root of their size
  std::size_t full_every = 0;         // with a window: every n-th layer sees all; 0: none does
  std::int64_t window = 0;            // these three: where a file says nothing of them
  double attention_softcap = 0, logits_softcap = 0;
  std::size_t rope_pause = 0;  // every n-th layer knows no positions; 0: all know them
  bool normalize_experts = true;
  bool position_embedding = false;  // needs one
  bool logit_scale_needed = false;
  bool logits_divided = false;  // by logit_scale; else multiplied
  bool causal = true;           // else an encoder of BERT's kin
  bool both_ways = false;       // a decoder as an encoder
  bool delta_nets = false;      // in most layers; queries of the others come with gates
};

constexpr GgufArchitecture gguf_architectures[] = {
    {.name = "llama", .rope = RopeStyle::interleaved},
    {.name = "qwen2"},
    {.name = "qwen2moe", .normalize_experts = false},
    {.name = "qwen3"},
    {.name = "qwen3moe"},
    {.name = "gemma", .activation = HiddenActivation::gelu_tanh, .embedding_root_scale = true},
    {.name = "gemma2",
     .activation = HiddenActivation::gelu_tanh,
     .embedding_root_scale = true,
     .full_every = 2,
     .window = 4096,
     .attention_softcap = 50,
     .logits_softcap = 30},
    {.name = "gemma3", .activation = HiddenActivation::gelu_tanh, .embedding_root_scale = true, .full_every = 6},
    {.name = "gemma-embedding",
     .activation = HiddenActivation::gelu_tanh,
     .embedding_root_scale = true,
     .full_every = 6,
     .both_ways = true},
    {.name = "phi3"},
    {.name = "gpt2", .activation = HiddenActivation::gelu_tanh, .position_embedding = true},
    {.name = "arcee", .rope = RopeStyle::interleaved, .activation = HiddenActivation::relu_squared},
    {.name = "granite", .rope = RopeStyle::interleaved, .logit_scale_needed = true, .logits_divided = true},
    {.name = "olmo2", .full_every = 4},
    {.name = "gptneox", .activation = HiddenActivation::gelu},
    {.name = "falcon", .activation = HiddenActivation::gelu},
    {.name = "phi2", .activation = HiddenActivation::gelu_tanh},
    {.name = "starcoder2", .activation = HiddenActivation::gelu_tanh},
    {.name = "stablelm"},
    {.name = "command-r", .rope = RopeStyle::interleaved, .logit_scale_needed = true},
    {.name = "smollm3", .rope = RopeStyle::interleaved, .rope_pause = 4},
    {.name = "deepseek2", .rope = RopeStyle::interleaved, .normalize_experts = false},
    {.name = "lfm2"},
    {.name = "lfm2moe"},
    {.name = "qwen3next", .delta_nets = true},
    {.name = "qwen35", .delta_nets = true},
    {.name = "qwen35moe", .delta_nets = true},
    {.name = "mamba", .rope_pause = 1},
    {.name = "mamba2", .rope_pause = 1},
    {.name = "jamba", .rope_pause = 1, .normalize_experts = false},
    {.name = "bert", .activation = HiddenActivation::gelu, .position_embedding = true, .causal = false},
    {.name = "nomic-bert", .causal = false},
    {.name = "modern-bert", .activation = HiddenActivation::gelu, .causal = false},
};

const GgufArchitecture& find_architecture(std::string_view name, std::string_view file) {
  std::vector<std::string_view> names;
  for (const GgufArchitecture& each : gguf_architectures) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  fail("{}: general.architecture: {} is not supported{} (supported: {})", file, quote_name(name), near_hint(name, names),
       fmt::join(names, ", "));
}

void read_gguf_sizes(const GgufConfig& config, DecoderConfig& c) {
  c.vocab_size = embedding_rows(config.file());
  c.hidden_size = config.size("embedding_length");
  c.max_positions = config.size("context_length");
  const std::int64_t layers = config.blocks() - config.size_or("nextn_predict_layers", 0);  // those predict several tokens
  if (layers < 1) config.refuse("block_count", "is {} without those of nextn_predict_layers (allowed: from 1)", layers);
  c.layers.resize(static_cast<std::size_t>(layers));
}

/// What each layer does, as its tensors tell: two of each kind, so that one that is missing is missed by its name.
void read_gguf_layers(const GgufConfig& config, bool delta_nets, DecoderConfig& c) {
  const Mixer recurrent = delta_nets                             ? Mixer::delta_net
                          : config.any_layer_has("ssm_x.weight") ? Mixer::state_space
                                                                 : Mixer::state_space_heads;
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const auto has = [&](std::string_view one, std::string_view other) { return config.layer_has(i, one) || config.layer_has(i, other); };
    DecoderLayer& layer = c.layers[i];
    if (has("ssm_a", "ssm_out.weight")) layer.mixer = recurrent;
    else if (has("shortconv.in_proj.weight", "shortconv.out_proj.weight")) layer.mixer = Mixer::short_convolution;
    else if (has("attn_kv_a_mqa.weight", "attn_kv_a_norm.weight")) layer.mixer = Mixer::latent_attention;
    layer.experts = has("ffn_gate_inp.weight", "ffn_down_exps.weight");
    layer.feed_forward = layer.experts || has("ffn_up.weight", "ffn_down.weight");
  }
  const bool dense = std::ranges::any_of(c.layers, [](const DecoderLayer& layer) { return layer.feed_forward && !layer.experts; });
  c.ffn_size = dense ? config.size("feed_forward_length") : config.size_or("feed_forward_length", 0);
}

/// One number for all layers, or one for each, where layers without attention have 0.
std::int64_t gguf_kv_heads(const GgufConfig& config, std::int64_t otherwise) {
  const GgufValue* value = config.find("attention.head_count_kv");
  if (value == nullptr || !value->is_array()) return config.size_or("attention.head_count_kv", otherwise);
  std::int64_t heads = 0;
  for (std::int64_t each : value->integers(0, std::numeric_limits<std::int32_t>::max())) {
    if (heads != 0 && each != 0 && each != heads)
      config.refuse("attention.head_count_kv", "has layers of {} and of {} heads (allowed: one number, and 0)", heads, each);
    heads = std::max(heads, each);
  }
  return heads;
}

void read_gguf_heads(const GgufConfig& config, DecoderConfig& c) {
  if (!c.has_mixer(Mixer::attention)) return;
  c.heads = config.size("attention.head_count");
  c.kv_heads = gguf_kv_heads(config, c.heads);
  if (c.kv_heads < 1 || c.heads % c.kv_heads != 0)
    config.refuse("attention.head_count_kv", "is {}, which does not divide {} heads", c.kv_heads, c.heads);
  c.head_size = config.find("attention.key_length") ? config.size("attention.key_length") : c.hidden_size / c.heads;
  if (c.head_size < 1) config.refuse("attention.head_count", "is {} for {} features (allowed: no more)", c.heads, c.hidden_size);
  if (const std::int64_t values = config.size_or("attention.value_length", c.head_size); values != c.head_size)
    config.refuse("attention.value_length", "is {} beside 'attention.key_length' {} (allowed: the same)", values, c.head_size);
}

/// Newer files hold the keys' and the values' matrices apart, and lengths of heads under keys of their own.
void read_gguf_latent_attention(const GgufConfig& config, DecoderConfig& c) {
  if (!c.has_mixer(Mixer::latent_attention)) return;
  LatentAttentionConfig& l = c.latent;
  c.heads = config.size("attention.head_count");
  c.kv_heads = 1;
  const bool apart = config.find("attention.key_length_mla") != nullptr;
  c.head_size = config.size(apart ? "attention.key_length_mla" : "attention.key_length");
  l.value_size = config.size(apart ? "attention.value_length_mla" : "attention.value_length");
  l.query_rank = config.any_layer_has("attn_q_a.weight") ? config.size("attention.q_lora_rank") : 0;
  l.rank = config.size("attention.kv_lora_rank");
  l.rope_size = config.size("rope.dimension_count");
  if (l.rope_size >= c.head_size) config.refuse("rope.dimension_count", "is {} (allowed: less than a head's {})", l.rope_size, c.head_size);
  l.plain_size = c.head_size - l.rope_size;
  l.keys_by_feature = config.any_layer_has("attn_k_b.weight");
}

void read_gguf_delta_nets(const GgufConfig& config, DecoderConfig& c) {
  if (!c.has_mixer(Mixer::delta_net)) return;
  DeltaNetConfig& d = c.delta_net;
  d.key_heads = config.size("ssm.group_count");
  d.value_heads = config.size("ssm.time_step_rank");
  d.key_size = config.size("ssm.state_size", 1, 65536);
  d.kernel = config.size("ssm.conv_kernel", 2, 64);
  const std::int64_t width = config.size("ssm.inner_size");
  if (width % d.value_heads != 0 || d.value_heads % d.key_heads != 0)
    config.refuse("ssm.time_step_rank", "is {} heads of {} features for {} of keys (allowed: whole numbers of each)", d.value_heads, width,
                  d.key_heads);
  d.value_size = width / d.value_heads;
  d.log_decay = false;
  d.heads_in_turn = config.find_in_layers("ssm_beta.weight", "ssm_alpha.weight") != nullptr;  // qwen35; else as in a folder
}

void read_gguf_state_spaces(const GgufConfig& config, DecoderConfig& c) {
  const bool heads = c.has_mixer(Mixer::state_space_heads);
  if (c.has_mixer(Mixer::short_convolution))
    c.short_convolution = {.kernel = config.size("shortconv.l_cache", 2, 64), .bias = config.any_layer_has("shortconv.in_proj.bias")};
  if (!heads && !c.has_mixer(Mixer::state_space)) return;
  StateSpaceConfig& s = c.state_space;
  s.width = config.size("ssm.inner_size");
  s.states = config.size("ssm.state_size", 1, 65536);
  s.kernel = config.size("ssm.conv_kernel", 2, 64);
  (heads ? s.heads : s.step_rank) = config.size("ssm.time_step_rank");
  s.groups = heads ? config.size("ssm.group_count") : 1;
  if (heads && (s.width % s.heads != 0 || s.heads % s.groups != 0))
    config.refuse("ssm.time_step_rank", "is {} heads of {} features in {} groups (allowed: whole numbers of each)", s.heads, s.width,
                  s.groups);
  s.bias = config.any_layer_has("ssm_in.bias"), s.convolution_bias = config.any_layer_has("ssm_conv1d.bias");
  s.log_decay = false;
  s.least_step = config.number_or("ssm.time_step_least", s.least_step);
  s.largest_step = config.number_or("ssm.time_step_largest", s.largest_step);
  if (!(s.least_step <= s.largest_step)) config.refuse("ssm.time_step_least", "{} to {} is no range", s.least_step, s.largest_step);
  if (config.any_layer_has("ssm_dt_norm.weight")) s.norm = c.norm;
  else if (config.flag_or("ssm.dt_b_c_rms", false)) s.norm = NormKind{.weight = false};
}

/// Biases, norms and halves are there when their tensors are.
void read_gguf_axes(const GgufConfig& config, const GgufArchitecture& architecture, DecoderConfig& c) {
  const auto has = [&](std::string_view name) { return config.any_layer_has(name); };
  const bool centred = !architecture.causal || config.find("attention.layer_norm_rms_epsilon") == nullptr;  // ModernBERT's may have both
  c.norm = {.centred = centred, .bias = config.has("output_norm.bias") || has("attn_norm.bias")};
  const std::string_view epsilon = c.norm.centred ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  if (config.find(epsilon) == nullptr)
    config.refuse("attention.layer_norm_rms_epsilon", "is missing, and 'attention.layer_norm_epsilon' is, too (one of them is needed)");
  c.norm.eps = config.non_negative_or(epsilon, 0);
  c.norm_before = has("attn_norm.weight"), c.norm_after = has("post_attention_norm.weight") && !architecture.delta_nets;
  c.qkv_bias = has("attn_q.bias") || has("attn_qkv.bias"), c.attention_output_bias = has("attn_output.bias");
  c.ffn_bias = has("ffn_up.bias");
  c.gated = has("ffn_gate.weight") || has("ffn_gate_exps.weight") || architecture.name == "phi3";
  c.tied_output = !config.has("output.weight"), c.output_bias = config.has("output.bias");
  c.position_embedding = architecture.position_embedding || config.has("position_embd.weight");
  c.attention_gate = architecture.delta_nets;
  const bool ffn_norm = has("ffn_norm.weight") || architecture.delta_nets, second_norm = ffn_norm || has("attn_norm_2.weight");
  c.parallel = ffn_norm ? architecture.name == "gptneox" && config.flag_or("use_parallel_residual", true) : c.norm_before;
  c.shared_norm = c.parallel && !second_norm;
  if (const TensorView* norm = config.find_in_layers("attn_q_norm.weight", "attn_k_norm.weight"))
    c.query_key_norm = norm->shape.size() == 2         ? QueryKeyNorm::own_head
                       : norm->shape[0] == c.head_size ? QueryKeyNorm::head
                                                       : QueryKeyNorm::whole;
}

void read_gguf_router(const GgufConfig& config, ExpertsConfig& e) {
  constexpr std::int64_t softmax_gate = 1, sigmoid_gate = 2;
  e.router_bias = config.any_layer_has("exp_probs_b.bias");
  const std::int64_t gate = config.size_or("expert_gating_func", e.router_bias ? sigmoid_gate : softmax_gate);
  if (gate > sigmoid_gate) config.refuse("expert_gating_func", "is {} (allowed: 0 to 2)", gate);
  e.sigmoid = gate == sigmoid_gate;
  e.groups = std::max<std::int64_t>(config.size_or("expert_group_count", 1), 1);
  e.chosen_groups = e.groups > 1 ? config.size("expert_group_used_count") : 1;
  e.group_judges = e.router_bias ? 2 : 1;
  if (e.groups > 1 && !groups_suffice(e))
    config.refuse("expert_group_count", "is {}, of which {} take part with {} of {} experts (allowed: equal groups that suffice)", e.groups,
                  e.chosen_groups, e.chosen, e.count);
}

void read_gguf_experts(const GgufConfig& config, const GgufArchitecture& architecture, DecoderConfig& c) {
  if (std::ranges::none_of(c.layers, &DecoderLayer::experts)) return;
  c.experts.count = config.size("expert_count");
  c.experts.chosen = config.size("expert_used_count");
  if (c.experts.chosen > c.experts.count) config.refuse("expert_used_count", "is {} (allowed: 1..{})", c.experts.chosen, c.experts.count);
  const std::int64_t parts = architecture.name.starts_with("qwen") ? c.experts.chosen : 1;  // those of a token are as wide as one layer
  c.experts.width = config.find("expert_feed_forward_length") ? config.size("expert_feed_forward_length")
                                                              : config.size("feed_forward_length", parts) / parts;
  c.experts.normalize = config.flag_or("expert_weights_norm", architecture.normalize_experts);
  if (const double scale = config.number_or("expert_weights_scale", 0); scale != 0) c.experts.scale = scale;
  if (const TensorView* shared = config.find_in_layers("ffn_up_shexp.weight", "ffn_gate_shexp.weight");
      shared != nullptr && shared->shape.size() == 2)
    c.experts.shared_width = matrix_rows(config.file(), *shared), c.experts.shared_gate = config.any_layer_has("ffn_gate_inp_shexp.weight");
  read_gguf_router(config, c.experts);
}

void read_gguf_windows(const GgufConfig& config, const GgufArchitecture& architecture, DecoderConfig& c) {
  if (architecture.full_every == 6) config.file().value(fmt::format("{}.attention.sliding_window", architecture.name));  // no usual one
  const std::int64_t window = config.size_or("attention.sliding_window", architecture.window);
  if (window == 0) return;
  const GgufValue* pattern = config.find("attention.sliding_window_pattern");
  std::vector<bool> slides;
  if (pattern != nullptr && pattern->is_array()) slides = pattern->booleans();
  if (!slides.empty() && slides.size() != c.layers.size())
    config.refuse("attention.sliding_window_pattern", "has {} entries for {} layers", slides.size(), c.layers.size());
  const std::size_t every =
      pattern != nullptr && !pattern->is_array() ? static_cast<std::size_t>(pattern->integer(0, 1024)) : architecture.full_every;
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    if (slides.empty() ? every == 0 || (i + 1) % every != 0 : slides[i]) c.layers[i].window = window;
}

/// Of scores, where a file names none: 0, which is that of a head's size, but for Gemma's models of 27B, which are known by their layers.
double usual_attention_scale(const GgufArchitecture& architecture, const DecoderConfig& c) {
  const std::size_t layers = c.layers.size();
  const bool largest = (architecture.name == "gemma2" && layers == 46) || (architecture.name == "gemma3" && layers == 62);
  return largest ? std::sqrt(static_cast<double>(c.heads) / static_cast<double>(c.hidden_size)) : 0;
}

void read_gguf_scales(const GgufConfig& config, const GgufArchitecture& architecture, DecoderConfig& c) {
  if (architecture.embedding_root_scale) c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
  c.embedding_scale = config.number_or("embedding_scale", c.embedding_scale);
  c.residual_scale = config.number_or("residual_scale", 1);
  c.attention_scale = config.number_or("attention.scale", usual_attention_scale(architecture, c));
  c.logits_scale = architecture.logit_scale_needed ? config.number("logit_scale") : config.number_or("logit_scale", 1);
  if (c.logits_scale == 0) config.refuse("logit_scale", "is 0 (allowed: other numbers)");
  if (architecture.logits_divided) c.logits_scale = 1 / c.logits_scale;
  c.attention_softcap = config.non_negative_or("attn_logit_softcapping", architecture.attention_softcap);
  c.logits_softcap = config.non_negative_or("final_logit_softcapping", architecture.logits_softcap);
}

/// Falcon's slopes, which fall to 2^-8 with the last of a power of two heads; other readers know none of Falcon.
bool has_alibi(const GgufConfig& config, const GgufArchitecture& architecture) {
  constexpr double known = 8;
  const double bias = architecture.name == "falcon" ? config.number_or("attention.max_alibi_bias", 0) : 0;
  if (bias != 0 && bias != known) config.refuse("attention.max_alibi_bias", "is {} (allowed: 0, {})", bias, known);
  return bias != 0;
}

}  // namespace

DecoderConfig gguf_form(DecoderConfig c, std::string_view architecture) {
  c.norm.plus_one = false;
  c.first_position = 0;
  c.state_space.log_decay = c.delta_net.log_decay = false;
  c.delta_net.heads_in_turn = architecture.starts_with("qwen35");
  c.latent.keys_by_feature = c.latent.rank > 0;
  for (RopeOptions& rope : c.ropes) rope.style = find_architecture(architecture, "GGUF").rope;
  return c;
}

std::int64_t matrix_rows(const GgufFile& file, const TensorView& tensor) {
  const auto& shape = tensor.shape;
  if (shape.size() != 2 || shape[0] < 1 || shape[0] > GgufConfig::largest_size || shape[1] < 1)
    fail("{}: tensor {} is {} (allowed: matrices with 1..{} rows)", file.name(), quote_name(tensor.name), type_text(tensor.dtype, shape),
         GgufConfig::largest_size);
  return shape[0];
}

std::int64_t embedding_rows(const GgufFile& file) {
  const std::int64_t rows = matrix_rows(file, file.at("token_embd.weight"));
  const GgufValue* tokens = file.find_value("tokenizer.ggml.tokens");
  if (tokens != nullptr && std::cmp_greater(tokens->size(), rows))
    fail("{}: tokenizer.ggml.tokens: {} tokens, but 'token_embd.weight' has {} rows (allowed: no more tokens than rows)", file.name(),
         tokens->size(), rows);
  return rows;
}

DecoderConfig read_gguf_decoder(const GgufFile& file) {
  const GgufArchitecture& architecture = find_architecture(file.value("general.architecture").string(), file.name());
  const GgufConfig config(file, architecture.name);
  DecoderConfig c;
  c.activation = architecture.activation;
  read_gguf_sizes(config, c);
  read_gguf_layers(config, architecture.delta_nets, c);
  read_gguf_heads(config, c);
  read_gguf_latent_attention(config, c);
  read_gguf_axes(config, architecture, c);
  read_gguf_delta_nets(config, c);
  read_gguf_state_spaces(config, c);
  read_gguf_experts(config, architecture, c);
  if (architecture.causal) read_gguf_windows(config, architecture, c);
  read_gguf_scales(config, architecture, c);
  c.alibi = has_alibi(config, architecture);
  if (c.position_embedding || c.alibi || architecture.rope_pause == 1) {
    for (DecoderLayer& layer : c.layers) layer.rope = -1;
  } else {
    c.ropes = {read_gguf_rope(config, c, architecture.rope)};
    for (std::size_t i = 0; i < c.layers.size(); ++i)
      if (architecture.rope_pause > 0 && (i + 1) % architecture.rope_pause == 0) c.layers[i].rope = -1;
  }
  if (c.has_mixer(Mixer::latent_attention)) read_gguf_yarn_scale(config, c);
  const bool olmo3 = architecture.name == "olmo2" && config.size_or("attention.sliding_window", 0) > 0;
  const bool gemma3 = architecture.name == "gemma3" || architecture.both_ways;
  if (gemma3 || olmo3) {  // sliding layers turn by a rope of their own, which is not stretched
    const double theta = config.positive_or("rope.freq_base_swa", olmo3 ? c.ropes[0].theta : 10000);
    c.ropes.push_back({.theta = theta, .dims = c.ropes[0].dims, .style = c.ropes[0].style});
    for (DecoderLayer& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
  }
  if (!architecture.causal) read_gguf_encoder(file, c);
  if (architecture.both_ways) c.see_both_ways();
  return c;
}

}  // namespace rlx
