#include "text/template/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/names.h"

namespace rlx::jinja {
namespace {

constexpr int deepest = 100;  // a template's nesting; evaluation has the call stack of its own limit

std::string described(const Token& token) {
  switch (token.kind) {
    case Token::Kind::text: return "text";
    case Token::Kind::end: return "the end of the template";
    case Token::Kind::string: return fmt::format("the string {}", quote_name(token.text));
    default: return quote_name(token.text);
  }
}

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > deepest) {
    --parser_.depth_;
    parser_.refuse("expressions and blocks are nested more than {} deep", deepest);
  }
}

Token ExpressionParser::take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }

bool ExpressionParser::skip_op(std::string_view op) { return seen().is_op(op) && (take(), true); }

bool ExpressionParser::skip_name(std::string_view name) { return seen().is_name(name) && (take(), true); }

void ExpressionParser::refuse_token(std::string_view expected) const { refuse("unexpected {} (expected {})", described(seen()), expected); }

void ExpressionParser::expect_op(std::string_view op) {
  if (!skip_op(op)) refuse_token(fmt::format("'{}'", op));
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) refuse_token(fmt::format("'{}'", name));
}

Token ExpressionParser::expect(Token::Kind kind, std::string_view what) {
  if (seen().kind != kind) refuse_token(what);
  return take();
}

Expression ExpressionParser::make(Kind kind, int line, std::vector<Expression> operands, std::string_view name) {
  Expression made;
  made.kind = kind, made.line = line, made.name = name;
  for (const Expression& operand : operands) made.depth = std::max(made.depth, operand.depth + 1);
  if (made.depth > 2 * deepest) refuse("an expression has more than {} steps that need each other", 2 * deepest);
  made.operands = std::move(operands);
  return made;
}

Expression ExpressionParser::expression(Choice choice) {
  const Level level(*this);
  Expression value = disjunction();
  if (choice == Choice::without_if) return value;
  while (seen().is_name("if")) {
    const int line = take().line;
    std::vector<Expression> parts;
    parts.push_back(disjunction());
    parts.push_back(std::move(value));
    if (skip_name("else")) parts.push_back(expression());
    value = make(Kind::conditional, line, std::move(parts));
  }
  return value;
}

bool ExpressionParser::ends_tuple() const {
  const Token& token = seen();
  return token.kind == Token::Kind::output_end || token.kind == Token::Kind::block_end || token.is_op(")");
}

Expression ExpressionParser::tuple(Choice choice, bool empty_allowed) {
  const int line = seen().line;
  std::vector<Expression> items;
  bool several = false;
  while (!ends_tuple() && !(several && seen().is_name("recursive"))) {
    items.push_back(expression(choice));
    if (!skip_op(",")) break;
    several = true;
  }
  if (!several && items.size() == 1) return std::move(items.front());
  if (items.empty() && !empty_allowed) refuse_token("an expression");
  return make(Kind::tuple, line, std::move(items));
}

Expression ExpressionParser::disjunction() {
  Expression left = conjunction();
  while (seen().is_name("or")) {
    const int line = take().line;
    Expression right = conjunction();
    left = make(Kind::logical_or, line, {std::move(left), std::move(right)});
  }
  return left;
}

Expression ExpressionParser::conjunction() {
  Expression left = negation();
  while (seen().is_name("and")) {
    const int line = take().line;
    Expression right = negation();
    left = make(Kind::logical_and, line, {std::move(left), std::move(right)});
  }
  return left;
}

Expression ExpressionParser::negation() {
  if (!seen().is_name("not")) return comparison();
  const Level level(*this);
  const int line = take().line;
  return make(Kind::logical_not, line, {negation()});
}

/// The comparison at the cursor, which it takes; empty when there is none.
std::string_view ExpressionParser::comparison_op() {
  for (std::string_view op : {"==", "!=", "<", "<=", ">", ">="})
    if (skip_op(op)) return op;
  if (skip_name("in")) return "in";
  if (!seen().is_name("not") || !after().is_name("in")) return {};
  take(), take();
  return "not in";
}

Expression ExpressionParser::comparison() {
  const int line = seen().line;
  std::vector<Expression> operands;
  operands.push_back(sum());
  std::vector<std::string_view> ops;
  for (std::string_view op; !(op = comparison_op()).empty();) {
    ops.push_back(op);
    operands.push_back(sum());
  }
  if (ops.empty()) return std::move(operands.front());
  Expression made = make(Kind::compare, line, std::move(operands));
  made.names = std::move(ops);
  return made;
}

