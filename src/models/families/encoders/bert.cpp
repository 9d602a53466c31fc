// BERT (Devlin et al. 2018), and what differs from it by little: RoBERTa and its kin, whose positions begin behind that of padding, and
// DistilBERT, whose tokens have no types.
#include "models/config/config_field.h"
#include "models/families/decoder_family.h"
#include "models/families/encoders/text_head.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

void refuse_other_berts(const JsonField& config) {
  if (const auto kind = config.find("position_embedding_type")) kind->as_one_of({"absolute"});
  for (std::string_view name : {"is_decoder", "add_cross_attention"})
    if (flag_or(config, name, false)) config.at(name).refuse("decoders are not supported (allowed: false)");
}

/// The axes that all of them share, after the sizes.
DecoderConfig as_bert(DecoderConfig c, const JsonField& config) {
  refuse_other_berts(config);
  c.causal = false;
  c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, "layer_norm_eps", 1e-12)};
  c.norm_before = false, c.norm_sum = true;
  c.qkv_bias = c.attention_output_bias = c.ffn_bias = true;
  c.gated = false;
  c.position_embedding = true;
  for (DecoderLayer& layer : c.layers) layer.rope = -1;
  c.embedding_norm = true, c.output_norm = false;
  read_labels(config, c.text_head);
  c.text_head.dense = !c.text_head.each_token;
  c.output = c.output_dense = c.output_bias = predicts_words(config);
  c.tied_output = c.output && flag_or(config, "tie_word_embeddings", true);
  return c;
}

DecoderConfig read_bert(const JsonField& config) {
  DecoderConfig c = as_bert(read_llama(config), config);
  if (!config.find("hidden_act")) c.activation = HiddenActivation::gelu;
  c.output_activation = c.activation;
  c.token_types = count_or(config, "type_vocab_size", 2);
  return c;
}

DecoderConfig read_roberta(const JsonField& config) {
  DecoderConfig c = read_bert(config);
  c.output_activation = HiddenActivation::gelu;  // whatever the layers have
  c.first_position = count_or(config, "pad_token_id", 1) + 1;
  if (c.max_positions <= c.first_position)
    config.at("max_position_embeddings").refuse("{} rows (needed: more than {}, where texts begin)", c.max_positions, c.first_position);
  c.max_positions -= c.first_position;
  return c;
}

DecoderConfig read_distilbert(const JsonField& config) {
  DecoderConfig c;
  c.vocab_size = as_size(config.at("vocab_size"));
  c.hidden_size = as_size(config.at("dim"));
  c.max_positions = as_size(config.at("max_position_embeddings"));
  c.heads = c.kv_heads = as_size(config.at("n_heads"));
  if (c.hidden_size % c.heads != 0) config.at("n_heads").refuse("{} do not divide dim {}", c.heads, c.hidden_size);
  c.head_size = c.hidden_size / c.heads;
  c.ffn_size = as_size(config.at("hidden_dim"));
  c.layers.resize(static_cast<std::size_t>(config.at("n_layers").as_integer(1, 1024)));
  c = as_bert(std::move(c), config);
  const auto act = config.find("activation");
  c.activation = c.output_activation = act ? read_activation(*act) : HiddenActivation::gelu;
  c.text_head.activation = HiddenActivation::relu;
  return c;
}

/// The head that says words: a dense layer, its norm, the words, whose bias is apart where their weights are the embeddings.
void add_word_head(const DecoderConfig& config, WeightNames& names, const std::string& dense, const std::string& norm,
                   const std::string& words, const std::string& tied_bias) {
  names.whole.push_back({{"head.dense"}, dense});
  names.whole.push_back({{"head.norm"}, norm});
  names.whole.push_back({{"output"}, words});
  if (config.tied_output) names.whole.push_back({{"output.bias"}, tied_bias});
}

