#include "models/families/export/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/config/model_folder.h"
#include "models/config/sentence_config.h"
#include "models/families/encoders/text_head.h"
#include "rlx/error.h"

namespace rlx {
namespace {

/// Sets keys below an architecture's name.
class KeyWriter {
 public:
  KeyWriter(GgufMetadata& metadata, std::string_view architecture) : metadata_(metadata), architecture_(architecture) {}

  void size(std::string_view key, std::int64_t value) { metadata_.set(path(key), static_cast<std::uint32_t>(value)); }
  void number(std::string_view key, double value) { metadata_.set(path(key), static_cast<float>(value)); }
  void number_unless(std::string_view key, double value, double usual) {
    if (value != usual) number(key, value);
  }
  void text(std::string_view key, std::string_view value) { metadata_.set(path(key), value); }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    metadata_.set_strings(path(key), std::span<const std::string>(values));
  }
  void flag(std::string_view key, bool value) { metadata_.set(path(key), value); }
  void flags(std::string_view key, const std::vector<bool>& values) { metadata_.set_booleans(path(key), values); }
  void sizes(std::string_view key, const std::vector<std::int32_t>& values) { metadata_.set_numbers<std::int32_t>(path(key), values); }

 private:
  std::string path(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  GgufMetadata& metadata_;
  std::string_view architecture_;
};

/// One number, or one for each layer where some have no attention.
void describe_kv_heads(const DecoderConfig& c, KeyWriter& keys) {
  std::vector<std::int32_t> heads;
  bool hybrid = false;
  for (const DecoderLayer& layer : c.layers) {
    heads.push_back(layer.mixer == Mixer::attention ? static_cast<std::int32_t>(c.kv_heads) : 0);
    hybrid = hybrid || layer.mixer == Mixer::state_space || layer.mixer == Mixer::short_convolution;
  }
  if (hybrid && c.heads > 0) keys.sizes("attention.head_count_kv", heads);
  else keys.size("attention.head_count_kv", c.latent.rank > 0 ? 1 : c.kv_heads);
}

void describe_sizes(const DecoderConfig& c, KeyWriter& keys) {
  keys.size("context_length", c.max_positions);
  keys.size("embedding_length", c.hidden_size);
  keys.size("block_count", static_cast<std::int64_t>(c.layers.size()));
  keys.size("feed_forward_length", c.ffn_size);
  keys.size("attention.head_count", c.heads);
  describe_kv_heads(c, keys);
  if (c.heads > 0 && c.latent.rank == 0) keys.size("attention.key_length", c.head_size), keys.size("attention.value_length", c.head_size);
  keys.number(c.norm.centred ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", c.norm.eps);
  keys.size("vocab_size", c.vocab_size);
}

/// What the cache holds of a token is one head that all queries share; the keys of real heads stand beside it.
void describe_latent_attention(const DecoderConfig& c, KeyWriter& keys) {
  const LatentAttentionConfig& l = c.latent;
  if (l.rank == 0) return;
  if (l.query_rank > 0) keys.size("attention.q_lora_rank", l.query_rank);
  keys.size("attention.kv_lora_rank", l.rank);
  keys.size("attention.key_length", l.rank + l.rope_size);
  keys.size("attention.value_length", l.rank);
  keys.size("attention.key_length_mla", c.head_size);
  keys.size("attention.value_length_mla", l.value_size);
}

/// How many layers before the first mixture have none, where all others have one.
std::optional<std::int64_t> leading_dense_layers(const std::vector<DecoderLayer>& layers) {
  const auto first = std::find_if(layers.begin(), layers.end(), [](const DecoderLayer& layer) { return layer.experts; });
  if (!std::all_of(first, layers.end(), [](const DecoderLayer& layer) { return layer.experts; })) return std::nullopt;
  return first - layers.begin();
}

void describe_experts(const DecoderConfig& c, KeyWriter& keys) {
  const ExpertsConfig& e = c.experts;
  if (e.count == 0) return;
  keys.size("expert_count", e.count);
  keys.size("expert_used_count", e.chosen);
  keys.size("expert_feed_forward_length", e.width);
  if (const auto dense = leading_dense_layers(c.layers)) keys.size("leading_dense_block_count", *dense);
  keys.flag("expert_weights_norm", e.normalize);
  keys.number_unless("expert_weights_scale", e.scale, 1);
  keys.size("expert_gating_func", e.sigmoid ? 2 : 1);
  if (e.groups > 1) keys.size("expert_group_count", e.groups), keys.size("expert_group_used_count", e.chosen_groups);
  if (e.shared_width == 0) return;
  keys.size("expert_shared_feed_forward_length", e.shared_width);
  if (e.shared_width % e.width == 0) keys.size("expert_shared_count", e.shared_width / e.width);
}

void describe_state_space(const StateSpaceConfig& s, KeyWriter& keys) {
  if (s.width == 0) return;
  keys.size("ssm.conv_kernel", s.kernel);
  keys.size("ssm.inner_size", s.width);
  keys.size("ssm.state_size", s.states);
  keys.size("ssm.time_step_rank", s.heads > 0 ? s.heads : s.step_rank);
  if (s.heads > 0) keys.size("ssm.group_count", s.groups);
  else keys.flag("ssm.dt_b_c_rms", s.norm && !s.norm->weight);
  keys.number_unless("ssm.time_step_least", s.least_step, 0);  // these two are ours: others know no limits
  if (std::isfinite(s.largest_step)) keys.number("ssm.time_step_largest", s.largest_step);
}

void describe_delta_net(const DecoderConfig& c, KeyWriter& keys) {
  const DeltaNetConfig& d = c.delta_net;
  if (d.key_heads == 0) return;
  keys.size("ssm.conv_kernel", d.kernel);
  keys.size("ssm.inner_size", d.value_heads * d.value_size);
  keys.size("ssm.state_size", d.key_size);
  keys.size("ssm.time_step_rank", d.value_heads);
  keys.size("ssm.group_count", d.key_heads);
  std::vector<bool> recurrent;
  for (const DecoderLayer& layer : c.layers) recurrent.push_back(layer.mixer == Mixer::delta_net);
  keys.flags("attention.recurrent_layers", recurrent);
  const auto full = std::find(recurrent.begin(), recurrent.end(), false);
  keys.size("full_attention_interval", full - recurrent.begin() + 1);
}

/// How much further than in training YaRN's scores reach; `read_gguf_decoder` has the formula.
void describe_yarn(const DecoderConfig& c, const RopeOptions& rope, KeyWriter& keys) {
  keys.number_unless("rope.scaling.yarn_beta_fast", rope.beta_fast, 32);
  keys.number_unless("rope.scaling.yarn_beta_slow", rope.beta_slow, 1);
  const bool latent = c.latent.rank > 0;  // then 1 is usual, where others derive it
  const double derived = latent ? 1 + 0.1 * std::log(std::max(rope.factor, 1.0)) : 0;
  keys.number_unless("rope.scaling.yarn_attn_factor", rope.attention_factor > 0 ? rope.attention_factor : derived, latent ? 1 : 0);
  if (!latent || rope.factor <= 1) return;
  const double scale = c.attention_scale == 0 ? 1 : std::sqrt(c.attention_scale * std::sqrt(static_cast<double>(c.head_size)));
  keys.number("rope.scaling.yarn_log_multiplier", (scale - 1) / std::log(rope.factor));
}

void describe_rope(const DecoderConfig& c, KeyWriter& keys) {
  if (c.ropes.empty()) return;
  const RopeOptions& rope = c.ropes.front();
  keys.number("rope.freq_base", rope.theta);
  keys.size("rope.dimension_count", rope.dims == 0 ? c.head_size : rope.dims);
  if (c.ropes.size() > 1) keys.number("rope.freq_base_swa", c.ropes[1].theta);  // of the layers that slide
  if (rope.scaling == RopeScaling::linear || rope.scaling == RopeScaling::yarn) {
    keys.text("rope.scaling.type", rope.scaling == RopeScaling::linear ? "linear" : "yarn");
    keys.number("rope.scaling.factor", rope.factor);
  }
  if (rope.scaling == RopeScaling::yarn) describe_yarn(c, rope, keys);
  if (rope.scaling == RopeScaling::yarn || rope.scaling == RopeScaling::longrope)
    keys.size("rope.scaling.original_context_length", static_cast<std::int64_t>(rope.original_length));
  if (rope.scaling == RopeScaling::longrope) {
    const double derived = rope.factor <= 1 ? 1 : std::sqrt(1 + std::log(rope.factor) / std::log(rope.original_length));
    keys.number("rope.scaling.attn_factor", rope.attention_factor > 0 ? rope.attention_factor : derived);
  }
}

void describe_windows(const DecoderConfig& c, KeyWriter& keys) {
  std::vector<bool> slides;
  std::int64_t window = 0;
  for (const DecoderLayer& layer : c.layers) {
    slides.push_back(layer.window > 0);
    window = std::max(window, layer.window);
  }
  if (window == 0) return;
  keys.size("attention.sliding_window", c.causal ? window : 2 * window);
  if (std::find(slides.begin(), slides.end(), false) != slides.end()) keys.flags("attention.sliding_window_pattern", slides);
}

/// What readers of some architectures ask for.
void describe_habits(const DecoderConfig& c, std::string_view architecture, KeyWriter& keys) {
  if (architecture == "gptneox" || architecture == "stablelm") keys.flag("use_parallel_residual", c.parallel);
  if (c.alibi) keys.number("attention.max_alibi_bias", 8);
  if (architecture == "command-r") keys.text("rope.scaling.type", "none");
  // Nothing would mean the first models' 2047, or 4096 and the scores' limits, or that it was forgotten.
  if (architecture == "phi3" || (architecture.starts_with("gemma") && architecture != "gemma")) keys.size("attention.sliding_window", 0);
  if (architecture == "gemma2") keys.number("attn_logit_softcapping", 0), keys.number("final_logit_softcapping", 0);
  if (architecture == "qwen35") {  // pairs that turn by time, height and width, in thirds: a text's three positions are alike
    const auto pairs = static_cast<std::int32_t>(c.ropes.front().dims / 2);
    keys.sizes("rope.dimension_sections", {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0});
  }
}

[[noreturn]] void refuse_encoder(const ModelFolder& folder, std::string_view what) {
  fail("{}: {}, which GGUF files cannot say", folder.path().string(), what);
}

/// The number of the one pooling that modules.json asks for, where there is one.
void add_pooling(const ModelFolder& folder, const DecoderConfig& c, KeyWriter& keys) {
  if (c.text_head.labels > 0) return keys.size("pooling_type", 4);
  std::error_code error;
  if (!std::filesystem::exists(folder.path() / "modules.json", error)) return;
  const SentenceModelConfig sentences = SentenceModelConfig::read(folder.path(), c);
  constexpr std::array<Pooling, 3> kinds{Pooling::mean, Pooling::cls, Pooling::last_token};
  const auto kind = std::find(kinds.begin(), kinds.end(), sentences.pooling.front());
  if (sentences.pooling.size() != 1 || kind == kinds.end()) refuse_encoder(folder, "it pools otherwise than by mean, cls or lasttoken");
  if (c.causal && !sentences.dense.empty()) refuse_encoder(folder, "it has dense layers behind the pooling, though it continues texts");
  keys.size("pooling_type", kind - kinds.begin() + 1);
  // These three are ours: others leave them to whoever asks.
  if (sentences.max_length != c.max_positions) keys.size(gguf_embedding_keys.max_length, sentences.max_length);
  if (!sentences.prompt.empty()) keys.text(gguf_embedding_keys.prompt, sentences.prompt);
  if (!sentences.normalize) keys.flag(gguf_embedding_keys.normalize, false);
}

/// One layer of n sees all, the first among them.
void describe_symmetric_windows(const DecoderConfig& c, const ModelFolder& folder, KeyWriter& keys) {
  std::size_t every = 1;
  while (every < c.layers.size() && c.layers[every].window > 0) ++every;
  std::int64_t window = 0;
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    window = std::max(window, c.layers[i].window);
    if ((c.layers[i].window == 0) != (i % every == 0)) refuse_encoder(folder, "its layers with windows follow no pattern");
  }
  keys.size("attention.sliding_window", 2 * window);
  keys.size("attention.sliding_window_pattern", static_cast<std::int64_t>(every));
  keys.text("rope.scaling.type", "none");
}

void describe_labels(const ModelFolder& folder, const DecoderConfig& c, bool modern, KeyWriter& keys) {
  const TextHead& head = c.text_head;
  if (modern) keys.size("classifier.pooling_type", head.mean ? 1 : 2);
  if (head.labels == 0) return;
  if (head.each_token) refuse_encoder(folder, "it labels each token");
  if (head.activation != (modern ? HiddenActivation::gelu : HiddenActivation::tanh))
    keys.text("classifier.activation", activation_name(head.activation));  // ours: others know the architecture's alone
  keys.texts("classifier.output_labels", label_names(folder.config(), head.labels));
}

}  // namespace

void describe_model(const DecoderConfig& c, std::string_view architecture, GgufMetadata& metadata) {
  KeyWriter keys(metadata, architecture);
  describe_sizes(c, keys);
  describe_latent_attention(c, keys);
  describe_experts(c, keys);
  describe_state_space(c.state_space, keys);
  describe_delta_net(c, keys);
  if (c.has_mixer(Mixer::short_convolution)) keys.size("shortconv.l_cache", c.short_convolution.kernel);
  describe_rope(c, keys);
  describe_habits(c, architecture, keys);  // before what says more
  if (architecture != "modern-bert") describe_windows(c, keys);
  const bool gemma = architecture.starts_with("gemma");  // its readers know the scale of embeddings
  if (!gemma) keys.number_unless("embedding_scale", c.embedding_scale, 1);
  keys.number_unless("residual_scale", c.residual_scale, 1);
  if (c.latent.rank == 0) keys.number_unless("attention.scale", c.attention_scale, 0);
  if (architecture == "granite") keys.number("logit_scale", 1 / c.logits_scale);
  else if (architecture == "command-r") keys.number("logit_scale", c.logits_scale);
  keys.number_unless("attn_logit_softcapping", c.attention_softcap, 0);
  keys.number_unless("final_logit_softcapping", c.logits_softcap, 0);
}

void describe_pooling(const ModelFolder& folder, const DecoderConfig& c, std::string_view architecture, GgufMetadata& metadata) {
  KeyWriter keys(metadata, architecture);
  add_pooling(folder, c, keys);
}

void describe_encoder(const ModelFolder& folder, const DecoderConfig& c, std::string_view architecture, GgufMetadata& metadata) {
  KeyWriter keys(metadata, architecture);
  keys.flag("attention.causal", false);
  if (architecture == "gemma-embedding") return add_pooling(folder, c, keys);
  metadata.set("tokenizer.ggml.token_type_count", static_cast<std::uint32_t>(std::max<std::int64_t>(c.token_types, 1)));
  add_pooling(folder, c, keys);
  const bool modern = architecture == "modern-bert";
  if (modern) describe_symmetric_windows(c, folder, keys);
  const HiddenActivation usual = architecture == "nomic-bert" ? HiddenActivation::silu : HiddenActivation::gelu;
  const bool silu = c.activation == HiddenActivation::silu;
  if (c.activation != usual && !(modern && silu)) refuse_encoder(folder, "its activation differs from the architecture's");
  if (modern) keys.text("hidden_activation", silu ? "silu" : "gelu");
  describe_labels(folder, c, modern, keys);
}

}  // namespace rlx
