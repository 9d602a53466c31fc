#include "models/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numbers>
#include <span>
#include <string>

#include <fmt/ranges.h>

#include "base/names.h"
#include "models/model_folder.h"
#include "models/sentence_model.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::array<GgufFamily, 22> gguf_families{
    {{"llama", "llama", true},      {"mistral", "llama", true}, {"mixtral", "llama", true}, {"qwen2", "qwen2"},
     {"qwen2_moe", "qwen2moe"},     {"qwen3", "qwen3"},         {"qwen3_moe", "qwen3moe"},  {"gemma", "gemma"},
     {"gemma2", "gemma2"},          {"gemma3_text", "gemma3"},  {"phi3", "phi3"},           {"gpt2", "gpt2"},
     {"granite", "granite", true},  {"olmo2", "olmo2"},         {"bert", "bert"},           {"roberta", "bert"},
     {"xlm-roberta", "bert"},       {"camembert", "bert"},      {"distilbert", "bert"},     {"nomic_bert", "nomic-bert"},
     {"modernbert", "modern-bert"}, {"mamba", "mamba"}}};

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

 private:
  std::string path(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  GgufMetadata& metadata_;
  std::string_view architecture_;
};

void describe_sizes(const DecoderConfig& c, KeyWriter& keys) {
  keys.size("context_length", c.max_positions);
  keys.size("embedding_length", c.hidden_size);
  keys.size("block_count", static_cast<std::int64_t>(c.layers.size()));
  keys.size("feed_forward_length", c.ffn_size);
  keys.size("attention.head_count", c.heads);
  keys.size("attention.head_count_kv", c.kv_heads);
  if (c.heads > 0) keys.size("attention.key_length", c.head_size), keys.size("attention.value_length", c.head_size);
  keys.number(c.norm.centred ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", c.norm.eps);
  keys.size("vocab_size", c.vocab_size);
}

void describe_experts(const ExpertsConfig& experts, KeyWriter& keys) {
  if (experts.count == 0) return;
  keys.size("expert_count", experts.count);
  keys.size("expert_used_count", experts.chosen);
  keys.size("expert_feed_forward_length", experts.width);
  if (experts.shared_width > 0) keys.size("expert_shared_feed_forward_length", experts.shared_width);
}

void describe_state_space(const StateSpaceConfig& s, KeyWriter& keys) {
  if (s.width == 0) return;
  keys.size("ssm.conv_kernel", s.kernel);
  keys.size("ssm.inner_size", s.width);
  keys.size("ssm.state_size", s.states);
  keys.size("ssm.time_step_rank", s.step_rank);
  keys.flag("ssm.dt_b_c_rms", s.norm.has_value());
}

void describe_rope(const std::vector<RopeOptions>& ropes, std::int64_t head_size, KeyWriter& keys) {
  if (ropes.empty()) return;
  const RopeOptions& rope = ropes.front();
  keys.number("rope.freq_base", rope.theta);
  keys.size("rope.dimension_count", rope.dims == 0 ? head_size : rope.dims);
  if (ropes.size() > 1) keys.number("rope.freq_base_swa", ropes[1].theta);  // of the layers that slide
  if (rope.scaling == RopeScaling::linear || rope.scaling == RopeScaling::yarn) {
    keys.text("rope.scaling.type", rope.scaling == RopeScaling::linear ? "linear" : "yarn");
    keys.number("rope.scaling.factor", rope.factor);
  }
  if (rope.scaling == RopeScaling::yarn || rope.scaling == RopeScaling::longrope)
    keys.size("rope.scaling.original_context_length", static_cast<std::int64_t>(rope.original_length));
  if (rope.scaling == RopeScaling::longrope) {
    const double derived = rope.factor <= 1 ? 1 : std::sqrt(1 + std::log(rope.factor) / std::log(rope.original_length));
    keys.number("rope.scaling.attn_factor", rope.attention_factor > 0 ? rope.attention_factor : derived);
  }
}

void describe_windows(const std::vector<DecoderLayer>& layers, KeyWriter& keys) {
  std::vector<bool> slides;
  std::int64_t window = 0;
  for (const DecoderLayer& layer : layers) {
    slides.push_back(layer.window > 0);
    window = std::max(window, layer.window);
  }
  if (window == 0) return;
  keys.size("attention.sliding_window", window);
  if (std::find(slides.begin(), slides.end(), false) != slides.end()) keys.flags("attention.sliding_window_pattern", slides);
}

[[noreturn]] void refuse_encoder(const ModelFolder& folder, std::string_view what) {
  fail("{}: {}, which GGUF files cannot say", folder.path().string(), what);
}

/// The number of the one pooling that modules.json asks for, where there is one.
void describe_pooling(const ModelFolder& folder, const DecoderConfig& c, KeyWriter& keys) {
  if (c.text_head.labels > 0) return keys.size("pooling_type", 4);
  std::error_code error;
  if (!std::filesystem::exists(folder.path() / "modules.json", error)) return;
  const std::vector<Pooling> modes = SentenceModelConfig::read(folder.path(), c).pooling;
  constexpr std::array<Pooling, 3> kinds{Pooling::mean, Pooling::cls, Pooling::last_token};
  const auto kind = std::find(kinds.begin(), kinds.end(), modes.front());
  if (modes.size() != 1 || kind == kinds.end()) refuse_encoder(folder, "it pools otherwise than by mean, cls or lasttoken");
  keys.size("pooling_type", kind - kinds.begin() + 1);
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
  if (head.activation != (modern ? HiddenActivation::gelu : HiddenActivation::tanh))
    refuse_encoder(folder, "its classifier's activation differs from the architecture's");
  std::vector<std::string> names;
  const auto labels = folder.config().find("id2label");
  for (std::int64_t i = 0; i < head.labels; ++i) {
    const auto named = labels ? labels->find(std::to_string(i)) : std::nullopt;
    names.push_back(named ? named->as_string() : fmt::format("LABEL_{}", i));
  }
  keys.texts("classifier.output_labels", names);
}

}  // namespace

