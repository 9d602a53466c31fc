// Reads the text form of a graph. Values are in text_values.cpp, tokens in text_lexer.cpp, the writing side in text_printer.cpp.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/names.h"
#include "ir/graph_data.h"
#include "ir/op.h"
#include "ir/sources.h"
#include "ir/text/text_values.h"

namespace rlx {
namespace {

constexpr int deepest_region = 64;

/// The graph or region being read and the values named in it.
struct Scope {
  Graph graph;
  std::map<std::string, Values, std::less<>> values;
};

class GraphReader {
 public:
  GraphReader(std::string_view text, std::string_view what, const FindArray& find) : lexer_(text, what), values_(lexer_, find) {}

  Graph read() {
    if (!lexer_.accept_word("graph")) lexer_.fail_expected("'graph'");
    const std::string name = lexer_.name("the graph's name");
    values_.declare_symbols();
    Graph graph = body(name);
    if (lexer_.peek().kind != Token::Kind::end) lexer_.fail_expected("the end of the text");
    return graph;
  }

 private:
  /// { nodes and outputs }
  Graph body(const std::string& name) {
    Scope scope{Graph(name), {}};
    lexer_.expect("{");
    while (!lexer_.at("}")) {
      if (lexer_.accept_word("output")) output(scope);
      else if (lexer_.peek().kind == Token::Kind::value) node(scope);
      else lexer_.fail_expected("a value such as %0, 'output' or '}'");
    }
    lexer_.expect("}");
    return scope.graph;
  }

  Region region() {
    const Position at = lexer_.peek().at;
    if (lexer_.accept_word("none")) return nullptr;
    if (!lexer_.accept_word("graph")) lexer_.fail_expected("'graph' or 'none'");
    if (depth_ == deepest_region) lexer_.fail_at(at, fmt::format("regions are nested more than {} deep", deepest_region));
    ++depth_;
    auto graph = std::make_shared<const Graph>(body(lexer_.name("the region's name")));
    --depth_;
    return graph;
  }

  /// output y = %3
  void output(Scope& scope) {
    const Position at = lexer_.peek().at;
    std::string name = lexer_.name("the output's name");
    lexer_.expect("=");
    const Value value = operand(scope);
    lexer_.placed(at, [&] { scope.graph.output(std::move(name), value); });
  }

  /// %2: f32[B,2], i32[B,2] = op(%0, %1) {attribute=value} backward
  void node(Scope& scope) {
    const Token name = lexer_.take();
    if (name.text.find('.') != std::string_view::npos)
      lexer_.fail_at(name.at, fmt::format("{}: a new value has no result number", name.text));
    if (scope.values.contains(name.text)) lexer_.fail_at(name.at, fmt::format("{} has a value already", name.text));
    const Position types_at = lexer_.accept(":") ? lexer_.peek().at : Position{0, 0};
    std::vector<Type> types;
    if (types_at.line > 0) do
        types.push_back(values_.type());
      while (lexer_.accept(","));
    lexer_.expect("=");
    const Token word = lexer_.expect(Token::Kind::word, "the name of an op");
    const OpDef& op = lexer_.placed(word.at, [&]() -> std::reference_wrapper<const OpDef> { return find_op(word.text); });
    const Values operands = lexer_.accept("(") ? operand_list(scope) : Values();
    Attrs attrs = attributes(op, types);
    const Values results = lexer_.placed(word.at, [&] { return build(scope.graph, op, std::move(attrs), operands); });
    for (const Value& result : results) values_.check_size(word.at, result.type());
    if (types_at.line > 0) check_types(types_at, name.text, op, types, results);
    scope.graph.data().note_origins({.composite = nullptr, .backward = lexer_.accept_word("backward")});
    scope.values.emplace(name.text, results);
  }

