#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>

#include "text/tokenizer/word_models/byte_trie.h"
#include "text/tokenizer/word_models/vocabulary.h"
#include "text/tokenizer/word_models/word_cache.h"
#include "text/tokenizer/word_models/word_model.h"

namespace rlx {

/// Unigram language model (Kudo 2018): of all ways to cut a word into tokens the one of the largest sum of scores (Viterbi). A code
/// point that no token covers costs ten more than the least likely token; such code points side by side are one unknown token, or
/// their bytes.
class Unigram : public WordModel {
 public:
  /// A token whose id is its place in the list.
  struct Token {
    std::string text;
    double score = 0;
    bool in_texts = true;  // false: only its name is known
  };

  /// Fields: vocab (pairs of token and score), unk_id, byte_fallback.
  static std::unique_ptr<Unigram> read(const JsonField& field);
  /// Of two tokens with one text the first counts. `single_precision`: scores are summed in f32 over the whole word, as sentencepiece does,
  /// where ties are broken by rounding.
  Unigram(std::span<const Token> tokens, std::optional<std::int32_t> unknown, bool byte_fallback, bool single_precision = false);

  /// Throws Error for a text that needs an unknown token where there is none.
  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override;
  std::optional<std::int32_t> token_to_id(std::string_view token) const override { return vocabulary_.id(token); }
  std::optional<std::string_view> id_to_token(std::int32_t id) const override;
  std::size_t vocab_size() const override { return names_.size(); }
  /// What is unknown shows itself.
  std::string_view shown(const WordToken& token, std::string_view word) const override {
    return token.id == unknown_ ? word.substr(token.begin, token.end - token.begin) : *id_to_token(token.id);
  }

 private:
  /// The best way to a place in a word: where its last token starts, which that is, and the sum of scores.
  struct Step {
    double score = 0;
    std::size_t begin = SIZE_MAX;  // none yet
    std::int32_t id = 0;
  };

  void reach(Step& step, double score, std::size_t begin, std::int32_t id) const;
  void tokenize_part(std::string_view word, std::size_t offset, std::vector<WordToken>& tokens) const;
  void append(std::string_view piece, std::size_t begin, std::int32_t id, std::vector<WordToken>& tokens) const;

  Vocabulary vocabulary_;
  std::vector<std::string> names_;
  std::vector<double> scores_;
  ByteTrie trie_;
  std::optional<std::int32_t> unknown_;
  double unknown_score_ = 0;
  bool byte_fallback_;
  bool single_precision_;
  bool cut_at_spaces_ = false;
  std::uint32_t cache_key_ = WordCache::new_model();
  std::array<std::int32_t, 256> byte_tokens_{};
};

}  // namespace rlx
