#pragma once
#include <cstdint>

#include "models/layers/activation.h"
#include "models/layers/flow.h"

namespace rlx {

/// The sizes of a T5 (Raffel et al. 2020), named as in Hugging Face's config.json.
struct T5Config {
  std::int64_t vocab_size = 0, d_model = 0, d_kv = 0, d_ff = 0;
  std::int64_t num_heads = 0, num_layers = 0, num_decoder_layers = 0;
  std::int64_t buckets = 32, max_distance = 128;  // of relative positions
  double layer_norm_epsilon = 1e-6;
  HiddenActivation activation = HiddenActivation::relu;
  bool gated = false;
  bool tied_output = true;                  // the head's weights are the embeddings, and what it reads is scaled by d_model^-0.5
  std::int64_t n_positions = 512;           // tokens that it was made for; distances are all that counts, so that more run, too
  std::int32_t decoder_start_token_id = 0;  // what the decoder reads first

  /// Throws Error naming the file and the field for what is missing, malformed or not supported.
  static T5Config read(const JsonField& config);
};

struct T5GraphSizes {
  std::int64_t batch, length, decoder_length;  // bounds of the symbols
};

struct T5CacheSizes {
  std::int64_t length, capacity;  // most tokens of the text and of the answer
};

/// Encoder and decoder as one graph; no length compiles anew. Inputs, i32: input_ids and attention_mask (B, S), 0 for padding, and
/// decoder_input_ids (B, T). Outputs: logits (B, T, vocab_size), encoder_last_hidden_state (B, S, d_model), and hidden_states_row0
/// (num_decoder_layers + 1, T, d_model), the decoder's states of the first text, the last normalised. Matrices are parameters as `storage`
/// has them.
Graph t5_graph(const T5Config& config, const T5GraphSizes& sizes, const WeightStorage& storage = {});

/// Both parts apart, for one text whose answer grows token by token; parameters have the same names, and `storage` says how they are
/// stored. What the encoder reads: input_ids (1, S), i32, S up to `length`. Outputs: keys.i and values.i, (1, num_heads, S, d_kv), what the
/// cross attention of layer i of the decoder reads.
Graph t5_encoder_graph(const T5Config& config, std::int64_t length, const WeightStorage& storage);
/// Inputs: those keys and values; input_ids (1, T), i32; past (1), i32: the tokens that the caches hold, past + T <= capacity. Outputs:
/// logits (1, T, vocab_size) and the states of the caches of self attention.
Graph t5_decoder_graph(const T5Config& config, const T5CacheSizes& sizes, const WeightStorage& storage);

/// Names in T5 checkpoints: those of the parameters, and copies of the embeddings.
WeightNames t5_weight_names();

}  // namespace rlx
