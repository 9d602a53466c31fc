#include "text/tokenizer/word_models/space_words.h"

namespace rlx {

bool tokens_start_at_spaces(const Vocabulary& vocabulary) {
  if (!vocabulary.id(space_marker)) return false;
  for (std::size_t entry = 0; entry < vocabulary.size(); ++entry) {
    const std::string_view text = vocabulary.token_at(entry);
    for (std::size_t at = text.find(space_marker, 1); at != std::string_view::npos; at = text.find(space_marker, at + 1)) {
      if (!text.substr(0, at).ends_with(space_marker)) return false;
    }
  }
  return true;
}

}  // namespace rlx
