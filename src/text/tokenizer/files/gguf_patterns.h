#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// What the tokens of a byte-pair tokenizer are made of.
enum class GgufAlphabet : std::uint8_t {
  bytes,
  text,   // code points, with U+2581 for spaces and byte tokens for what is unknown
  words,  // code points of words; the spaces between are lost
};

/// How a byte-pair tokenizer of a GGUF file cuts texts, by the name in `tokenizer.ggml.pre`.
struct GgufPattern {
  std::vector<std::string_view> names;     // the first is written
  std::vector<std::string_view> patterns;  // as pattern_pre_tokenizer takes them
  bool whole_words_first = false;          // as Bpe::Options has it
  bool add_begin = false;                  // unless the file says otherwise, a text starts with the begin token
  bool add_separator = false;              // and ends with the separator
  GgufAlphabet alphabet = GgufAlphabet::bytes;
};

/// All that are known. Files without a name mean "default".
std::span<const GgufPattern> gguf_patterns();

/// Throws Error naming `what` and the names that are known.
const GgufPattern& find_gguf_pattern(std::string_view name, std::string_view what);

}  // namespace rlx
