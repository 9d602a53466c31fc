#include "text/tokenizer/word_models/word_piece.h"

#include <algorithm>
#include <utility>

#include "base/names.h"

namespace rlx {
namespace {

bool starts_char(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

WordPiece::WordPiece(const JsonField& field) : max_word_chars_(field.at("max_input_chars_per_word").as_integer(0, UINT64_MAX)) {
  vocabulary_.read(field.at("vocab"));
  const std::string unknown = field.at("unk_token").as_string();
  const auto unknown_id = vocabulary_.id(unknown);
  if (!unknown_id) field.at("unk_token").refuse("{} is not in the vocabulary", quote_name(unknown));
  unknown_ = *unknown_id;

  const std::string prefix = field.at("continuing_subword_prefix").as_string();
  for (std::size_t entry = 0; entry < vocabulary_.size(); ++entry) {
    const std::string_view token = vocabulary_.token_at(entry);
    add_piece(token, vocabulary_.id_at(entry), false);
    if (token.size() > prefix.size() && token.starts_with(prefix)) add_piece(token.substr(prefix.size()), vocabulary_.id_at(entry), true);
  }
}

WordPiece::WordPiece(Vocabulary vocabulary, std::string_view start_marker, std::int32_t unknown,
                     const std::function<bool(std::int32_t)>& in_texts)
    : vocabulary_(std::move(vocabulary)), unknown_(unknown) {
  for (std::size_t entry = 0; entry < vocabulary_.size(); ++entry) {
    std::string_view token = vocabulary_.token_at(entry);
    if (!in_texts(vocabulary_.id_at(entry))) continue;
    const bool starts = token.starts_with(start_marker);
    if (starts) token.remove_prefix(start_marker.size());
    add_piece(token, vocabulary_.id_at(entry), !starts);
  }
}

void WordPiece::add_piece(std::string_view piece, std::int32_t id, bool continuing) {
  if (piece.empty()) return;
  longest_token_ = std::max(longest_token_, piece.size());
  (continuing ? continuing_ : starting_).add(piece, id);
}

std::optional<WordToken> WordPiece::longest_piece(std::string_view word, std::size_t begin) const {
  std::size_t end = begin + std::min(word.size() - begin, longest_token_);
  for (; end > begin; --end) {
    if (end < word.size() && !starts_char(word[end])) continue;
    const std::string_view piece = word.substr(begin, end - begin);
    if (const auto id = (begin == 0 ? starting_ : continuing_).id(piece)) return WordToken{*id, begin, end};
  }
  return std::nullopt;
}

void WordPiece::tokenize(std::string_view word, std::vector<WordToken>& tokens) const {
  const std::size_t before = tokens.size();
  bool known = static_cast<std::size_t>(std::count_if(word.begin(), word.end(), starts_char)) <= max_word_chars_;
  for (std::size_t at = 0; known && at < word.size();) {
    const auto piece = longest_piece(word, at);
    known = piece.has_value();
    if (!known) break;
    tokens.push_back(*piece);
    at = piece->end;
  }
  if (known) return;
  tokens.resize(before);
  tokens.push_back({unknown_, 0, word.size()});
}

}  // namespace rlx
