#pragma once
#include <cstddef>
#include <deque>
#include <string_view>
#include <vector>

#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/aligned_text.h"
#include "models/tokenizer/encoding.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/pre_tokenizer.h"
#include "models/tokenizer/word_model.h"

namespace rlx {

/// A text, normalized and cut into words and added tokens.
class SplitText {
 public:
  /// `normalizer` and `pre_tokenizer` may be null: the text stays as it is, or whole.
  SplitText(std::string_view text, const AddedTokens& added_tokens, const Normalizer* normalizer, const PreTokenizer* pre_tokenizer);

  /// How many words there are; added tokens count as words.
  std::size_t size() const { return words_.size(); }

  /// Appends the tokens of a word to `encoding`, with offsets into the text.
  void encode_word(std::size_t word, const WordModel& model, Encoding& encoding) const;

 private:
  struct Word {
    const AlignedText* text;  // in texts_
    TextRange range;
    const AddedToken* token;  // null: the model's to cut
  };

  void add_part(AlignedText text, const AddedTokens& added_tokens, const PreTokenizer* pre_tokenizer);

  std::deque<AlignedText> texts_;  // each is normalized by itself
  std::vector<Word> words_;
};

}  // namespace rlx
