#pragma once
#include <string_view>

#include "text/tokenizer/word_models/vocabulary.h"

namespace rlx {

/// How sentencepiece writes a space: U+2581.
inline constexpr std::string_view space_marker = "\xE2\x96\x81";

/// Whether no token spans the start of a word, which is a run of U+2581 after something else. A text can then be cut there without changing
/// its tokens.
bool tokens_start_at_spaces(const Vocabulary& vocabulary);

/// Calls `part(begin, end)` for each word of a text with what follows up to the next word.
template <class Part>
void for_each_space_word(std::string_view text, Part part) {
  std::size_t begin = 0;
  for (std::size_t at = text.find(space_marker, 1); at != std::string_view::npos; at = text.find(space_marker, at + 1)) {
    if (text.substr(0, at).ends_with(space_marker)) continue;
    part(begin, at);
    begin = at;
  }
  part(begin, text.size());
}

}  // namespace rlx
