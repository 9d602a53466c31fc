#pragma once
#include "models/decoder.h"

namespace rlx {

/// What an encoder of text reads, one row a text, padded on the right: all (B, S) of i32.
struct TextInputs {
  Value input_ids;
  Value attention_mask;  // 0 for padding
  Value token_type_ids;  // null where tokens have no types

  /// Declares the graph inputs of these names. B and S are symbols with the given bounds: one compiled graph serves all sizes.
  static TextInputs declare(Graph& graph, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length);
};

/// A description without `causal` as a graph that encodes texts. Rows of padding mean nothing.
struct EncodedText {
  TextInputs inputs;
  StoredMatrix table;  // the embeddings'
  Values states;       // (B, S, hidden_size): after the embeddings, then after each layer; the last normalised where the model does so
};

EncodedText encode_text(Flow flow, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length);
/// What a token may stand for: (B, S, vocab_size).
Value token_logits(Flow flow, const DecoderConfig& config, const EncodedText& text);
/// A text as one vector, through the dense layer below a classifier: (B, hidden_size).
Value text_vector(Flow flow, const DecoderConfig& config, const EncodedText& text);
/// A text's score for each label: (B, labels).
Value text_scores(Flow flow, const DecoderConfig& config, const EncodedText& text);

}  // namespace rlx
