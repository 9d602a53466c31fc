#pragma once
#include <memory>
#include <vector>

#include "models/tokenizer/aligned_text.h"
#include "models/tokenizer/json_field.h"

namespace rlx {

/// Cuts a normalized text into the words that the model sees one by one.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Appends the words of `text[range]` to `words`, in order and none of them empty.
  virtual void split(const AlignedText& text, TextRange range, std::vector<TextRange>& words) const = 0;
};

/// Reads BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits and Sequence, with their meaning in `tokenizers` 0.23.
/// Throws Error for any other kind and for malformed fields.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& field);

}  // namespace rlx