/// All but the head that says words.
WeightNames names_of_bert() {
  return {.prefix = "bert.",
          .endings = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
          .unused = {"embeddings.position_ids", "embeddings.token_type_ids", "pooler", "cls", "lm_head", "classifier", "qa_outputs"},
          .whole = {{{"token_embedding"}, "embeddings.word_embeddings"},
                    {{"type_embedding"}, "embeddings.token_type_embeddings"},
                    {{"position_embedding"}, "embeddings.position_embeddings"},
                    {{"embedding_norm"}, "embeddings.LayerNorm"},
                    {{"classifier.dense"}, "pooler.dense"},
                    {{"classifier.output"}, "classifier"}},
          .layers = "encoder.layer",
          .layer = {{{"attention.q"}, "attention.self.query"},
                    {{"attention.k"}, "attention.self.key"},
                    {{"attention.v"}, "attention.self.value"},
                    {{"attention.output"}, "attention.output.dense"},
                    {{"attention_post_norm"}, "attention.output.LayerNorm"},
                    {{"ffn.up"}, "intermediate.dense"},
                    {{"ffn.down"}, "output.dense"},
                    {{"ffn_post_norm"}, "output.LayerNorm"}}};
}

WeightNames bert_names(const DecoderConfig& config) {
  WeightNames names = names_of_bert();
  add_word_head(config, names, "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
                "cls.predictions.bias");
  return names;
}

WeightNames roberta_names(const DecoderConfig& config) {
  WeightNames names = names_of_bert();
  names.prefix = "roberta.";
  add_word_head(config, names, "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias");
  if (config.text_head.labels > 0 && config.text_head.dense) {  // else the dense layer is the pooler's
    names.whole.push_back({{"classifier.dense"}, "classifier.dense"});
    names.whole.push_back({{"classifier.output"}, "classifier.out_proj"});
  }
  return names;
}

WeightNames distilbert_names(const DecoderConfig& config) {
  WeightNames names{.prefix = "distilbert.",
                    .unused = {"vocab_transform", "vocab_layer_norm", "vocab_projector", "pre_classifier", "classifier", "qa_outputs"},
                    .whole = {{{"token_embedding"}, "embeddings.word_embeddings"},
                              {{"position_embedding"}, "embeddings.position_embeddings"},
                              {{"embedding_norm"}, "embeddings.LayerNorm"},
                              {{"classifier.dense"}, "pre_classifier"},
                              {{"classifier.output"}, "classifier"}},
                    .layers = "transformer.layer",
                    .layer = {{{"attention.q"}, "attention.q_lin"},
                              {{"attention.k"}, "attention.k_lin"},
                              {{"attention.v"}, "attention.v_lin"},
                              {{"attention.output"}, "attention.out_lin"},
                              {{"attention_post_norm"}, "sa_layer_norm"},
                              {{"ffn.up"}, "ffn.lin1"},
                              {{"ffn.down"}, "ffn.lin2"},
                              {{"ffn_post_norm"}, "output_layer_norm"}}};
  add_word_head(config, names, "vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias");
  return names;
}

json::Value write_bert(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  out.erase("head_dim");
  out["type_vocab_size"] = c.token_types;
  return out;
}

/// Positions begin behind that of padding.
json::Value write_roberta(const DecoderConfig& c) {
  json::Value out = write_bert(c);
  constexpr std::int64_t first = 2;
  out["pad_token_id"] = first - 1;
  out["max_position_embeddings"] = c.max_positions + first;
  return out;
}

json::Value write_distilbert(const DecoderConfig& c) {
  return {{"vocab_size", c.vocab_size},
          {"dim", c.hidden_size},
          {"hidden_dim", c.ffn_size},
          {"n_layers", c.layers.size()},
          {"n_heads", c.heads},
          {"max_position_embeddings", c.max_positions},
          {"activation", activation_name(c.activation)}};
}

const DecoderFamily bert_family({"bert"}, read_bert, bert_names, write_bert);
const DecoderFamily roberta_family({"roberta", "xlm-roberta", "camembert"}, read_roberta, roberta_names, write_roberta);
const DecoderFamily distilbert_family({"distilbert"}, read_distilbert, distilbert_names, write_distilbert);

}  // namespace

}  // namespace rlx
