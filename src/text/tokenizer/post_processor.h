#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/json/json_field.h"
#include "text/tokenizer/encoding.h"

namespace rlx {

/// Puts the special tokens around one encoded text or between two, and numbers the texts.
class PostProcessor {
 public:
  /// Without special tokens: the texts one after the other, of type 0 and 1.
  PostProcessor();
  /// Reads TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence (with at most one of the first three in
  /// it), with their meaning in `tokenizers` 0.23. Throws Error for any other kind and for malformed fields.
  explicit PostProcessor(const JsonField& field);

  /// How many special tokens one text (or a pair) gets.
  std::size_t added_tokens(bool pair) const;
  /// Where the file asks for it: takes the spaces that tokens start or end with out of their offsets into `text`, except one that the
  /// tokenizer itself put before the text.
  void trim_offsets(Encoding& encoding, std::string_view text) const;
  /// The ids of the special tokens before and after one text.
  void append_before(std::vector<std::int32_t>& ids) const;
  void append_after(std::vector<std::int32_t>& ids) const;
  using SpecialTokens = std::vector<std::pair<std::int32_t, std::string>>;
  /// Puts these tokens before and after one text; before, after the first (and `between` behind them) and after the second of two, which
  /// has the type `second_type`. That is how encoders read pairs.
  static PostProcessor of_encoder(const SpecialTokens& before, const SpecialTokens& after, const SpecialTokens& between,
                                  std::int32_t second_type);
  /// Puts these tokens before and after each text.
  static PostProcessor around(const std::vector<std::pair<std::int32_t, std::string>>& before,
                              const std::vector<std::pair<std::int32_t, std::string>>& after);
  Encoding process(Encoding first, std::optional<Encoding> second, bool add_special_tokens) const;

 private:
  /// One of the two texts, or special tokens.
  struct Piece {
    enum class Kind { first, second, special } kind;
    std::int32_t type_id;
    Encoding special;  // the tokens, if it is `special`
  };
  using Template = std::vector<Piece>;

  void read(const JsonField& field);
  void read_template(const JsonField& field);
  void read_bert(const JsonField& field, bool roberta);
  static Template read_pieces(const JsonField& pieces, const JsonField& special_tokens);
  static Piece special_piece(const std::string& token, std::int32_t id, std::int32_t type_id);

  Template single_;
  Template pair_;
  bool read_before_ = false;
  bool trim_offsets_ = false;
  bool prefix_space_ = false;
};

}  // namespace rlx
