// nomic-bert: BERT's encoder with rope and a gated feed-forward block.
#include "models/config/config_field.h"
#include "models/config/rope_config.h"
#include "models/config/rope_writer.h"
#include "models/families/decoder_family.h"
#include "models/families/gpt2.h"
#include "models/families/llama.h"

namespace rlx {
namespace {

/// The sizes in the spelling of GPT-2, which the first models of the family have.
DecoderConfig read_old_spelling(const JsonField& config) {
  DecoderConfig c = read_gpt2_sizes(config);
  config.at("activation_function").as_one_of({"swiglu"});
  for (std::string_view name : {"prenorm", "causal", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias", "rotary_emb_interleaved"})
    if (flag_or(config, name, false)) config.at(name).refuse("true is not supported (allowed: false)");
  if (number_or(config, "rotary_emb_fraction", 1) != 1) config.at("rotary_emb_fraction").refuse("only 1 is supported");
  if (count_or(config, "moe_every_n_layers", 0) != 0) config.at("moe_every_n_layers").refuse("only 0 is supported");
  c.ropes = {{.theta = as_number(config.at("rotary_emb_base"), 1e-3, 1e30), .dims = c.head_size}};
  return c;
}

DecoderConfig read_nomic_bert(const JsonField& config) {
  const bool old_spelling = config.find("n_embd").has_value();
  DecoderConfig c = old_spelling ? read_old_spelling(config) : read_llama(config);
  c.causal = false;
  c.norm = {.centred = true, .bias = true, .eps = non_negative_or(config, old_spelling ? "layer_norm_epsilon" : "layer_norm_eps", 1e-12)};
  c.norm_before = false, c.norm_sum = true;
  c.token_types = count_or(config, "type_vocab_size", 2);
  c.embedding_norm = true, c.output_norm = false, c.output = false;
  if (!old_spelling) c.ropes = {read_rope(config, c.head_size)};
  return c;
}

WeightNames nomic_bert_names(const DecoderConfig&) {
  return {.prefix = "nomic_bert.",
          .unused = {"pooler", "cls", "classifier"},
          .whole = {{{"token_embedding"}, "embeddings.word_embeddings"},
                    {{"type_embedding"}, "embeddings.token_type_embeddings"},
                    {{"embedding_norm"}, "emb_ln"}},
          .layers = "encoder.layers",
          .layer = {{{"attention.q", "attention.k", "attention.v"}, "attn.Wqkv"},
                    {{"attention.output"}, "attn.out_proj"},
                    {{"attention_post_norm"}, "norm1"},
                    {{"ffn.gate"}, "mlp.fc12"},
                    {{"ffn.up"}, "mlp.fc11"},
                    {{"ffn.down"}, "mlp.fc2"},
                    {{"ffn_post_norm"}, "norm2"}}};
}

json::Value write_nomic(const DecoderConfig& c) {
  json::Value out = llama_fields(c);
  write_rope(c, out);
  out["type_vocab_size"] = c.token_types;
  return out;
}

const DecoderFamily nomic_bert_family({"nomic_bert"}, read_nomic_bert, nomic_bert_names, write_nomic);

}  // namespace
}  // namespace rlx
