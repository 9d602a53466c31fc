#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace rlx {

/// What a sentencepiece model holds, in a file of its own or inside GGUF.
struct SentencePieces {
  /// Numbered as in both formats.
  enum class Type : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };

  std::vector<Piece> pieces;  // by id
  bool unigram = true;        // else BPE: the pair of the highest score merges first
  bool byte_fallback = false;
  bool single_precision = true;                        // unigram: scores are summed in f32
  std::string charsmap;                                // of the normalizer; may be empty
  bool space_before_text = true;                       // add_dummy_prefix
  bool merge_spaces = true;                            // remove_extra_whitespaces: runs become one space, and those at the ends go
  std::optional<std::int32_t> begin;                   // the token before each text
  std::optional<std::int32_t> end;                     // and after
  std::optional<std::int32_t> between = std::nullopt;  // behind `end`, before the second of two texts: those of an encoder

  /// The id of the piece of type unknown, if there is one.
  std::optional<std::int32_t> unknown() const;
};

/// Reads a `tokenizer.model` (the protocol buffer sentencepiece.ModelProto). BPE models get a begin token and unigram models an end token,
/// where they have one: that is how Llama and T5 use them. Throws Error naming `what`, the place and what is wrong.
SentencePieces read_sentencepiece(std::span<const std::byte> bytes, std::string_view what);

/// Throws Error naming `what` for pieces that make no tokenizer.
Tokenizer sentencepiece_tokenizer(const SentencePieces& model, std::string_view what);

}  // namespace rlx
