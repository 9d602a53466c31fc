// nomic-bert: BERT's encoder with rope and a gated feed-forward block.
#include "models/config_field.h"
#include "models/decoder_family.h"
#include "models/families/llama.h"
#include "models/rope_config.h"

namespace rlx {
namespace {

DecoderConfig read_nomic_bert(const JsonField& config) {
  DecoderConfig c = read_llama(config);
  c.causal = false;
  c.norm = {.centred = true, .bias = true, .eps = number_or(config, "layer_norm_eps", 1e-12)};
  c.norm_before = false, c.norm_sum = true;
  c.token_types = count_or(config, "type_vocab_size", 2);
  c.embedding_norm = true, c.output_norm = false, c.output = false;
  c.ropes = {read_rope(config, c.head_size)};
  return c;
}

WeightNames nomic_bert_names(const DecoderConfig&) {
  return {.whole = {{{"token_embedding"}, "embeddings.word_embeddings"},
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

const DecoderFamily nomic_bert_family({"nomic_bert"}, read_nomic_bert, nomic_bert_names);

}  // namespace
}  // namespace rlx
