#pragma once
#include "text/tokenizer/word_models/vocabulary.h"
#include "text/tokenizer/word_models/word_model.h"

namespace rlx {

/// A word is one token, or the unknown one.
class WordLevel : public WordModel {
 public:
  /// Fields: vocab, unk_token (in vocab).
  explicit WordLevel(const JsonField& field);

  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override {
    tokens.push_back({vocabulary_.id(word).value_or(unknown_), 0, word.size()});
  }
  std::optional<std::int32_t> token_to_id(std::string_view token) const override { return vocabulary_.id(token); }
  std::optional<std::string_view> id_to_token(std::int32_t id) const override { return vocabulary_.token(id); }
  std::size_t vocab_size() const override { return vocabulary_.size(); }

 private:
  Vocabulary vocabulary_;
  std::int32_t unknown_ = 0;
};

}  // namespace rlx
