#pragma once
#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/word_models/merge_table.h"
#include "text/tokenizer/word_models/vocabulary.h"
#include "text/tokenizer/word_models/word_cache.h"
#include "text/tokenizer/word_models/word_model.h"

namespace rlx {

/// Byte-pair encoding (Sennrich et al. 2016): a word starts as code points, or bytes, and the pair of neighbours of the lowest rank is
/// merged, the leftmost first, until no pair has a rank.
class Bpe : public WordModel {
 public:
  struct Options {
    bool of_bytes = false;                // words are bytes; the vocabulary writes them as byte_chars
    bool byte_fallback = false;           // an unknown code point becomes its bytes, if the tokens <0x00>.. exist
    bool fuse_unknown = false;            // unknown code points side by side are one token
    bool whole_words_first = false;       // a word that is a token is not taken apart
    std::optional<std::int32_t> unknown;  // none: what is unknown is left out
    std::string continuing_prefix;        // of tokens that do not start a word
    std::string end_suffix;               // of tokens that end one
  };

  /// Fields: vocab, merges, and what Options lists; `of_bytes` if the pre-tokenizer leaves bytes to the model.
  static std::unique_ptr<Bpe> read(const JsonField& field, bool of_bytes);

  /// Without merges yet. The vocabulary must be finished.
  Bpe(Vocabulary vocabulary, Options options);
  /// Two tokens, by name, make a third. False if one of the three does not exist.
  bool add_merge(std::string_view left, std::string_view right, std::uint32_t rank);
  /// Any two tokens whose bytes make a third merge, by the rank of that (by id; the lowest first, `never` not at all), as do code points
  /// that are no tokens.
  static constexpr std::uint32_t never = UINT32_MAX;
  void add_all_merges(std::span<const std::uint32_t> ranks);
  /// To be called after the last merge.
  void finish();

  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override;
  std::optional<std::int32_t> token_to_id(std::string_view token) const override { return vocabulary_.id(token); }
  std::optional<std::string_view> id_to_token(std::int32_t id) const override { return vocabulary_.token(id); }
  std::size_t vocab_size() const override { return vocabulary_.size(); }

 private:
  struct Symbol;
  enum class Whole : std::uint8_t { not_tried, yes, no };

  const Vocabulary& pieces() const { return options_.of_bytes ? bytes_ : vocabulary_; }
  std::int32_t symbol_id(std::string_view text) const;
  void find_cuts();
  static std::size_t neighbours(char left, char right) {
    return std::size_t{static_cast<unsigned char>(left)} << 8 | static_cast<unsigned char>(right);
  }
  bool starts_space_word(std::string_view word, std::size_t at) const;
  void tokenize_part(std::string_view word, std::size_t begin, std::vector<WordToken>& tokens) const;
  bool is_whole(std::size_t entry, std::string_view word) const;
  std::vector<Symbol> first_symbols(std::string_view word) const;
  std::int32_t affixed_id(std::string_view piece, bool first, bool last) const;
  void merge(std::vector<Symbol>& symbols) const;
  void merge_long(std::vector<Symbol>& symbols) const;
  void rank(Symbol& left, const Symbol* right) const;
  void append(std::span<const Symbol> symbols, std::string_view word, std::size_t begin, std::vector<WordToken>& tokens) const;
  bool has_byte_tokens(std::string_view piece) const;
  std::int32_t byte_token(char byte) const { return byte_tokens_[static_cast<unsigned char>(byte)]; }

  Vocabulary vocabulary_;
  Vocabulary bytes_;  // of_bytes: the same tokens as the bytes that they stand for
  Vocabulary parts_;  // code points that are no tokens but parts of some; their ids are negative
  Options options_;
  MergeTable merges_;
  std::array<std::int32_t, 256> byte_tokens_{};  // byte_fallback: <0x00>..; -1 where there is none
  std::array<std::int32_t, 128> ascii_{};        // symbol_id of single bytes
  std::unique_ptr<std::atomic<Whole>[]> whole_;  // by entry: whether merging the token's own text gives the token
  std::uint32_t cache_key_ = WordCache::new_model();
  bool can_cut_ = false;
  std::bitset<65536> spans_;    // whether a token has these two bytes side by side, the first times 256
  bool cut_at_spaces_ = false;  // no token spans the start of a word that U+2581 starts
};

}  // namespace rlx
