#include "models/tokenizer/word_piece.h"

#include <algorithm>

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
  for (const std::string& token : vocabulary_.tokens()) {
    longest_token_ = std::max(longest_token_, token.size());
    if (token.size() <= prefix.size() || !token.starts_with(prefix)) continue;
    continuing_.emplace(std::string_view(token).substr(prefix.size()), *vocabulary_.id(token));
  }
}

std::optional<WordToken> WordPiece::longest_piece(std::string_view word, std::size_t begin) const {
  std::size_t end = begin + std::min(word.size() - begin, longest_token_);
  for (; end > begin; --end) {
    if (end < word.size() && !starts_char(word[end])) continue;
    const std::string_view piece = word.substr(begin, end - begin);
    if (begin == 0) {
      if (const auto id = vocabulary_.id(piece)) return WordToken{*id, begin, end};
    } else if (const auto found = continuing_.find(piece); found != continuing_.end()) {
      return WordToken{found->second, begin, end};
    }
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
