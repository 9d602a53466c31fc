#pragma once
#include <cstdint>

#include "models/config/decoder_config.h"
#include "models/layers/flow.h"
#include "rlx/cache_type.h"
#include "rlx/graph.h"

namespace rlx {

/// The states of the first sequence that a graph also gives, (layers + 1, S, hidden_size): the embeddings and what each layer leaves, the
/// last normalised; or without the embeddings, and the last both as it is and normalised.
enum class HiddenStates : std::uint8_t { none, with_embeddings, without_embeddings };

/// Tokens of a page of a cache.
inline constexpr std::int64_t page_tokens = 128;

/// Most tokens of a chunk of a recurrence, and how many of them hold so many tokens.
inline constexpr std::int64_t scan_tokens = 64;
constexpr std::int64_t scan_chunks(std::int64_t tokens) { return (tokens + scan_tokens - 1) / scan_tokens; }

/// Most sequences of a recurrent model that run together in pages: memory is planned for so many of `chunk` tokens.
inline constexpr std::int64_t most_even_sequences = 64;

struct DecoderGraphOptions {
  std::int64_t sequences = 1;  // that run together, each with a cache of its own
  std::int64_t pages = 0;      // not 0: the caches lie in so many pages, and a run takes tokens of any sequences; see below
  std::int64_t capacity = 0;   // tokens of a cache
  std::int64_t chunk = 0;      // most tokens of a sequence in one run
  CacheType cache = CacheType::f32;
  bool exact = false;        // attention is exact_attention
  bool rope_tables = false;  // for devices without f64: rope_by_table, of a graph without pages
  HiddenStates hidden_states = HiddenStates::none;
  WeightStorage storage = {};  // of the parameters
  LowRankForms adapters = {};  // of matrices
};

/// One graph for prompts and for single tokens: no length compiles anew. Inputs, i32:
///
///     input_ids (N, S), past (N): the tokens that a sequence's cache holds, rows (N, R): the places among S whose logits are wanted,
///     and, where length_of_short_factors() > 0, context (): the length of the sequence when this run and those that follow it are done,
///     where is_recurrent(), mask (N, C, L): 1 for each of the S tokens, 0 for padding, in C chunks of L that hold them all; state spaces
///     of heads go from chunk to chunk; for windows the inputs of decoder_cache.h
///
/// Outputs: logits (N, R, vocab_size) in f32, the states of the caches, hidden_states_row0 where asked for. past + S must not
/// exceed the capacity. What a cache holds behind `past` does not matter: sequences of unlike lengths are padded on the right.
///
/// With pages a run has T tokens in all (up to `chunk`), those of a sequence side by side:
///
///     input_ids (T, 1), positions (T, 1): in their sequences, pages (T, P): those of each token's sequence, in order, page_tokens tokens
///     in each, P as many as the longest needs, rows (R): the tokens whose logits are wanted, and, where asked for, context (T)
///
/// Windows that are well below the capacity have pages of their own, of which those that no token of the run sees are left out:
/// pages_<window> (T, P<window>), and first_pages_<window> (T): how many were left out.
///
/// Where is_recurrent(), it has as many tokens of each of N sequences (up to most_even_sequences), T = N * S: input_ids (N, S), positions
/// (N, S), pages (N, P), context (N), and mask (N, C, L). The states of recurrent layers are (N, ...), those of the run's sequences.
///
/// Outputs: logits (R, vocab_size), the states. Sequences may share pages that they do not write.
Graph decoder_graph(const DecoderConfig& config, const DecoderGraphOptions& options);

}  // namespace rlx
