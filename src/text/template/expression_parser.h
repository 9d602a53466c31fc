#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/error.h"
#include "text/template/lexer.h"
#include "text/template/syntax.h"

namespace rlx::jinja {

/// A cursor over tokens that reads expressions, in the precedence of Jinja 3.1.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, Syntax& syntax) : tokens_(std::move(tokens)), syntax_(syntax) {}

 protected:
  enum class Choice : bool { without_if, with_if };  // whether `a if b else c` may stand there

  const Token& token(std::size_t index) const { return tokens_[index]; }
  const Token& seen() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  Token expect(Token::Kind kind, std::string_view what);
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail("{}: line {}: {}", syntax_.name, seen().line, fmt::format(text, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse_token(std::string_view expected) const;

  Expression expression(Choice choice = Choice::with_if);
  /// An expression, or several with commas between, which are a tuple.
  Expression tuple(Choice choice = Choice::with_if, bool empty_allowed = false);
  Expression filters(Expression operand);  // as many as follow
  Expression filter(Expression operand);   // behind the bar
  std::vector<Argument> arguments();

  std::size_t at_ = 0;

  /// Counts nested calls of the parser while it lives.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  using Kind = Expression::Kind;

  Expression make(Kind kind, int line, std::vector<Expression> operands = {}, std::string_view name = {});
  bool ends_tuple() const;
  Expression disjunction();
  Expression conjunction();
  Expression negation();
  Expression comparison();
  std::string_view comparison_op();
  Expression chain(std::initializer_list<std::string_view> ops, Expression (ExpressionParser::*operand)());
  Expression sum() { return chain({"+", "-"}, &ExpressionParser::concatenation); }
  Expression concatenation();
  Expression product() { return chain({"*", "/", "//", "%"}, &ExpressionParser::power); }
  Expression power() { return chain({"**"}, &ExpressionParser::filtered); }
  Expression filtered();
  Expression sign();
  Expression primary();
  Expression number();
  Expression list();
  Expression dict();
  Expression postfix(Expression operand);
  Expression subscript(Expression operand);
  Expression bracketed();
  Expression test(Expression operand);
  std::string_view dotted_name();

  std::vector<Token> tokens_;
  Syntax& syntax_;
  int depth_ = 0;
};

}  // namespace rlx::jinja
