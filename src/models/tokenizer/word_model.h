#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/tokenizer/json_field.h"

namespace rlx {

/// A token of a word: its id and the bytes [begin, end) of the word that it stands for.
struct WordToken {
  std::int32_t id;
  std::size_t begin;
  std::size_t end;
};

/// Turns one word into tokens. Owns the vocabulary.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the tokens of `word` (UTF-8, not empty) to `tokens`.
  virtual void tokenize(std::string_view word, std::vector<WordToken>& tokens) const = 0;
  virtual std::optional<std::int32_t> token_to_id(std::string_view token) const = 0;
  /// Nothing if no token has this id. The view lives as long as the model.
  virtual std::optional<std::string_view> id_to_token(std::int32_t id) const = 0;
  virtual std::size_t vocab_size() const = 0;
};

/// Reads a model of kind WordPiece. Throws Error for any other kind and for malformed fields.
std::unique_ptr<WordModel> read_word_model(const JsonField& field);

}  // namespace rlx
