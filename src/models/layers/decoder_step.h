#pragma once
#include <map>
#include <optional>
#include <string_view>

#include "models/layers/decoder.h"

namespace rlx {

/// Pages of page_tokens tokens in which layers keep what they see, as a run finds them.
struct TokenPages {
  std::int64_t count;  // in all
  Value table;         // (N, P): those that the run reads of each sequence, in the order of its tokens
  Value places;        // (N * S, 2): the page that takes each token, and the row in it
  Value rows;          // (N, S): the rows of the tokens in the pages of the table
};

/// The texts that an encoder reads one behind the other, T tokens in all.
struct PackedTexts {
  Value begins;  // (T, 1): of each token, where its text begins; `longest` tokens and more are there
  Value last;    // (T, 1): of each token, the position of the last one in its text
  Dim longest;   // tokens of a text
};

/// What the layers of a decoder's graph read beside the features of the tokens.
struct DecoderStep {
  const DecoderConfig& config;
  DecoderGraphOptions options = {};
  Value positions;                                // (N, S); of an encoder (S), or (T, 1)
  Value past = {};                                // (N); null for an encoder
  Value context = {};                             // (), or (N, 1, 1, 1); null where no layer asks for it
  Value mask = {};                                // (N, C, L); null likewise
  Value lengths = {};                             // (N), tokens by the mask; null likewise
  std::map<std::int64_t, TokenPages> pages = {};  // by window; 0: of layers whose windows have no pages of their own
  Value attended = {};                            // of an encoder, bool (N, 1, 1, S): not padding
  std::optional<PackedTexts> texts = {};          // of an encoder in place of `attended`: N is T, S 1
};

/// The input `mask` of a graph for sequences with so many tokens each: as few chunks as hold them, with as little padding as can be.
Array token_mask(std::int64_t sequences, std::int64_t tokens);
/// Layer i of the model: (N, S, hidden_size) -> the same.
Value decoder_layer(Flow flow, const DecoderStep& step, std::size_t i, Value x);
/// The states of the first sequence: (states, S, H).
Value states_of_first(const Values& states);
/// (..., hidden_size) -> (..., vocab_size); `table` is the embeddings'.
Value decoder_logits(Flow flow, const DecoderConfig& config, const StoredMatrix& table, Value x);
/// x (N, S, H) at rows (N, R): (N, R, H).
Value at_rows(Value x, Value rows);
Value decoder_norm(Flow flow, std::string_view name, const NormKind& norm, Value x);
/// (N, S, hidden_size) -> the same.
Value decoder_attention(Flow flow, const DecoderStep& step, const DecoderLayer& layer, Value x);
Value decoder_latent_attention(Flow flow, const DecoderStep& step, const DecoderLayer& layer, Value x);
Value decoder_delta_net(Flow flow, const DecoderStep& step, Value x);
Value decoder_state_space(Flow flow, const DecoderStep& step, Value x);
Value decoder_state_space_heads(Flow flow, const DecoderStep& step, Value x);
Value decoder_short_convolution(Flow flow, const DecoderStep& step, Value x);
Value decoder_feed_forward(Flow flow, const DecoderConfig& config, const DecoderLayer& layer, Value x);

}  // namespace rlx
