#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/tokenizer/aligned_text.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/word_model.h"

namespace rlx {

/// A token that is looked for in the text before the model sees it.
struct AddedToken {
  std::string content;
  std::string shown;  // the normalized content, if the token is looked for in normalized text
  std::int32_t id;
  bool special;         // left out by decode
  bool single_word;     // matches only where no word character is next to it
  bool lstrip, rstrip;  // takes the white space on this side
  bool normalized;      // looked for, in normalized form, in the normalized text
};

/// A part of a text: one added token, or (token is null) what is left for the model.
struct Segment {
  TextRange range;
  const AddedToken* token;
};

/// Strings that are found in a text leftmost first, the longest of those that start at the same place.
class PatternTrie {
 public:
  /// Gives the pattern `value`; false if the pattern is empty or already there.
  bool add(const std::u32string& pattern, std::size_t value);

  struct Match {
    std::size_t value;
    std::size_t end;
  };
  std::optional<Match> longest(const AlignedText& text, TextRange range) const;
  bool empty() const { return edges_.empty(); }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // (node, code point) -> node; the root is node 0
  std::vector<std::optional<std::size_t>> values_ = {std::nullopt};
};

/// The `added_tokens` of a tokenizer file.
class AddedTokens {
 public:
  /// Throws Error for malformed fields, for an id that is not the vocabulary's (or, for a token that the vocabulary lacks, not the next
  /// free one), and for two tokens that no text could tell apart.
  AddedTokens(const std::optional<JsonField>& field, const WordModel& model, const Normalizer* normalizer);

  /// Cuts a text at the added tokens that are (`normalized`) or are not looked for in normalized text. Segments cover the text, none is
  /// empty.
  std::vector<Segment> split(const AlignedText& text, bool normalized) const;

  const AddedToken* find(std::string_view content) const;
  const AddedToken* find(std::int32_t id) const;
  /// How many of the tokens the model's vocabulary lacks.
  std::size_t new_tokens() const { return new_tokens_; }

 private:
  void add(const JsonField& field, const WordModel& model, const Normalizer* normalizer);

  std::map<std::int32_t, AddedToken> tokens_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
  std::size_t new_tokens_ = 0;
  PatternTrie raw_;
  PatternTrie normalized_;
};

}  // namespace rlx