  static Values build(Graph& graph, const OpDef& op, Attrs attrs, const Values& operands) {
    if (op.name != "input") return operands.empty() ? apply(graph.data(), op, std::move(attrs)) : apply(op, std::move(attrs), operands);
    if (!operands.empty()) fail("rlx.input: takes no operands, given {}", operands.size());
    return {graph.add_input(input_from(attrs))};
  }

  void check_types(Position at, std::string_view name, const OpDef& op, const std::vector<Type>& stated, const Values& results) const {
    if (stated.size() != results.size())
      lexer_.fail_at(at, fmt::format("{}: stated {} result types, {} gives {}", name, stated.size(), op.name, results.size()));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!(stated[i] == results[i].type()))
        lexer_.fail_at(at, fmt::format("{}: stated {}, {} gives {}", name, stated[i].to_string(), op.name, results[i].type().to_string()));
  }

  Values operand_list(const Scope& scope) {
    Values operands;
    while (!lexer_.at(")")) {
      operands.push_back(operand(scope));
      if (!lexer_.accept(",")) break;
    }
    lexer_.expect(")");
    return operands;
  }

  /// %3, or %3.1 for the second result of a node with several.
  Value operand(const Scope& scope) {
    const Token token = lexer_.expect(Token::Kind::value, "a value such as %0");
    const std::size_t dot = token.text.find('.');
    const std::string_view name = token.text.substr(0, dot);
    const auto it = scope.values.find(name);
    if (it == scope.values.end()) {
      std::vector<std::string_view> known;
      for (const auto& [each, results] : scope.values) known.push_back(each);
      lexer_.fail_at(token.at, fmt::format("{} has no value here{}", name, near_hint(name, known)));
    }
    const Values& results = it->second;
    std::size_t result = 0;
    if (dot == std::string_view::npos) {
      if (results.size() != 1)
        lexer_.fail_at(token.at, fmt::format("{} has {} results; write {}.0 for the first", name, results.size(), name));
      return results[0];
    }
    const std::string_view number = token.text.substr(dot + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), result);
    if (error != std::errc() || result >= results.size())
      lexer_.fail_at(token.at, fmt::format("{} has no result {} (allowed: 0..{})", name, number, results.size() - 1));
    return results[result];
  }

  /// {name=value, ...}; what is left out has its initial value. An input takes its dtype and shape from the stated type.
  Attrs attributes(const OpDef& op, const std::vector<Type>& types) {
    Attrs attrs;
    std::vector<std::string_view> names;
    for (const Field& field : op.fields) {
      attrs.push_back(field.initial);
      names.push_back(field.name);
    }
    if (op.name == "input" && types.size() == 1) attrs = input_attrs({"", InputKind::input, types[0]});
    if (!lexer_.accept("{")) return attrs;
    std::vector<bool> given(names.size());
    while (!lexer_.at("}")) {
      const Token name = lexer_.expect(Token::Kind::word, "the name of an attribute");
      const auto i = static_cast<std::size_t>(std::find(names.begin(), names.end(), name.text) - names.begin());
      if (i == names.size())
        lexer_.fail_at(name.at,
                       fmt::format("rlx.{} has no attribute {}{}", op.name, quote_name(name.text), near_or_allowed(name.text, names)));
      if (given[i]) lexer_.fail_at(name.at, fmt::format("attribute '{}' is given twice", name.text));
      given[i] = true;
      lexer_.expect("=");
      attrs[i] = std::holds_alternative<Region>(op.fields[i].initial) ? Attr(region()) : values_.value(op.fields[i]);
      if (!lexer_.accept(",")) break;
    }
    lexer_.expect("}");
    return attrs;
  }

  Lexer lexer_;
  ValueReader values_;
  int depth_ = 0;
};

}  // namespace

Graph parse_graph(std::string_view text, std::string_view what, const FindArray& find) { return GraphReader(text, what, find).read(); }
Graph parse_graph(std::string_view text, std::string_view what) { return parse_graph(text, what, FindArray()); }

}  // namespace rlx
