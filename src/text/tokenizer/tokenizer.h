#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/encoding.h"
#include "text/tokenizer/length.h"

namespace rlx {

class AddedTokens;
class TokenDecoder;
class JsonField;
class Normalizer;
class PostProcessor;
class PreTokenizer;
class WordModel;

/// Turns texts into ids and back, with the meaning of the `tokenizers` library (0.23). A text goes through
/// added tokens -> normalizer -> pre-tokenizer -> model -> truncation -> post-processor -> padding.
///
/// Texts are UTF-8; each part of one that is not counts as U+FFFD (which BERT's normalizer drops). Encoding changes no state, so that
/// one Tokenizer serves any number of threads; the setters are not for use meanwhile.
class Tokenizer {
 public:
  /// The components, for readers of other formats; null where there is none.
  struct Parts;

  /// Reads a `tokenizer.json`. Throws Error, naming the file and the JSON field, for what cannot be read, is malformed, or is not
  /// supported. (open_tokenizer reads every format.)
  static Tokenizer open(const std::filesystem::path& tokenizer_json);
  /// The same from memory; errors call the file `what`.
  static Tokenizer parse(std::string_view json, std::string_view what);
  explicit Tokenizer(const JsonField& file);
  explicit Tokenizer(Parts parts);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// The tokens of one text, truncated and padded. Throws Error if the text has 4 GiB or more, or cannot be truncated as asked for.
  Encoding encode(std::string_view text, bool add_special_tokens = true) const;
  /// The tokens of two texts in one encoding; offsets are into `a` or `b`.
  Encoding encode_pair(std::string_view a, std::string_view b, bool add_special_tokens = true) const;
  /// The ids of one text, neither truncated nor padded: encode without what only embeddings need, for texts of any length.
  std::vector<std::int32_t> encode_ids(std::string_view text, bool add_special_tokens = true) const;

  /// Replace what the file says; nothing turns truncation or padding off.
  /// Throws Error if max_length leaves no room for the special tokens, or a padded length is over max_padded_length.
  void set_truncation(std::optional<Truncation> truncation);
  void set_padding(std::optional<Padding> padding);
  const std::optional<Truncation>& truncation() const { return truncation_; }
  const std::optional<Padding>& padding() const { return padding_; }

  /// The text of `ids`, with U+FFFD for bytes that are not UTF-8; ids of no token are left out. TextStream does it id by id.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;

  /// The bytes that a token adds to a text that has begun: its space too, and of tokens for bytes what is no whole code point. Empty for
  /// special tokens and ids of no token.
  std::string bytes_of(std::int32_t id) const;

  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  /// Throws Error if no token has this id. The view lives as long as the tokenizer.
  std::string_view id_to_token(std::int32_t id) const;
  /// How many tokens there are, added ones included. Ids can be larger where they are not dense.
  std::size_t vocab_size() const;

 private:
  Encoding encode_words(std::string_view text) const;
  Encoding encode_texts(std::string_view a, std::optional<std::string_view> b, bool add_special_tokens) const;

  std::unique_ptr<Normalizer> normalizer_;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer_;  // may be null
  std::unique_ptr<WordModel> model_;
  std::unique_ptr<AddedTokens> added_tokens_;
  std::unique_ptr<PostProcessor> post_processor_;
  std::unique_ptr<TokenDecoder> decoder_;
  std::optional<Truncation> truncation_;
  std::optional<Padding> padding_;
};

}  // namespace rlx
