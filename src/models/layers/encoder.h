#pragma once
#include "models/layers/decoder.h"

namespace rlx {

/// How the graph of an encoder reads texts.
struct TextForm {
  bool types = false;   // tokens have types
  bool packed = false;  // one behind the other, without padding: see encode_texts
};
TextForm text_form(const DecoderConfig& config);

/// What an encoder of text reads, one row a text, padded on the right: all (B, S) of i32.
struct TextInputs {
  Value input_ids;       // packed: (T, 1)
  Value attention_mask;  // 0 for padding
  Value token_type_ids;  // null where tokens have no types; packed: (T, 1)

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
/// The same for many texts at a time, in the form that `text_form` says. Packed, the tokens of all texts lie one behind the other, those of
/// the longest last: input_ids and token_type_ids are (T), text_begins (T) has of each token where its text begins, text_ends (T) the
/// position of its last token, first_tokens (B) where each text begins. `states` are the last ones alone.
EncodedText encode_texts(Flow flow, const DecoderConfig& config, std::int64_t max_batch, std::int64_t max_length);
/// What a token may stand for: (B, S, vocab_size).
Value token_logits(Flow flow, const DecoderConfig& config, const EncodedText& text);
/// A text as one vector, through the dense layer below a classifier: (B, hidden_size).
Value text_vector(Flow flow, const DecoderConfig& config, const EncodedText& text);
/// A text's score for each label, (B, labels), or those of its tokens, (B, S, labels).
Value text_scores(Flow flow, const DecoderConfig& config, const EncodedText& text);

}  // namespace rlx
