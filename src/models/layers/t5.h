#pragma once
#include <cstdint>

#include "models/config/t5_config.h"
#include "models/layers/encoder.h"
#include "models/layers/flow.h"

namespace rlx {

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

/// The encoder of a T5 alone: EncodedText as of a description.
EncodedText encode_text(Flow flow, const T5Config& config, std::int64_t max_batch, std::int64_t max_length);

}  // namespace rlx
