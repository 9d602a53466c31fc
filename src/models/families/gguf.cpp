#include "models/families/gguf.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/families/gguf_encoder.h"

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
  bool normalize_experts = true;
  bool logits_divided = false;  // by logit_scale; else multiplied
  bool causal = true;           // else an encoder
};

constexpr GgufArchitecture gguf_architectures[] = {
    {.name = "llama", .rope = RopeStyle::interleaved},
    {.name = "qwen2"},
    {.name = "qwen2moe", .normalize_experts = false},
    {.name = "qwen3"},
    {.name = "qwen3moe"},
    {.name = "gemma", .activation = HiddenActivation::gelu_tanh, .embedding_root_scale = true},
    {.name = "gemma2", .activation = HiddenActivation::gelu_tanh, .embedding_root_scale = true, .full_every = 2},
    {.name = "gemma3", .activation = HiddenActivation::gelu_tanh, .embedding_root_scale = true, .full_every = 6},
    {.name = "phi3"},
    {.name = "gpt2", .activation = HiddenActivation::gelu_tanh},
    {.name = "granite", .rope = RopeStyle::interleaved, .logits_divided = true},
    {.name = "olmo2"},
    {.name = "bert", .activation = HiddenActivation::gelu, .causal = false},
    {.name = "nomic-bert", .causal = false},
    {.name = "modern-bert", .activation = HiddenActivation::gelu, .causal = false},
};

const GgufArchitecture& architecture_of(const GgufFile& file) {
  const std::string_view name = file.value("general.architecture").string();
  for (const GgufArchitecture& each : gguf_architectures)
    if (each.name == name) return each;
  std::vector<std::string_view> names;
  for (const GgufArchitecture& each : gguf_architectures) names.push_back(each.name);
  fail("{}: general.architecture: {} is not supported (supported: {})", file.name(), quote_name(name), fmt::join(names, ", "));
}

