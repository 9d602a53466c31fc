#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "text/tokenizer/encoding.h"

namespace rlx {

class JsonField;

enum class TokenSide { left, right };

/// Cuts encodings to at most `max_length` tokens, special ones included.
struct Truncation {
  enum class Strategy { longest_first, only_first, only_second };

  std::size_t max_length = 512;
  Strategy strategy = Strategy::longest_first;  // which text of a pair gives way
  TokenSide direction = TokenSide::right;       // where tokens are taken away
};

/// Fills encodings up to a length.
struct Padding {
  std::optional<std::size_t> fixed_length = std::nullopt;  // else the encoding's own; longer encodings stay as they are
  std::size_t multiple_of = 0;                             // the length is rounded up to a multiple of it; 0: it is not
  TokenSide direction = TokenSide::right;                  // where tokens are added
  std::int32_t pad_id = 0;
  std::int32_t pad_type_id = 0;
  std::string pad_token = "[PAD]";
};

/// No padding goes beyond this many tokens, so that a file cannot ask for any amount of memory.
inline constexpr std::size_t max_padded_length = std::size_t{1} << 24;

/// Reads `truncation` and `padding` of a tokenizer file; an Error for malformed fields. A stride is checked and has no other effect:
/// it says by how much the windows after the first overlap, and only the first is kept.
Truncation read_truncation(const JsonField& field);
Padding read_padding(const JsonField& field);

/// Throws Error if a length is over max_padded_length.
void check(const Padding& padding);

/// Leaves at most `max_length` tokens in both together. Throws Error if the text that the strategy names is missing or
/// would have to lose all of its tokens.
void truncate(Encoding& first, std::optional<Encoding>& second, const Truncation& truncation, std::size_t max_length);

void pad(Encoding& encoding, const Padding& padding);

}  // namespace rlx
