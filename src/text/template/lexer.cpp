#include "text/template/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/names.h"
#include "rlx/error.h"
#include "text/template/python_text.h"
#include "text/unicode/unicode.h"

namespace rlx::jinja {
namespace {

constexpr std::array<std::string_view, 23> operators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~",
                                                        "(",  ")",  "[",  "]",  "{",  "}",  ">", "<", "=", ".", ":"};
constexpr std::string_view more_operators = "|,;";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Line breaks become \n, and one at the end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!is_space(unicode::decode(text.substr(begin)).value)) break;
    text = text.substr(0, begin);
  }
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name, std::deque<std::string>& strings)
      : name_(name), strings_(strings), text_(strings.emplace_back(normalized(source))) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) lex_text();
    add(Token::Kind::end, {});
    return std::move(tokens_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
    fail("{}: line {}: {}", name_, line_, fmt::format(text, std::forward<Args>(args)...));
  }

  bool sees(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  void add(Token::Kind kind, std::string_view text) { tokens_.push_back({kind, line_, text}); }

  /// Goes on to `end`, counting lines.
  void skip_to(std::size_t end) {
    line_ += static_cast<int>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    if (end > at_) line_starts_ = text_[end - 1] == '\n';
    at_ = end;
  }
  void skip_space() {
    std::size_t end = at_;
    while (end < text_.size()) {
      const auto next = unicode::decode(text_.substr(end));
      if (!is_space(next.value)) break;
      end += next.bytes;
    }
    skip_to(end);
  }

  /// The text before a tag, whose sign ('-', '+' or another character) stands at `sign`.
  void add_text(std::size_t end, std::size_t sign, bool strips_line) {
    std::string_view text = text_.substr(at_, end - at_);
    const char mark = sign < text_.size() ? text_[sign] : '\0';
    if (mark == '-') {
      text = without_trailing_space(text);
    } else if (mark != '+' && strips_line) {
      const std::size_t newline = text.rfind('\n'), line = newline == std::string_view::npos ? 0 : newline + 1;
      const bool whole_line = line > 0 || line_starts_;
      if (whole_line && without_trailing_space(text.substr(line)).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) add(Token::Kind::text, text);
    skip_to(end);
  }

  void lex_text() {
    std::size_t tag = at_;
    while ((tag = text_.find('{', tag)) != std::string_view::npos && (tag + 1 == text_.size() || !opens_tag(text_[tag + 1]))) ++tag;
    if (tag == std::string_view::npos) {
      add(Token::Kind::text, text_.substr(at_));
      return skip_to(text_.size());
    }
    const char kind = text_[tag + 1];
    add_text(tag, tag + 2, kind != '{');
    if (kind == '#') return skip_comment();
    if (kind == '%' && lex_raw()) return;
    add(kind == '%' ? Token::Kind::block_begin : Token::Kind::output_begin, text_.substr(at_, 2));
    skip_to(at_ + 2);
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) skip_to(at_ + 1);
    lex_tag(kind == '%');
  }

  static bool opens_tag(char c) { return c == '%' || c == '{' || c == '#'; }

  /// The end of a comment, raw block or tag at `at_`: `%}` with the white space that goes with it. False when there is none.
  bool skip_end(std::string_view end, bool trims_line) {
    if (at_ < text_.size() && text_[at_] == '-' && text_.substr(at_ + 1).starts_with(end)) {
      skip_to(at_ + 1 + end.size());
      skip_space();
      return true;
    }
    const std::size_t plus = trims_line && at_ < text_.size() && text_[at_] == '+' ? 1 : 0;
    if (!text_.substr(at_ + plus).starts_with(end)) return false;
    skip_to(at_ + plus + end.size());
    if (plus == 0 && trims_line && sees("\n")) skip_to(at_ + 1);
    return true;
  }

  void skip_comment() {
    const bool signed_begin = at_ + 2 < text_.size() && (text_[at_ + 2] == '-' || text_[at_ + 2] == '+');
    const std::size_t begin = at_ + (signed_begin ? 3 : 2), end = text_.find("#}", begin);
    if (end == std::string_view::npos) refuse("the comment that begins here has no end (expected '#}}')");
    const bool signs = end > begin && (text_[end - 1] == '-' || text_[end - 1] == '+');
    skip_to(signs ? end - 1 : end);
    skip_end("#}", true);
  }

  /// The end of `{%- word` at `begin`, white space after it included; nothing when something else stands there.
  std::optional<std::size_t> after_word(std::size_t begin, std::string_view word) const {
    std::size_t at = begin + 2;
    if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) ++at;
    const auto skip = [&] {
      while (at < text_.size() && is_space(static_cast<unsigned char>(text_[at]))) ++at;
    };
    skip();
    if (!text_.substr(std::min(at, text_.size())).starts_with(word)) return std::nullopt;
    at += word.size();
    skip();
    return at;
  }

  bool lex_raw() {
    const std::size_t begin = at_;
    const int line = line_;
    const auto opened = after_word(at_, "raw");
    if (!opened) return false;
    skip_to(*opened);
    if (!skip_end("%}", false)) {
      at_ = begin, line_ = line;
      return false;
    }
    for (std::size_t tag = at_; (tag = text_.find("{%", tag)) != std::string_view::npos; tag += 2) {
      const auto closed = after_word(tag, "endraw");
      if (!closed) continue;
      add_text(tag, tag + 2, true);
      skip_to(*closed);
      if (skip_end("%}", true)) return true;
    }
    refuse("'raw' has no end (expected '{{% endraw %}}')");
  }

  void lex_tag(bool block) {
    const std::string_view end = block ? "%}" : "}}";
    std::string open;  // the brackets that are
    for (;;) {
      skip_space();
      if (at_ >= text_.size()) refuse("the template ends inside a tag (expected '{}')", end);
      if (open.empty() && skip_end(end, block)) break;
      lex_token(open);
    }
    add(block ? Token::Kind::block_end : Token::Kind::output_end, end);
  }

  void lex_token(std::string& open) {
    const char c = text_[at_];
    if (is_digit(c)) return lex_number();
    if (c == '"' || c == '\'') return lex_string();
    if (const std::size_t length = name_length(); length > 0) {
      add(Token::Kind::name, text_.substr(at_, length));
      return skip_to(at_ + length);
    }
    lex_operator(open);
  }

  std::size_t name_length() const {
    std::size_t end = at_;
    while (end < text_.size()) {
      const auto next = unicode::decode(text_.substr(end));
      if (!unicode::is_word(next.value)) break;
      end += next.bytes;
    }
    return end - at_;
  }

  void lex_operator(std::string& open) {
    const auto* found = std::find_if(operators.begin(), operators.end(), [&](std::string_view op) { return sees(op); });
    const std::string_view op = found != operators.end() ? *found : text_.substr(at_, 1);
    if (found == operators.end() && more_operators.find(op[0]) == std::string_view::npos)
      refuse("{} is no part of an expression", quote_name(text_.substr(at_, unicode::decode(text_.substr(at_)).bytes)));
    if (op == "(" || op == "[" || op == "{") open += op == "(" ? ')' : op == "[" ? ']' : '}';
    if (op == ")" || op == "]" || op == "}") {
      if (open.empty()) refuse("unexpected '{}'", op);
      if (open.back() != op[0]) refuse("unexpected '{}' (expected '{}')", op, open.back());
      open.pop_back();
    }
    add(Token::Kind::op, op);
    skip_to(at_ + op.size());
  }

  std::size_t digits_end(std::size_t at) const {
    while (at < text_.size() && (is_digit(text_[at]) || (text_[at] == '_' && at + 1 < text_.size() && is_digit(text_[at + 1])))) ++at;
    return at;
  }

  /// A number's text without underscores: 0x1f, 12, 1.5, 1e-3. After a dot only digits, so that `x.0.1` is two subscripts.
  void lex_number() {
    const bool subscript = at_ > 0 && text_[at_ - 1] == '.';
    std::size_t end = at_;
    Token::Kind kind = Token::Kind::integer;
    const char base = at_ + 1 < text_.size() ? static_cast<char>(text_[at_ + 1] | 0x20) : '\0';
    if (text_[at_] == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      for (end += 2;
           end < text_.size() && (is_digit(text_[end]) || text_[end] == '_' || ((text_[end] | 0x20) >= 'a' && (text_[end] | 0x20) <= 'f'));)
        ++end;
    } else {
      end = digits_end(at_);
      if (!subscript) {
        if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) end = digits_end(end + 1), kind = Token::Kind::real;
        if (end < text_.size() && (text_[end] | 0x20) == 'e') {
          std::size_t exponent = end + 1;
          if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
          if (exponent < text_.size() && is_digit(text_[exponent])) end = digits_end(exponent), kind = Token::Kind::real;
        }
      }
    }
    std::string digits(text_.substr(at_, end - at_));
    std::erase(digits, '_');
    add(kind, strings_.emplace_back(std::move(digits)));
    skip_to(end);
  }

  void lex_string() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != text_[at_]) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) refuse("the string that begins here has no end (expected {})", text_[at_]);
    const std::string_view body = text_.substr(at_ + 1, end - at_ - 1);
    add(Token::Kind::string, body.find('\\') == std::string_view::npos ? body : strings_.emplace_back(unescaped(body)));
    skip_to(end + 1);
  }

  std::string unescaped(std::string_view body) {
    std::string out;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\') {
        out += body[i];
        continue;
      }
      const char c = body[++i];
      constexpr std::string_view plain = "\\'\"abfnrtv", meaning = "\\'\"\a\b\f\n\r\t\v";
      if (c == '\n') continue;
      if (const auto found = plain.find(c); found != std::string_view::npos) out += meaning[found];
      else if (c >= '0' && c <= '7') append_code(out, body, i, octal_digits(body.substr(i)), 8);
      else if (c == 'x') append_code(out, body, ++i, 2, 16);
      else if (c == 'u') append_code(out, body, ++i, 4, 16);
      else if (c == 'U') append_code(out, body, ++i, 8, 16);
      else if (c == 'N') refuse("a string has the escape '\\N', which is not supported (write '\\u' and four digits)");
      else out += '\\', out += c;
    }
    return out;
  }

  static std::size_t octal_digits(std::string_view text) {
    return std::min({text.find_first_not_of("01234567"), std::size_t{3}, text.size()});
  }

  /// The code point of `count` digits at body[at]; leaves `at` on the last of them.
  void append_code(std::string& out, std::string_view body, std::size_t& at, std::size_t count, int base) {
    const std::string_view digits = body.substr(at, count);
    std::uint32_t code = 0;
    for (char c : digits) {
      const int digit = is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : base;
      if (digit >= base) refuse("a string has an escape with {}, which is no digit of base {}", quote_name(std::string_view(&c, 1)), base);
      code = code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit);
    }
    if (digits.size() < count) refuse("a string has an escape of {} digits (expected {})", digits.size(), count);
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) refuse("a string has the escape U+{:04X}, which is no character", code);
    unicode::append_utf8(out, code);
    at += count - 1;
  }

  const std::string& name_;
  std::deque<std::string>& strings_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // nothing of this line was lexed yet
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, const std::string& name, std::deque<std::string>& strings) {
  return Lexer(source, name, strings).run();
}

}  // namespace rlx::jinja