const GgufFamily& gguf_family(std::string_view model_type) {
  std::vector<std::string_view> known;
  for (const GgufFamily& family : gguf_families) {
    if (family.model_type == model_type) return family;
    known.push_back(family.model_type);
  }
  fail("model type {} has no form in GGUF files here (supported: {})", quote_name(model_type), fmt::join(known, ", "));
}

std::vector<GgufFamily> gguf_families_of(std::string_view architecture) {
  std::vector<GgufFamily> families;
  std::copy_if(gguf_families.begin(), gguf_families.end(), std::back_inserter(families),
               [&](const GgufFamily& family) { return family.architecture == architecture; });
  return families;
}

std::int64_t row_of_halves(std::int64_t row, std::int64_t head_size) {
  const std::int64_t head = row / head_size, at = row % head_size;
  return head * head_size + at % 2 * (head_size / 2) + at / 2;
}

void describe_model(const DecoderConfig& c, const GgufFamily& family, GgufMetadata& metadata) {
  KeyWriter keys(metadata, family.architecture);
  describe_sizes(c, keys);
  describe_experts(c.experts, keys);
  describe_state_space(c.state_space, keys);
  describe_rope(c.ropes, c.head_size, keys);
  if (c.causal) describe_windows(c.layers, keys);
  const bool gemma = family.architecture.starts_with("gemma");  // its readers know the scale of embeddings
  if (!gemma) keys.number_unless("embedding_scale", c.embedding_scale, 1);
  keys.number_unless("residual_scale", c.residual_scale, 1);
  keys.number_unless("attention.scale", c.attention_scale, 0);
  keys.number_unless("logit_scale", family.architecture == "granite" ? 1 / c.logits_scale : c.logits_scale, 1);
  keys.number_unless("attn_logit_softcapping", c.attention_softcap, 0);
  keys.number_unless("final_logit_softcapping", c.logits_softcap, 0);
}

void describe_encoder(const ModelFolder& folder, const DecoderConfig& c, const GgufFamily& family, GgufMetadata& metadata) {
  KeyWriter keys(metadata, family.architecture);
  keys.flag("attention.causal", false);
  metadata.set("tokenizer.ggml.token_type_count", static_cast<std::uint32_t>(std::max<std::int64_t>(c.token_types, 1)));
  describe_pooling(folder, c, keys);
  const bool modern = family.architecture == "modern-bert";
  if (modern) describe_symmetric_windows(c, folder, keys);
  const HiddenActivation usual = family.architecture == "nomic-bert" ? HiddenActivation::silu : HiddenActivation::gelu;
  const bool silu = c.activation == HiddenActivation::silu;
  if (c.activation != usual && !(modern && silu)) refuse_encoder(folder, "its activation differs from the architecture's");
  if (modern) keys.text("hidden_activation", silu ? "silu" : "gelu");
  describe_labels(folder, c, modern, keys);
}

std::vector<float> llama3_factors(const RopeOptions& rope) {
  const double longest = rope.original_length / rope.low_freq_factor, shortest = rope.original_length / rope.high_freq_factor;
  std::vector<float> factors;
  for (std::int64_t i = 0; i < rope.dims / 2; ++i) {
    const double length = 2 * std::numbers::pi * std::pow(rope.theta, 2.0 * static_cast<double>(i) / static_cast<double>(rope.dims));
    const double smooth = (rope.original_length / length - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
    const double factor = length < shortest ? 1 : length > longest ? rope.factor : 1 / ((1 - smooth) / rope.factor + smooth);
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

}  // namespace rlx
