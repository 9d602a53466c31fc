#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/error.h"

namespace rlx {

/// Where a token starts; both count from 1, columns in UTF-8 characters.
struct Position {
  int line = 1;
  int column = 1;
};

struct Token {
  enum class Kind : std::uint8_t { end, word, number, string, value, punctuation };
  Kind kind = Kind::end;
  std::string_view text;  // as written; of a string without its quotes, escapes not yet resolved
  Position at;
};

/// Cuts the text form into tokens, one ahead: words, numbers without sign, "strings", %values, punctuation. `what` stands for the
/// source in messages.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view what);

  const Token& peek() const { return token_; }
  /// The current token; the next one becomes current. Throws Error for a character that starts no token.
  Token take();
  bool at(std::string_view punctuation) const { return token_.kind == Token::Kind::punctuation && token_.text == punctuation; }
  /// Takes the punctuation if it is next.
  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);
  Token expect(Token::Kind kind, std::string_view wanted);
  bool accept_word(std::string_view word);
  /// A bare word or a string, for names.
  std::string name(std::string_view wanted);
  /// The characters that the text of a string token means.
  std::string unescape(const Token& token) const;

  /// Characters after the current token.
  std::size_t remaining() const { return text_.size() - offset_; }
  /// Runs `build`, whose errors know nothing of the text, and puts the position in front of them.
  template <class Build>
  auto placed(Position at, const Build& build) const {
    try {
      return build();
    } catch (const Error& error) {
      fail_at(at, error.what());
    }
  }
  [[noreturn]] void fail_at(Position at, std::string_view message) const;
  /// "... is not ..., which is needed here" for the current token.
  [[noreturn]] void fail_expected(std::string_view wanted) const;

 private:
  void advance();
  void skip_blanks();
  void step(std::size_t bytes);
  template <class Accepts>
  std::size_t run(std::size_t from, const Accepts& accepts) const;
  std::size_t number_length() const;
  std::size_t value_length() const;
  Token string_token();

  std::string_view text_;
  std::string_view what_;
  std::size_t offset_ = 0;
  Position here_;
  Token token_;
};

}  // namespace rlx
