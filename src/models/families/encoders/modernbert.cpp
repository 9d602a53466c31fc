// ModernBERT: an encoder whose layers mostly see a window, with a rope of its own for those; gated blocks without biases.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/families/decoder_family.h"
#include "models/families/encoders/text_head.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

void read_modernbert_layers(const JsonField& config, DecoderConfig& c) {
  const std::vector<bool> listed = read_sliding_layers(config, c.layers.size());
  const auto every = static_cast<std::size_t>(size_or(config, "global_attn_every_n_layers", 3));
  const std::int64_t window = as_size(config.at("local_attention")) / 2;
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool slides = listed.empty() ? i % every != 0 : listed[i];
    if (slides) c.layers[i].window = window, c.layers[i].rope = 1;
  }
  c.layers[0].norm = false;  // the embeddings have one
  RopeOptions full = read_rope(config, c.head_size, "full_attention"), sliding = read_rope(config, c.head_size, "sliding_attention");
  if (!config.find("rope_parameters"))
    full.theta = number_or(config, "global_rope_theta", 160000), sliding.theta = number_or(config, "local_rope_theta", 10000);
  c.ropes = {full, sliding};
}

void read_classifier(const JsonField& config, TextHead& head) {
  read_labels(config, head);
  const auto pooling = config.find("classifier_pooling");
  head.mean = pooling && pooling->as_one_of({"cls", "mean"}) == 1;
  head.dense_bias = flag_or(config, "classifier_bias", false), head.norm = true;
  const auto act = config.find("classifier_activation");
  head.activation = act ? read_activation(*act) : HiddenActivation::gelu;
}

DecoderConfig read_modernbert(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.causal = false;
  c.norm = {.centred = true, .bias = flag_or(config, "norm_bias", false), .eps = non_negative_or(config, "norm_eps", 1e-5)};
  c.activation = HiddenActivation::gelu;
  if (const auto act = config.find("hidden_activation")) c.activation = read_activation(*act);
  c.embedding_norm = true;
  c.tied_output = flag_or(config, "tie_word_embeddings", true), c.output_bias = flag_or(config, "decoder_bias", true),
  c.output_dense = true;
  read_modernbert_layers(config, c);
  read_classifier(config, c.text_head);
  c.output_activation = c.text_head.activation;
  return c;
}

WeightNames modernbert_names(const DecoderConfig&) {
  return {.prefix = "model.",
          .unused = {"head", "decoder", "classifier"},  // what predicts tokens or scores texts
          .whole = {{{"token_embedding"}, "embeddings.tok_embeddings"},
                    {{"embedding_norm"}, "embeddings.norm"},
                    {{"output_norm"}, "final_norm"},
                    {{"output"}, "decoder"},
                    {{"classifier.dense"}, "head.dense"},
                    {{"classifier.norm"}, "head.norm"},
                    {{"classifier.output"}, "classifier"}},
          .layer = {{{"attention_norm"}, "attn_norm"},
                    {{"attention.q", "attention.k", "attention.v"}, "attn.Wqkv"},
                    {{"attention.output"}, "attn.Wo"},
                    {{"ffn_norm"}, "mlp_norm"},
                    {{"ffn.gate", "ffn.up"}, "mlp.Wi"},
                    {{"ffn.down"}, "mlp.Wo"}}};
}

json::Value write_modernbert(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  out.erase("layer_norm_eps");
  out["norm_eps"] = c.norm.eps;
  out["hidden_activation"] = activation_name(c.activation);
  out["local_attention"] = 2 * widest_window(c);
  write_sliding_layers(c, out);
  out["global_rope_theta"] = c.ropes[0].theta, out["local_rope_theta"] = c.ropes.size() > 1 ? c.ropes[1].theta : c.ropes[0].theta;
  out["attention_bias"] = c.qkv_bias, out["mlp_bias"] = c.ffn_bias, out["norm_bias"] = c.norm.bias;
  if (c.output) out["decoder_bias"] = c.output_bias;
  out["classifier_bias"] = c.text_head.dense_bias;
  out["classifier_pooling"] = c.text_head.mean ? "mean" : "cls";
  return out;
}

const DecoderFamily modernbert_family({"modernbert"}, read_modernbert, modernbert_names, write_modernbert);

}  // namespace
}  // namespace rlx
