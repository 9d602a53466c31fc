#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/json_field.h"

namespace rlx {

/// Turns tokens back into text: each step rewrites the list of tokens, and what the last one leaves is joined.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

/// Reads every decoder of `tokenizers` 0.23, with its meaning there. Throws Error for any other kind and for malformed fields.
std::unique_ptr<TokenDecoder> read_decoder(const JsonField& field);

/// For a file without a decoder: the tokens with a space between them.
std::unique_ptr<TokenDecoder> spaced_decoder();
/// For tokens that are written as byte_chars.
std::unique_ptr<TokenDecoder> byte_level_decoder();
/// For sentencepiece's tokens: U+2581 is a space, <0x00>.. are bytes; without the first space, if one was put before the text.
std::unique_ptr<TokenDecoder> sentencepiece_decoder(bool strip_first_space);
/// For tokens that continue a word unless they start with U+2581.
std::unique_ptr<TokenDecoder> word_start_decoder();

/// The byte that a token <0x00>..<0xFF> stands for.
std::optional<char> fallback_byte(std::string_view token);

/// `bytes` with U+FFFD for each part that is not UTF-8.
std::string replace_invalid_utf8(std::string bytes);

}  // namespace rlx