/// Metadata below the architecture's name.
class GgufConfig {
 public:
  GgufConfig(const GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  const GgufValue* find(std::string_view key) const { return file_.find_value(path(key)); }
  std::int64_t size(std::string_view key) const { return file_.value(path(key)).integer(1, largest_size); }
  std::int64_t size_or(std::string_view key, std::int64_t otherwise) const {
    const GgufValue* value = find(key);
    return value != nullptr ? value->integer(0, largest_size) : otherwise;
  }
  double number_or(std::string_view key, double otherwise) const {
    const GgufValue* value = find(key);
    if (value == nullptr) return otherwise;
    const double number = value->number();
    if (!std::isfinite(number)) refuse(key, "is {} (allowed: finite numbers)", number);
    return number;
  }
  bool has(std::string_view tensor) const { return file_.find(tensor) != nullptr; }
  const GgufFile& file() const { return file_; }

  template <class... Args>
  [[noreturn]] void refuse(std::string_view key, fmt::format_string<Args...> text, Args&&... args) const {
    fail("{}: key '{}' {}", file_.name(), path(key), fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  static constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max();
  std::string path(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  const GgufFile& file_;
  std::string_view architecture_;
};

std::vector<double> factors_of(const GgufConfig& config, std::string_view tensor, std::int64_t pairs) {
  const Array values = config.file().array(tensor);
  if (values.size() != pairs || !is_float(values.dtype()))
    fail("{}: tensor '{}' is {} (allowed: {} numbers, one for each pair that turns)", config.file().name(), tensor,
         type_text(values.dtype(), values.shape()), pairs);
  std::vector<double> factors;
  for (std::int64_t i = 0; i < pairs; ++i) factors.push_back(values.get_double(i));
  if (std::any_of(factors.begin(), factors.end(), [](double f) { return !(f > 0) || std::isinf(f); }))
    fail("{}: tensor '{}' has a factor that is not above 0", config.file().name(), tensor);
  return factors;
}

/// Factors for each pair: one set (Llama 3), or two for short and long sequences (Phi 3).
void read_gguf_factors(const GgufConfig& config, RopeOptions& rope) {
  const std::int64_t pairs = rope.dims / 2;
  if (config.has("rope_freqs.weight")) {
    rope.short_factors = rope.long_factors = factors_of(config, "rope_freqs.weight", pairs);
    rope.attention_factor = 1;
  } else if (config.has("rope_factors_short.weight") && config.has("rope_factors_long.weight")) {
    rope.short_factors = factors_of(config, "rope_factors_short.weight", pairs);
    rope.long_factors = factors_of(config, "rope_factors_long.weight", pairs);
    rope.attention_factor = config.number_or("rope.scaling.attn_factor", 1);
    if (!(rope.attention_factor > 0)) config.refuse("rope.scaling.attn_factor", "is {} (allowed: above 0)", rope.attention_factor);
  } else {
    return;
  }
  rope.scaling = RopeScaling::longrope;
}

RopeOptions read_gguf_rope(const GgufConfig& config, const DecoderConfig& c, RopeStyle style) {
  RopeOptions rope{
      .theta = config.number_or("rope.freq_base", 10000), .dims = config.size_or("rope.dimension_count", c.head_size), .style = style};
  if (!(rope.theta > 0)) config.refuse("rope.freq_base", "is {} (allowed: above 0)", rope.theta);
  if (rope.dims < 2 || rope.dims > c.head_size || rope.dims % 2 != 0)
    config.refuse("rope.dimension_count", "is {} (allowed: even, 2..{})", rope.dims, c.head_size);
  rope.original_length = static_cast<double>(config.size_or("rope.scaling.original_context_length", c.max_positions));
  const GgufValue* kind = config.find("rope.scaling.type");
  const std::string_view scaling = kind != nullptr ? kind->string() : "none";
  if (scaling != "none") {
    rope.factor = config.number_or("rope.scaling.factor", 1);
    if (!(rope.factor > 0)) config.refuse("rope.scaling.factor", "is {} (allowed: above 0)", rope.factor);
    if (scaling == "linear") rope.scaling = RopeScaling::linear;
    else if (scaling == "yarn") rope.scaling = RopeScaling::yarn;
    else if (scaling != "longrope")
      config.refuse("rope.scaling.type", "is {} (allowed: none, linear, yarn, longrope)", quote_name(scaling));
  }
  read_gguf_factors(config, rope);
  return rope;
}

void read_gguf_sizes(const GgufConfig& config, DecoderConfig& c) {
  const TensorView& embeddings = config.file().at("token_embd.weight");
  if (embeddings.shape.size() != 2) fail("{}: tensor 'token_embd.weight' is no matrix", config.file().name());
  c.vocab_size = embeddings.shape[0];
  c.hidden_size = config.size("embedding_length");
  c.max_positions = config.size("context_length");
  c.heads = config.size("attention.head_count");
  c.kv_heads = config.size_or("attention.head_count_kv", c.heads);
  if (c.kv_heads < 1 || c.heads % c.kv_heads != 0)
    config.refuse("attention.head_count_kv", "is {}, which does not divide {} heads", c.kv_heads, c.heads);
  c.head_size = config.size_or("attention.key_length", c.hidden_size / c.heads);
  if (c.head_size < 1 || config.size_or("attention.value_length", c.head_size) != c.head_size)
    config.refuse("attention.value_length", "differs from the keys' length {} (allowed: the same)", c.head_size);
  c.ffn_size = config.size_or("feed_forward_length", 0);
  const std::int64_t layers = config.size("block_count");
  if (layers > 1024) config.refuse("block_count", "is {} (allowed: 1..1024)", layers);
  c.layers.resize(static_cast<std::size_t>(layers));
}

/// Biases, norms and halves are there when their tensors are.
void read_gguf_axes(const GgufConfig& config, DecoderConfig& c) {
  const auto has = [&](std::string_view name) { return config.has(fmt::format("blk.0.{}", name)); };
  c.norm = {.centred = config.find("attention.layer_norm_rms_epsilon") == nullptr, .bias = config.has("output_norm.bias")};
  c.norm.eps = config.number_or(c.norm.centred ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5);
  c.norm_before = has("attn_norm.weight"), c.norm_after = has("post_attention_norm.weight");
  c.qkv_bias = has("attn_q.bias") || has("attn_qkv.bias"), c.attention_output_bias = has("attn_output.bias");
  c.ffn_bias = has("ffn_up.bias");
  c.gated = has("ffn_gate.weight") || has("ffn_gate_exps.weight") || config.file().value("general.architecture").string() == "phi3";
  c.tied_output = !config.has("output.weight"), c.output_bias = config.has("output.bias");
  c.position_embedding = config.has("position_embd.weight");
  if (const TensorView* norm = config.file().find("blk.0.attn_q_norm.weight"))
    c.query_key_norm = norm->shape == std::vector<std::int64_t>{c.head_size} ? QueryKeyNorm::head : QueryKeyNorm::whole;
}

void read_gguf_experts(const GgufConfig& config, const GgufArchitecture& architecture, DecoderConfig& c) {
  c.experts.count = config.size_or("expert_count", 0);
  if (c.experts.count == 0) return;
  c.experts.chosen = config.size("expert_used_count");
  if (c.experts.chosen > c.experts.count) config.refuse("expert_used_count", "is {} (allowed: 1..{})", c.experts.chosen, c.experts.count);
  c.experts.width = config.size_or("expert_feed_forward_length", c.ffn_size);
  c.experts.normalize = architecture.normalize_experts;
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    c.layers[i].experts = config.has(fmt::format("blk.{}.ffn_gate_inp.weight", i));
    const TensorView* shared = config.file().find(fmt::format("blk.{}.ffn_up_shexp.weight", i));
    if (shared == nullptr || shared->shape.size() != 2) continue;
    c.experts.shared_width = shared->shape[0];
    c.experts.shared_gate = config.has(fmt::format("blk.{}.ffn_gate_inp_shexp.weight", i));
  }
}

void read_gguf_windows(const GgufConfig& config, const GgufArchitecture& architecture, DecoderConfig& c) {
  const std::int64_t window = config.size_or("attention.sliding_window", 0);
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

void read_gguf_scales(const GgufConfig& config, const GgufArchitecture& architecture, DecoderConfig& c) {
  if (architecture.embedding_root_scale) c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
  c.embedding_scale = config.number_or("embedding_scale", c.embedding_scale);
  c.residual_scale = config.number_or("residual_scale", 1);
  c.attention_scale = config.number_or("attention.scale", 0);
  c.logits_scale = config.number_or("logit_scale", 1);
  if (architecture.logits_divided) c.logits_scale = 1 / c.logits_scale;
  if (!std::isfinite(c.logits_scale)) config.refuse("logit_scale", "is 0 (allowed: other numbers)");
  c.attention_softcap = config.number_or("attn_logit_softcapping", 0);
  c.logits_softcap = config.number_or("final_logit_softcapping", 0);
}

}  // namespace

DecoderConfig read_gguf_decoder(const GgufFile& file) {
  const GgufArchitecture& architecture = architecture_of(file);
  const GgufConfig config(file, architecture.name);
  DecoderConfig c;
  c.activation = architecture.activation;
  read_gguf_sizes(config, c);
  read_gguf_axes(config, c);
  read_gguf_experts(config, architecture, c);
  if (architecture.causal) read_gguf_windows(config, architecture, c);
  read_gguf_scales(config, architecture, c);
  if (c.position_embedding) {
    for (DecoderLayer& layer : c.layers) layer.rope = -1;
  } else {
    c.ropes = {read_gguf_rope(config, c, architecture.rope)};
  }
  if (architecture.name == "gemma3") {  // sliding layers turn by a rope of their own
    c.ropes.push_back({.theta = config.number_or("rope.freq_base_swa", 10000), .dims = c.ropes[0].dims});
    for (DecoderLayer& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
  }
  if (!architecture.causal) read_gguf_encoder(file, c);
  return c;
}

WeightNames gguf_names(bool fused_attention, bool fused_feed_forward) {
  WeightNames names{.unused = {"rope_freqs", "rope_factors_long", "rope_factors_short"},
                    .whole = {{{"token_embedding"}, "token_embd"},
                              {{"position_embedding"}, "position_embd"},
                              {{"output_norm"}, "output_norm"},
                              {{"output"}, "output"}},
                    .layers = "blk",
                    .layer = {{{"attention_norm"}, "attn_norm"},
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
                              {{"experts.shared_gate"}, "ffn_gate_inp_shexp"}}};
  if (fused_attention) names.layer.push_back({{"attention.q", "attention.k", "attention.v"}, "attn_qkv"});
  if (fused_feed_forward) names.layer.push_back({{"ffn.gate", "ffn.up"}, "ffn_up"});
  return names;
}

WeightNames gguf_names(const GgufFile& file, const DecoderConfig& config) {
  WeightNames names = gguf_names(file.find("blk.0.attn_qkv.weight") != nullptr,
                                 config.gated && config.experts.count == 0 && file.find("blk.0.ffn_gate.weight") == nullptr);
  if (!config.causal) add_gguf_encoder_names(names);
  return names;
}

}  // namespace rlx