Expression ExpressionParser::chain(std::initializer_list<std::string_view> ops, Expression (ExpressionParser::*operand)()) {
  Expression left = (this->*operand)();
  for (;;) {
    const auto* op = std::find_if(ops.begin(), ops.end(), [&](std::string_view candidate) { return seen().is_op(candidate); });
    if (op == ops.end()) return left;
    const int line = take().line;
    Expression right = (this->*operand)();
    left = make(Kind::binary, line, {std::move(left), std::move(right)}, *op);
  }
}

Expression ExpressionParser::concatenation() {
  const int line = seen().line;
  std::vector<Expression> parts;
  parts.push_back(product());
  while (skip_op("~")) parts.push_back(product());
  if (parts.size() == 1) return std::move(parts.front());
  return make(Kind::concatenation, line, std::move(parts));
}

Expression ExpressionParser::filtered() {
  Expression value = sign();
  for (;;) {
    if (seen().is_op("|")) value = filters(std::move(value));
    else if (seen().is_name("is")) value = test(std::move(value));
    else if (seen().is_op("(")) value = postfix(std::move(value));
    else return value;
  }
}

Expression ExpressionParser::sign() {
  if (!seen().is_op("-") && !seen().is_op("+")) return postfix(primary());
  const Level level(*this);
  const Token op = take();
  return postfix(make(Kind::unary, op.line, {sign()}, op.text == "-" ? "-" : "+"));
}

Expression ExpressionParser::number() {
  const Token token = take();
  Expression made = make(Kind::constant, token.line);
  std::string_view digits = token.text;
  if (token.kind == Token::Kind::real) {
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) value = digits.find("e-") != std::string_view::npos ? 0.0 : HUGE_VAL;
    made.value = value;
    return made;
  }
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0' && (digits[1] | 0x20) >= 'a') {
    base = (digits[1] | 0x20) == 'x' ? 16 : (digits[1] | 0x20) == 'o' ? 8 : 2;
    digits.remove_prefix(2);
  }
  Integer value = 0;
  for (char c : digits) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (digit >= base) refuse("{} is no number", quote_name(token.text));
    if (__builtin_mul_overflow(value, Integer{base}, &value) || __builtin_add_overflow(value, Integer{digit}, &value))
      refuse("the integer {} does not fit 128 bits", quote_name(token.text));
  }
  if (digits.empty()) refuse("{} is no number", quote_name(token.text));
  made.value = value;
  return made;
}

Expression ExpressionParser::primary() {
  const Token token = seen();
  if (token.kind == Token::Kind::integer || token.kind == Token::Kind::real) return number();
  if (token.is_op("[")) return list();
  if (token.is_op("{")) return dict();
  Expression made = make(Kind::constant, token.line);
  if (skip_op("(")) {
    made = tuple(Choice::with_if, true);
    expect_op(")");
  } else if (token.kind == Token::Kind::string) {
    std::string_view text = take().text;
    while (seen().kind == Token::Kind::string) text = syntax_.strings.emplace_back(fmt::format("{}{}", text, take().text));
    made.value = text;
  } else if (token.kind == Token::Kind::name) {
    take();
    if (token.text == "true" || token.text == "True") made.value = true;
    else if (token.text == "false" || token.text == "False") made.value = false;
    else if (token.text == "none" || token.text == "None") made.value = None{};
    else made.kind = Kind::name, made.name = token.text;
  } else {
    refuse_token("a value");
  }
  return made;
}

Expression ExpressionParser::list() {
  const Level level(*this);
  const int line = take().line;
  std::vector<Expression> items;
  while (!seen().is_op("]")) {
    items.push_back(expression());
    if (!skip_op(",")) break;
  }
  expect_op("]");
  return make(Kind::list, line, std::move(items));
}

Expression ExpressionParser::dict() {
  const Level level(*this);
  const int line = take().line;
  std::vector<Expression> items;
  while (!seen().is_op("}")) {
    items.push_back(expression());
    expect_op(":");
    items.push_back(expression());
    if (!skip_op(",")) break;
  }
  expect_op("}");
  return make(Kind::dict, line, std::move(items));
}

Expression ExpressionParser::postfix(Expression operand) {
  for (;;) {
    if (seen().is_op(".") || seen().is_op("[")) {
      operand = subscript(std::move(operand));
    } else if (seen().is_op("(")) {
      const int line = seen().line;
      std::vector<Argument> given = arguments();
      operand = make(Kind::call, line, {std::move(operand)});
      operand.arguments = std::move(given);
    } else {
      return operand;
    }
  }
}

