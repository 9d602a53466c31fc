#include "models/tokenizer/word_model.h"

#include "models/tokenizer/word_piece.h"

namespace rlx {

std::unique_ptr<WordModel> read_word_model(const JsonField& field) {
  // Files from before the member `type` existed are told apart by the member that only WordPiece has.
  const bool untyped_word_piece = !field.find("type") && field.find("max_input_chars_per_word");
  if (untyped_word_piece || field.kind() == "WordPiece") return std::make_unique<WordPiece>(field);
  field.refuse_kind("WordPiece");
}

}  // namespace rlx
