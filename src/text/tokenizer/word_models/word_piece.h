#pragma once
#include <functional>

#include "text/tokenizer/word_models/vocabulary.h"
#include "text/tokenizer/word_models/word_model.h"

namespace rlx {

/// WordPiece (Schuster & Nakajima 2012; greedy form of Devlin et al. 2018): a word is its longest prefix in the vocabulary, then the
/// longest pieces with the continuing prefix ("##") before them; one unknown token if that does not reach the end.
class WordPiece : public WordModel {
 public:
  /// Fields: vocab, unk_token (in vocab), continuing_subword_prefix, max_input_chars_per_word (longer words are unknown).
  explicit WordPiece(const JsonField& field);
  /// For vocabularies that mark the tokens that start a word instead; `in_texts` says which tokens texts are cut into.
  WordPiece(Vocabulary vocabulary, std::string_view start_marker, std::int32_t unknown, const std::function<bool(std::int32_t)>& in_texts);

  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override;
  std::optional<std::int32_t> token_to_id(std::string_view token) const override { return vocabulary_.id(token); }
  std::optional<std::string_view> id_to_token(std::int32_t id) const override { return vocabulary_.token(id); }
  std::size_t vocab_size() const override { return vocabulary_.size(); }

 private:
  std::optional<WordToken> longest_piece(std::string_view word, std::size_t begin) const;

  void add_piece(std::string_view piece, std::int32_t id, bool continuing);

  Vocabulary vocabulary_;
  Vocabulary starting_;            // tokens that start a word, without the marker
  Vocabulary continuing_;          // tokens with the prefix, without it
  std::size_t longest_token_ = 0;  // in bytes: no longer piece can match
  std::int32_t unknown_;
  std::size_t max_word_chars_ = SIZE_MAX;
};

}  // namespace rlx
