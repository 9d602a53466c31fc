#pragma once
#include <deque>
#include <string_view>

#include "base/function_ref.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/traced_text.h"

namespace rlx {

/// A word of a text, for the model to cut, or an added token.
struct Word {
  Piece piece;
  const AddedToken* token;  // null: a word
};

/// What turns a text into words; a normalizer or a pre-tokenizer that is null leaves the text as it is, or whole.
struct TextSplitter {
  const AddedTokens& added_tokens;
  const Normalizer* normalizer;
  const PreTokenizer* pre_tokenizer;
  bool with_origins;  // whether words know where they come from in the text

  /// Calls `word` for each word of `text` in order. Parts that are not UTF-8 count as U+FFFD. Throws Error if the text has 4 GiB or more.
  void split(std::string_view text, FunctionRef<void(const Word&)> word) const;

 private:
  void split_part(const TracedText& part, bool at_start, FunctionRef<void(const Word&)> word) const;
};

}  // namespace rlx
