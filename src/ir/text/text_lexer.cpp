#include "ir/text/text_lexer.h"

#include <charconv>

#include "base/names.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::size_t longest_token = 1024;  // names and numbers; strings carry data and are as long as they are

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view what) : text_(text), what_(what) { advance(); }

void Lexer::fail_at(Position at, std::string_view message) const { fail("{}:{}:{}: {}", what_, at.line, at.column, message); }

void Lexer::fail_expected(std::string_view wanted) const {
  const std::string seen = token_.kind == Token::Kind::end ? "the end of the text" : quote_name(token_.text);
  fail_at(token_.at, fmt::format("{} where {} is needed", seen, wanted));
}

Token Lexer::take() {
  Token taken = token_;
  advance();
  return taken;
}

bool Lexer::accept(std::string_view punctuation) {
  if (!at(punctuation)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view punctuation) {
  if (!accept(punctuation)) fail_expected(fmt::format("'{}'", punctuation));
}

Token Lexer::expect(Token::Kind kind, std::string_view wanted) {
  if (token_.kind != kind) fail_expected(wanted);
  return take();
}

bool Lexer::accept_word(std::string_view word) {
  if (token_.kind != Token::Kind::word || token_.text != word) return false;
  advance();
  return true;
}

std::string Lexer::name(std::string_view wanted) {
  if (token_.kind == Token::Kind::string) return unescape(take());
  return std::string(expect(Token::Kind::word, wanted).text);
}

std::string Lexer::unescape(const Token& token) const {
  std::string out;
  out.reserve(token.text.size());
  for (std::size_t i = 0; i < token.text.size(); ++i) {
    if (token.text[i] != '\\') {
      out += token.text[i];
      continue;
    }
    const char c = token.text[++i];  // the lexer saw to it that a character follows
    if (c == '"' || c == '\\') out += c;
    else if (c == 'n') out += '\n';
    else if (c == 't') out += '\t';
    else if (c == 'x') {
      unsigned byte = 0;
      const std::string_view digits = token.text.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (error != std::errc() || end != digits.data() + 2) fail_at(token.at, "\\x in a string needs two hexadecimal digits");
      out += static_cast<char>(byte);
      i += 2;
    } else {
      fail_at(token.at,
              fmt::format("escape {} in a string is unknown (allowed: \\\" \\\\ \\n \\t \\xNN)", quote_name(token.text.substr(i - 1, 2))));
    }
  }
  return out;
}

void Lexer::step(std::size_t bytes) {
  for (char c : text_.substr(offset_, bytes)) {
    if (c == '\n') here_ = {here_.line + 1, 1};
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++here_.column;  // a character counts once, at its first byte
  }
  offset_ += bytes;
}

void Lexer::skip_blanks() {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (offset_ < text_.size()) {
    if (is_blank(text_[offset_])) step(run(0, is_blank));
    else if (text_[offset_] == '#') step(run(0, [](char c) { return c != '\n'; }));
    else return;
  }
}

/// The length of the token up to the first character, `from` bytes on or later, that is not accepted.
template <class Accepts>
std::size_t Lexer::run(std::size_t from, const Accepts& accepts) const {
  while (offset_ + from < text_.size() && accepts(text_[offset_ + from])) ++from;
  return from;
}

/// Digits, a fraction, an exponent; what follows must not look like more of it.
std::size_t Lexer::number_length() const {
  const auto next = [&](std::size_t i) { return offset_ + i < text_.size() ? text_[offset_ + i] : '\0'; };
  std::size_t length = run(0, is_digit);
  if (next(length) == '.') length = run(length + 1, is_digit);
  if (next(length) == 'e' || next(length) == 'E') {
    const std::size_t sign = next(length + 1) == '+' || next(length + 1) == '-' ? 1 : 0;
    if (is_digit(next(length + 1 + sign))) length = run(length + 1 + sign, is_digit);
  }
  if (is_word(next(length)) || next(length) == '.')
    fail_at(here_, fmt::format("{} is not a number",
                               quote_name(text_.substr(offset_, run(length, [](char c) { return is_word(c) || c == '.'; })))));
  return length;
}

/// %name, with .1 for the second result.
std::size_t Lexer::value_length() const {
  std::size_t length = run(1, is_word);
  if (length == 1) fail_at(here_, "'%' without the name of a value");
  if (offset_ + length < text_.size() && text_[offset_ + length] == '.') {
    const std::size_t with_result = run(length + 1, is_digit);
    if (with_result == length + 1) fail_at(here_, "'.' without the number of a result");
    length = with_result;
  }
  return length;
}

Token Lexer::string_token() {
  std::size_t end = offset_ + 1;
  for (; end < text_.size() && text_[end] != '"' && text_[end] != '\n'; ++end)
    if (text_[end] == '\\') ++end;
  if (end >= text_.size() || text_[end] != '"') fail_at(here_, "a string has no end");
  const std::string_view inner = text_.substr(offset_ + 1, end - offset_ - 1);
  if (!is_utf8(inner)) fail_at(here_, fmt::format("the string {} is not UTF-8 (\\xNN writes a byte)", quote_name(inner)));
  return {Token::Kind::string, inner, here_};
}

void Lexer::advance() {
  skip_blanks();
  token_ = {Token::Kind::end, {}, here_};
  if (offset_ == text_.size()) return;
  const char c = text_[offset_];
  if (c == '"') {
    token_ = string_token();
    return step(token_.text.size() + 2);
  }
  std::size_t length = 1;
  if (is_letter(c)) token_.kind = Token::Kind::word, length = run(0, is_word);
  else if (is_digit(c)) token_.kind = Token::Kind::number, length = number_length();
  else if (c == '%') token_.kind = Token::Kind::value, length = value_length();
  else if (text_.substr(offset_, 2) == "<=") token_.kind = Token::Kind::punctuation, length = 2;
  else if (std::string_view("{}()[],:=+-*").find(c) != std::string_view::npos) token_.kind = Token::Kind::punctuation;
  else fail_at(here_, fmt::format("{} starts nothing that is known", quote_name(text_.substr(offset_, 1))));
  token_.text = text_.substr(offset_, length);
  if (length > longest_token) fail_at(here_, fmt::format("a name or number has {} characters (allowed: {})", length, longest_token));
  step(length);
}

}  // namespace rlx
