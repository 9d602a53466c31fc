#pragma once
#include <cstdint>
#include <string>

#include "models/activation.h"
#include "models/flow.h"
#include "models/tokenizer/json_field.h"

namespace rlx {

/// The sizes of a BERT (Devlin et al. 2018), named as in Hugging Face's config.json.
struct BertConfig {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t max_position_embeddings = 0;
  std::int64_t type_vocab_size = 0;
  double layer_norm_eps = 1e-12;
  HiddenActivation hidden_act = HiddenActivation::gelu;

  /// Throws Error naming the file and the field for what is missing, malformed or not supported (decoders, relative positions).
  static BertConfig read(const JsonField& config);
};

/// What an encoder of text reads, one row a text, padded on the right: all (B, S) of i32.
struct TextInputs {
  Value input_ids;
  Value attention_mask;  // 0 for padding
  Value token_type_ids;

  /// Declares the graph inputs of these names. B and S are symbols with the given bounds: one compiled graph serves all sizes.
  static TextInputs declare(Graph& graph, std::int64_t max_batch, std::int64_t max_length);
};

/// The hidden states (B, S, hidden_size): after the embeddings, then after each layer. S must not exceed max_position_embeddings.
/// Rows of padding hold values that mean nothing.
Values bert_hidden_states(Flow flow, const BertConfig& config, const TextInputs& inputs);

/// The first token's state through a dense layer and tanh: (B, S, hidden_size) -> (B, hidden_size).
Value bert_pooler(Flow flow, const BertConfig& config, Value last_hidden_state);

/// Names in BERT checkpoints: with and without `bert.`, gamma and beta for the norms, and buffers and heads that the encoder lacks.
WeightNames bert_weight_names();

}  // namespace rlx
