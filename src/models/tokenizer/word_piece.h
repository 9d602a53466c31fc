#pragma once
#include "models/tokenizer/vocabulary.h"
#include "models/tokenizer/word_model.h"

namespace rlx {

/// WordPiece (Schuster & Nakajima 2012; greedy form of Devlin et al. 2018): a word is its longest prefix in the vocabulary, then the
/// longest pieces with the continuing prefix ("##") before them; one unknown token if that does not reach the end.
class WordPiece : public WordModel {
 public:
  /// Fields: vocab, unk_token (in vocab), continuing_subword_prefix, max_input_chars_per_word (longer words are unknown).
  explicit WordPiece(const JsonField& field);

  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override;
  std::optional<std::int32_t> token_to_id(std::string_view token) const override { return vocabulary_.id(token); }
  std::optional<std::string_view> id_to_token(std::int32_t id) const override { return vocabulary_.token(id); }
  std::size_t vocab_size() const override { return vocabulary_.size(); }

 private:
  using Pieces = std::unordered_map<std::string_view, std::int32_t>;
  std::optional<WordToken> longest_piece(std::string_view word, std::size_t begin) const;

  Vocabulary vocabulary_;
  Pieces continuing_;              // tokens with the prefix, without it
  std::size_t longest_token_ = 0;  // in bytes: no longer piece can match
  std::int32_t unknown_;
  std::size_t max_word_chars_;
};

}  // namespace rlx
