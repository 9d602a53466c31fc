#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/word_models/byte_trie.h"
#include "text/tokenizer/word_models/word_model.h"
#include "text/unicode/aligned_text.h"

namespace rlx {

/// A token that is looked for in the text before the model sees it.
struct AddedToken {
  std::string content;
  std::string shown;  // the normalized content, if the token is looked for in normalized text
  std::int32_t id;
  bool special;              // left out by decode
  bool single_word;          // matches only where no word character is next to it
  bool lstrip, rstrip;       // takes the white space on this side
  bool normalized;           // looked for, in normalized form, in the normalized text
  std::string written = {};  // as the decoder takes it, where that is not as it is shown

  std::string_view for_decoder() const { return written.empty() ? shown : written; }
};

/// A part of a text: one added token, or (token is null) what is left for the model.
struct TextSegment {
  TextRange range;
  const AddedToken* token;
};

/// The `added_tokens` of a tokenizer file.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// Throws Error for malformed fields, for an id that is not the vocabulary's (or, for a token that the vocabulary lacks, not the next
  /// free one), and for two tokens that no text could tell apart.
  AddedTokens(const std::optional<JsonField>& field, const WordModel& model, const Normalizer* normalizer);

  /// Adds a token that is looked for in the text as it is given. False if it is empty, or another one has its text.
  bool add(AddedToken token, bool is_new);
  /// Adds a token that is looked for as it is, and which the decoder takes as `written`, unless that is empty. One without text, or with
  /// that of another one, is not added.
  void add_plain(std::string_view content, std::int32_t id, bool special, bool is_new = false, std::string written = {});

  /// Cuts a text at the added tokens that are (`normalized`) or are not looked for in normalized text: leftmost first, the longest of
  /// those that start at the same place. Segments cover the text, none is empty; those of
  /// tokens overlap where the white space behind one is a token, too.
  std::vector<TextSegment> split(std::string_view text, bool normalized) const;

  const AddedToken* find(std::string_view content) const;
  const AddedToken* find(std::int32_t id) const;
  /// How many of the tokens the model's vocabulary lacks.
  std::size_t new_tokens() const { return new_tokens_; }

 private:
  void read(const JsonField& field, const WordModel& model, const Normalizer* normalizer);

  std::map<std::int32_t, AddedToken> tokens_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
  std::size_t new_tokens_ = 0;
  ByteTrie raw_;
  ByteTrie normalized_;
};

}  // namespace rlx
