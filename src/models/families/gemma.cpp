// Gemma 1 to 3: norms times 1 + weight, embeddings times the root of their size, a tied head. From 2 on norms before and after each block,
// sliding layers, and soft caps (2) or norms of queries and keys with a rope of their own for sliding layers (3). EmbeddingGemma is 3 as an
// encoder.
#include <cmath>

#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/llama.h"
#include "models/families/text_part.h"

namespace rlx {
namespace {

void refuse_both_ways(const JsonField& config) {
  if (flag_or(config, "use_bidirectional_attention", false))
    config.at("use_bidirectional_attention").refuse("true is not supported (allowed: false)");
}

DecoderConfig read_gemma(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.norm.plus_one = true;
  c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
  c.tied_output = flag_or(config, "tie_word_embeddings", true);
  if (const auto activation = config.find("hidden_activation")) c.activation = read_activation(*activation);
  else if (!config.find("hidden_act") || c.activation == HiddenActivation::gelu)
    c.activation = HiddenActivation::gelu_tanh;  // gelu of old files means this
  c.ropes = {read_rope(config, c.head_size)};
  return c;
}

DecoderConfig read_gemma_sandwich(const JsonField& config) {
  DecoderConfig c = read_gemma(config);
  c.norm_after = true;
  c.attention_scale = 1 / std::sqrt(as_number(config.at("query_pre_attn_scalar"), 1e-6, 1e9));
  c.logits_softcap = non_negative_or(config, "final_logit_softcapping", 0);
  return c;
}

DecoderConfig read_gemma2(const JsonField& config) {
  refuse_both_ways(config);
  DecoderConfig c = read_gemma_sandwich(config);
  c.attention_softcap = non_negative_or(config, "attn_logit_softcapping", 0);
  read_windows(config, c, [](std::size_t layer) { return layer % 2 == 0; });
  return c;
}

DecoderConfig read_gemma3(const JsonField& config) {
  DecoderConfig c = read_gemma_sandwich(config);
  c.query_key_norm = QueryKeyNorm::head;
  const auto pattern = static_cast<std::size_t>(size_or(config, "sliding_window_pattern", size_or(config, "_sliding_window_pattern", 6)));
  read_windows(config, c, [&](std::size_t layer) { return (layer + 1) % pattern != 0; });
  RopeOptions sliding = read_rope(config, c.head_size, "sliding_attention");
  const auto ropes = config.find("rope_parameters");
  if (!ropes || !ropes->find("sliding_attention"))
    sliding = {.theta = number_or(config, "rope_local_base_freq", 10000), .dims = sliding.dims};
  c.ropes = {read_rope(config, c.head_size, "full_attention"), sliding};
  for (DecoderLayer& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
  if (flag_or(config, "use_bidirectional_attention", false)) c.see_both_ways();
  return c;
}

WeightNames gemma_sandwich_names(const DecoderConfig& config) {
  WeightNames names = llama_names(config);
  names.layer.push_back({{"attention_post_norm"}, "post_attention_layernorm"});
  names.layer.push_back({{"ffn_norm"}, "pre_feedforward_layernorm"});
  names.layer.push_back({{"ffn_post_norm"}, "post_feedforward_layernorm"});
  return names;
}

json::Value write_gemma(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  out["hidden_activation"] = activation_name(c.activation);
  write_rope(c, out);
  if (!c.norm_after) return out;
  const double scale = c.attention_scale > 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(c.head_size));
  out["query_pre_attn_scalar"] = static_cast<std::int64_t>(std::llround(1 / (scale * scale)));  // an integer in all of the family
  out["attn_logit_softcapping"] = c.attention_softcap > 0 ? json::Value(c.attention_softcap) : json::Value();
  out["final_logit_softcapping"] = c.logits_softcap > 0 ? json::Value(c.logits_softcap) : json::Value();
  write_windows(c, out);
  if (!c.causal) out["use_bidirectional_attention"] = true, out["sliding_window"] = 2 * widest_window(c);
  if (c.ropes.size() > 1) out["rope_local_base_freq"] = c.ropes[1].theta;
  return out;
}

const DecoderFamily gemma_family(
    {"gemma"}, [](const JsonField& config) { return refuse_both_ways(config), read_gemma(config); }, llama_names, write_gemma);
const DecoderFamily gemma2_family({"gemma2"}, read_gemma2, gemma_sandwich_names, write_gemma);
const DecoderFamily gemma3_family({"gemma3_text"}, read_gemma3, gemma_sandwich_names, write_gemma);

const DecoderFamily gemma3_vision_family(
    {"gemma3"}, [](const JsonField& config) { return read_text_part(config, "gemma3_text", read_gemma3); },
    [](const DecoderConfig& config) { return text_part_names(gemma_sandwich_names(config), "language_model.model."); });

}  // namespace
}  // namespace rlx
