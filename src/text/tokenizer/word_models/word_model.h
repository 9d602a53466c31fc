#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/json/json_field.h"

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
  /// How an encoding shows a token of `word`: by its name, mostly.
  virtual std::string_view shown(const WordToken& token, std::string_view /*word*/) const { return *id_to_token(token.id); }
};

/// Reads a model of kind BPE, Unigram, WordPiece or WordLevel; `of_bytes` if a pre-tokenizer leaves bytes to a BPE model. Throws Error for
/// any other kind and for malformed fields.
std::unique_ptr<WordModel> read_word_model(const JsonField& field, bool of_bytes);
/// Whether the model can take bytes where the pre-tokenizer leaves them: BPE with a token for each byte.
bool takes_bytes(const JsonField& field);

}  // namespace rlx