Expression ExpressionParser::subscript(Expression operand) {
  const int line = seen().line;
  if (skip_op(".")) {
    if (seen().kind == Token::Kind::name) return make(Kind::attribute, line, {std::move(operand)}, take().text);
    if (seen().kind != Token::Kind::integer) refuse_token("a name or a number after '.'");
    return make(Kind::item, line, {std::move(operand), number()});
  }
  expect_op("[");
  std::vector<Expression> keys;
  while (!seen().is_op("]")) {
    keys.push_back(bracketed());
    if (!skip_op(",")) break;
  }
  expect_op("]");
  if (keys.empty()) refuse("a subscript is empty");
  if (keys.size() > 1) return make(Kind::item, line, {std::move(operand), make(Kind::tuple, line, std::move(keys))});
  Expression key = std::move(keys.front());
  if (key.kind != Kind::slice) return make(Kind::item, line, {std::move(operand), std::move(key)});
  key.operands.insert(key.operands.begin(), std::move(operand));
  return make(Kind::slice, line, std::move(key.operands));
}

/// What stands in brackets: a key, or the three parts of a slice.
Expression ExpressionParser::bracketed() {
  const int line = seen().line;
  const auto part = [&] {
    const bool missing = seen().is_op(":") || seen().is_op("]") || seen().is_op(",");
    Expression none = make(Kind::constant, line);
    none.value = None{};
    return missing ? none : expression();
  };
  std::vector<Expression> parts;
  if (!seen().is_op(":")) parts.push_back(expression());
  else parts.push_back(part());
  if (!skip_op(":")) return std::move(parts.front());
  parts.push_back(part());
  skip_op(":");
  parts.push_back(part());
  return make(Kind::slice, line, std::move(parts));
}

std::vector<Argument> ExpressionParser::arguments() {
  const Level level(*this);
  expect_op("(");
  std::vector<Argument> given;
  while (!seen().is_op(")")) {
    Argument argument;
    if (skip_op("*")) argument.kind = Argument::Kind::list;
    else if (skip_op("**")) argument.kind = Argument::Kind::dict;
    else if (seen().kind == Token::Kind::name && after().is_op("="))
      argument.kind = Argument::Kind::named, argument.name = take().text, take();
    const bool follows_named = !given.empty() && given.back().kind != Argument::Kind::positional;
    if (argument.kind == Argument::Kind::positional && follows_named) refuse("a positional argument follows other arguments");
    argument.value = expression();
    given.push_back(std::move(argument));
    if (!skip_op(",")) break;
  }
  expect_op(")");
  return given;
}

std::string_view ExpressionParser::dotted_name() {
  std::string_view name = expect(Token::Kind::name, "a name").text;
  while (skip_op(".")) name = syntax_.strings.emplace_back(fmt::format("{}.{}", name, expect(Token::Kind::name, "a name").text));
  return name;
}

Expression ExpressionParser::filters(Expression operand) {
  while (skip_op("|")) operand = filter(std::move(operand));
  return operand;
}

Expression ExpressionParser::filter(Expression operand) {
  const int line = seen().line;
  const std::string_view name = dotted_name();
  std::vector<Argument> given;
  if (seen().is_op("(")) given = arguments();
  Expression made = make(Kind::filter, line, {std::move(operand)}, name);
  made.arguments = std::move(given);
  return made;
}

/// `is not name(arguments)`, or `is name argument`.
Expression ExpressionParser::test(Expression operand) {
  const int line = take().line;
  const bool negated = skip_name("not");
  const std::string_view name = dotted_name();
  std::vector<Argument> given;
  const Token& next = seen();
  const bool starts_value = next.kind == Token::Kind::name || next.kind == Token::Kind::string || next.kind == Token::Kind::integer ||
                            next.kind == Token::Kind::real || next.is_op("[") || next.is_op("{");
  if (next.is_op("(")) {
    given = arguments();
  } else if (starts_value && !next.is_name("else") && !next.is_name("or") && !next.is_name("and")) {
    if (next.is_name("is")) refuse("tests cannot be chained (write 'and' between them)");
    given.emplace_back().value = postfix(primary());
  }
  Expression made = make(Kind::test, line, {std::move(operand)}, name);
  made.arguments = std::move(given);
  return negated ? make(Kind::logical_not, line, {std::move(made)}) : std::move(made);
}

}  // namespace rlx::jinja
