#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "base/names.h"
#include "text/template/expression_parser.h"

namespace rlx::jinja {
namespace {

constexpr std::array<std::string_view, 12> tags = {"if",   "for", "set",        "macro", "call",     "filter",
                                                   "with", "raw", "generation", "break", "continue", "print"};

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Block run() {
    Block body = block({});
    if (seen().kind != Token::Kind::end) refuse_token("the end of the template");
    return body;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  /// Statements up to the end, or to a tag of `ends`, at whose name it stops.
  Block block(Names ends) {
    const Level level(*this);
    Block body;
    while (seen().kind != Token::Kind::end) {
      const Token token = take();
      if (token.kind == Token::Kind::text) {
        body.push_back({token.line, Text{token.text}});
      } else if (token.kind == Token::Kind::output_begin) {
        body.push_back({token.line, Output{tuple()}});
        expect(Token::Kind::output_end, "'}}'");
      } else {
        const bool ended = seen().kind == Token::Kind::name && std::find(ends.begin(), ends.end(), seen().text) != ends.end();
        if (ended) return body;
        statement(body);
        expect(Token::Kind::block_end, "'%}'");
      }
    }
    if (ends.size() > 0) refuse_token(fmt::format("'{}'", *(ends.end() - 1)));
    return body;
  }

  /// The body behind the rest of a tag. The tag that ends it is taken, up to its own end.
  Block body_until(std::string_view end) {
    skip_op(":");
    expect(Token::Kind::block_end, "'%}'");
    Block body = block({end});
    take();
    return body;
  }

  void statement(Block& into) {
    const int line = seen().line;
    const Token tag = expect(Token::Kind::name, "the name of a tag");
    if (tag.text == "print") {
      while (seen().kind != Token::Kind::block_end) {
        into.push_back({line, Output{expression()}});
        if (!skip_op(",")) break;
      }
    } else if (tag.text == "if") into.push_back({line, if_statement()});
    else if (tag.text == "for") into.push_back({line, for_statement()});
    else if (tag.text == "set") set_statement(into, line);
    else if (tag.text == "macro") into.push_back({line, macro()});
    else if (tag.text == "call") into.push_back({line, call_block()});
    else if (tag.text == "filter") into.push_back({line, filter_block()});
    else if (tag.text == "with") into.push_back({line, with()});
    else if (tag.text == "generation") into.push_back({line, Generation{body_until("endgeneration")}});
    else if (tag.text == "break" || tag.text == "continue") loop_control(into, tag);
    else refuse("unexpected tag {} (allowed: {})", quote_name(tag.text), fmt::join(tags, ", "));
  }

  void loop_control(Block& into, const Token& tag) {
    if (loops_ == 0) refuse("'{}' stands outside of a loop", tag.text);
    into.push_back({tag.line, LoopControl{tag.text == "break"}});
  }

  If if_statement() {
    If made;
    for (;;) {
      Expression condition = tuple(Choice::without_if);
      skip_op(":");
      expect(Token::Kind::block_end, "'%}'");
      Block body = block({"elif", "else", "endif"});
      made.branches.emplace_back(std::move(condition), std::move(body));
      if (skip_name("elif")) continue;
      if (skip_name("else")) made.otherwise = body_until("endif");
      else take();
      return made;
    }
  }

  For for_statement() {
    For made;
    made.target = target(false);
    expect_name("in");
    made.iterable = tuple(Choice::without_if);
    if (skip_name("if")) made.condition.push_back(expression());
    made.recursive = skip_name("recursive");
    skip_op(":");
    expect(Token::Kind::block_end, "'%}'");
    ++loops_;
    made.body = block({"else", "endfor"});
    --loops_;
    if (skip_name("else")) made.otherwise = body_until("endfor");
    else take();
    return made;
  }

  void set_statement(Block& into, int line) {
    Target to = target(true);
    if (skip_op("=")) {
      into.push_back({line, Set{std::move(to), tuple()}});
      return;
    }
    std::vector<Expression> through;
    if (seen().is_op("|")) through.push_back(filters(Expression{}));
    into.push_back({line, SetBlock{std::move(to), std::move(through), body_of_text("endset")}});
  }

  /// A body whose text is kept: `break` in it cannot end a loop around it.
  Block body_of_text(std::string_view end) {
    const int around = std::exchange(loops_, 0);
    Block body = body_until(end);
    loops_ = around;
    return body;
  }

  Target target(bool attributes) {
    Target made = single_target(attributes);
    if (!seen().is_op(",")) return made;
    Target tuple;
    tuple.kind = Target::Kind::tuple, tuple.line = made.line;
    tuple.parts.push_back(std::move(made));
    while (skip_op(",") && (seen().kind == Token::Kind::name || seen().is_op("(")) && !seen().is_name("in"))
      tuple.parts.push_back(single_target(attributes));
    return tuple;
  }

  Target single_target(bool attributes) {
    const Level level(*this);
    if (skip_op("(")) {
      Target inner = target(attributes);
      expect_op(")");
      return inner;
    }
    const Token name = expect(Token::Kind::name, "the name of a variable");
    for (std::string_view constant : {"true", "false", "none", "True", "False", "None"})
      if (name.text == constant) refuse("cannot assign to '{}'", constant);
    Target made;
    made.line = name.line, made.name = name.text;
    if (attributes && skip_op(".")) made.kind = Target::Kind::attribute, made.attribute = expect(Token::Kind::name, "a name").text;
    return made;
  }

  void signature(MacroDefinition& made) {
    expect_op("(");
    while (!seen().is_op(")")) {
      Parameter parameter{expect(Token::Kind::name, "the name of a parameter").text, {}};
      if (skip_op("=")) parameter.initial.push_back(expression());
      else if (!made.parameters.empty() && !made.parameters.back().initial.empty())
        refuse("parameter {} without a default follows one that has one", quote_name(parameter.name));
      made.parameters.push_back(std::move(parameter));
      if (!skip_op(",")) break;
    }
    expect_op(")");
  }

  void macro_body(MacroDefinition& made, std::string_view end) {
    const std::size_t begin = at_;
    made.body = body_of_text(end);
    made.uses_caller = mentions("caller", begin), made.uses_varargs = mentions("varargs", begin),
    made.uses_kwargs = mentions("kwargs", begin);
  }

  bool mentions(std::string_view name, std::size_t begin) const {
    for (std::size_t i = begin; i < at_; ++i)
      if (token(i).is_name(name)) return true;
    return false;
  }

  MacroDefinition macro() {
    MacroDefinition made;
    made.name = expect(Token::Kind::name, "the name of a macro").text;
    signature(made);
    macro_body(made, "endmacro");
    return made;
  }

  CallBlock call_block() {
    CallBlock made;
    made.caller.name = "caller";
    if (seen().is_op("(")) signature(made.caller);
    made.call = expression();
    if (made.call.kind != Expression::Kind::call) refuse("'call' needs the call of a macro");
    macro_body(made.caller, "endcall");
    return made;
  }

  FilterBlock filter_block() {
    FilterBlock made;
    made.filter = filters(filter(Expression{}));
    made.body = body_of_text("endfilter");
    return made;
  }

  With with() {
    With made;
    while (seen().kind != Token::Kind::block_end) {
      Target to = target(false);
      expect_op("=");
      made.variables.emplace_back(std::move(to), expression());
      if (!skip_op(",")) break;
    }
    made.body = body_until("endwith");
    return made;
  }

  int loops_ = 0;  // around the cursor
};

}  // namespace

std::unique_ptr<const Syntax> parse(std::string_view source, std::string name) {
  auto syntax = std::make_unique<Syntax>();
  syntax->name = std::move(name);
  std::vector<Token> tokens = tokens_of(source, syntax->name, syntax->strings);
  syntax->body = Parser(std::move(tokens), *syntax).run();
  return syntax;
}

}  // namespace rlx::jinja
