#include <gtest/gtest.h>

#include "message.h"
#include "models/grammar_texts.h"
#include "text/grammar/grammar.h"
#include "text/grammar/matcher.h"

namespace rlx::test {
namespace {

using grammar::Matcher, grammar::TokenBytes;

struct GrammarCase {
  const char* grammar;
  std::vector<std::string> whole, not_whole;
};

TEST(Grammar, MatchesExactlyItsTexts) {
  const std::vector<GrammarCase> cases = {
      {"root ::= \"ab\" | \"c\"", {"ab", "c"}, {"", "a", "abc", "b"}},
      {"root ::= [a-c]+ [^a-c\\n]?", {"abc", "aé", "c世", "a😀"}, {"", "é", "a\n", "aéé", "a\xC3", "a\xED\xA0\x80"}},
      {"root ::= \"x\"{2} | \"y\"{1,3} | \"z\"{2,} | \"w\"{,2}",
       {"xx", "y", "yyy", "zz", "zzzzz", "", "ww"},
       {"x", "xxx", "yyyy", "z", "www"}},
      {"root ::= (\"a\" | \"b\" # comment\n  \"c\")* # end\n", {"", "abcbca", "a"}, {"b", "ac"}},
      {"root ::= \"a\"\n  | \"b\"\n\nother ::= \"c\"", {"a", "b"}, {"c"}},
      {"root ::= pair\npair ::= \"(\" pair \")\" pair | \"\"", {"", "()", "(())()"}, {"(", ")", "())"}},
      {"root ::= (\"a\"* \"b\"?)* \"c\"", {"c", "aabac", "bbc"}, {"", "ab"}},
      {"root ::= . .", {"éx", "😀\n"}, {"a", "abc", "\xFF\xFF"}},
      {"root ::= \"\\x41\\u00e9\\U0001F600\\\"\\\\\"", {"Aé😀\"\\"}, {"A"}},
      {"root ::= [\\u0800-\\uFFFF]", {"ࠀ", "\uD7FF", "\uE000", "\uFFFF"}, {"é", "\xED\xA0\x80", "😀"}},
      {"root ::= [\\x7F-\\U0010FFFF]", {"\x7F", "\u0080", "\U0010FFFF"}, {"a", "\xF4\x90\x80\x80", "\xC0\x80"}},
      {"root ::= [-a^\\]]", {"-", "a", "^", "]"}, {"b"}},
  };
  for (const GrammarCase& item : cases) {
    SCOPED_TRACE(item.grammar);
    const auto grammar = compiled(item.grammar);
    for (const std::string& text : item.whole) EXPECT_TRUE(matches(grammar, text)) << text;
    for (const std::string& text : item.not_whole) EXPECT_FALSE(matches(grammar, text)) << text;
  }
}

TEST(Grammar, EveryCodePointOfARangeIsMatchedAndNoOther) {
  const auto grammar = compiled("root ::= [\\u00C5-\\U000103FF]");
  for (std::uint32_t code = 1; code <= 0x10FFFF; code += code < 0x11000 ? 1 : 977) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    if (code < 0x80) text = {static_cast<char>(code)};
    else if (code < 0x800) text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    else if (code < 0x10000)
      text = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    else
      text = {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    ASSERT_EQ(matches(grammar, text), code >= 0xC5 && code <= 0x103FF) << code;
  }
}

TEST(Grammar, ErrorsNameTheLineAndColumn) {
  const auto error = [](const std::string& text) { return error_of([&] { compiled(text); }); };
  EXPECT_EQ(error(""), "g: line 1, column 1: there is no rule 'root'");
  EXPECT_EQ(error("root ::= \"a\"\nx = 1"), "g: line 2, column 3: expected '::=', found '='");
  EXPECT_EQ(error("root ::= a"), "g: line 1, column 10: rule 'a' is not defined");
  EXPECT_EQ(error("root ::= \"a"), "g: line 1, column 10: the text that begins here has no end (expected '\"')");
  EXPECT_EQ(error("root ::= [z-a]"), "g: line 1, column 11: a range of characters goes backwards");
  EXPECT_EQ(error("root ::= (\"a\""), "g: line 1, column 14: expected ')', found the end");
  EXPECT_EQ(error("root ::= \"a\" )"), "g: line 1, column 14: unexpected ')'");
  EXPECT_EQ(error("root ::= \"a\"\nroot ::= \"b\""), "g: line 2, column 1: rule 'root' is defined twice");
  EXPECT_EQ(error("root ::= \"a\"{3,2}"), "g: line 1, column 13: a repetition of 3 to 2 times");
  EXPECT_EQ(error("root ::= \"a\"{99999}"), "g: line 1, column 14: more than 10000 repetitions");
  EXPECT_EQ(error("root ::= \"a\"{9999}{9999}"), "g: more than 1048576 elements");
  EXPECT_EQ(error("root ::= " + std::string(200, '(')), "g: line 1, column 111: groups are nested more than 100 deep");
  for (const char* text : {"root ::= root \"a\"", "root ::= x \"b\"\nx ::= root \"a\" | \"c\"", "root ::= y root \"a\"\ny ::= \"z\"?"})
    EXPECT_NE(error(text).find("is left-recursive"), std::string::npos) << text;
  for (const char* text :
       {"root ::= root", "root ::= \"a\" root", "root ::= x | \"a\" y\nx ::= \"b\" y\ny ::= \"c\" x", "root ::= [^\\x00-\\U0010FFFF]"})
    EXPECT_EQ(error(text), "g: there is no text that the rule 'root' allows") << text;
  EXPECT_EQ(error("root ::= root | \"a\""), "no error");  // it begins with nothing but itself, which adds no text
}

std::shared_ptr<const TokenBytes> vocabulary(const std::vector<std::string>& tokens, const std::vector<std::int32_t>& ends) {
  return std::make_shared<const TokenBytes>(tokens, ends);
}

std::vector<std::int32_t> allowed_ids(Matcher& matcher, std::size_t tokens) {
  const auto mask = matcher.allowed();
  std::vector<std::int32_t> ids;
  for (std::size_t id = 0; id < tokens; ++id)
    if ((mask[id / 64] >> (id % 64) & 1) != 0) ids.push_back(static_cast<std::int32_t>(id));
  return ids;
}

TEST(GrammarMatcher, AllowsTheTokensThatCanComeNext) {
  const std::vector<std::string> tokens = {"", "</s>", "a", "ab", "abc", "b", "c", "\xC3", "\xA9", "é", "bc"};
  Matcher matcher(compiled("root ::= \"a\" [bé] \"c\"?"), vocabulary(tokens, {1}));
  const auto ids = [&] { return allowed_ids(matcher, tokens.size()); };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(ids(), (Ids{2, 3, 4}));
  matcher.accept(2);
  EXPECT_EQ(ids(), (Ids{5, 7, 9, 10}));
  matcher.accept(7);  // half of a character
  EXPECT_EQ(ids(), (Ids{8}));
  EXPECT_EQ(error_of([&] { matcher.accept(9); }), "grammar: token 9 ('é') may not come next");
  matcher.accept(8);
  EXPECT_EQ(ids(), (Ids{1, 6}));
  EXPECT_TRUE(matcher.can_end());
  matcher.accept(1);
  EXPECT_TRUE(matcher.ended());
  EXPECT_EQ(ids(), (Ids{}));
}

TEST(GrammarMatcher, AMaskIsWhatAllowsSaysOfEveryToken) {
  std::vector<std::string> tokens;
  for (int first = 32; first < 127; ++first)
    for (const char* rest : {"", "a", "\"", "\":", "1}", " true", "\\u00"}) tokens.push_back(static_cast<char>(first) + std::string(rest));
  tokens.emplace_back("</s>");
  const std::string schema = R"({"properties": {"a": {"type": "integer"}, "b": {"enum": ["x", true]}}, "required": ["b"]})";
  Matcher matcher(compiled(grammar::gbnf_of_json_schema(json::parse(schema, "schema"), "schema")),
                  vocabulary(tokens, {static_cast<std::int32_t>(tokens.size()) - 1}));
  const auto check = [&] {
    std::vector<std::int32_t> expected;
    for (std::size_t id = 0; id < tokens.size(); ++id)
      if (matcher.allows(static_cast<std::int32_t>(id))) expected.push_back(static_cast<std::int32_t>(id));
    EXPECT_EQ(allowed_ids(matcher, tokens.size()), expected);
  };
  check();
  for (char c : std::string_view(R"({"a" :1,"b":true})")) {
    matcher.accept((c - 32) * 7);
    check();
  }
  EXPECT_TRUE(matcher.can_end());
}

TEST(GrammarMatcher, NestingEndsAtALimit) {
  const std::vector<std::string> tokens = {"[", "]"};
  Matcher matcher(compiled("root ::= \"[\" root? \"]\""), vocabulary(tokens, {}));
  int depth = 0;
  for (; depth < 5000 && matcher.allows(0); ++depth) matcher.accept(0);
  EXPECT_GT(depth, 500);
  EXPECT_LT(depth, 2000);
  for (; depth > 0; --depth) matcher.accept(1);
  EXPECT_TRUE(matcher.can_end());
}

struct SchemaCase {
  const char* schema;
  std::vector<std::string> valid, invalid;
};

TEST(JsonSchema, AllowsTextsThatSatisfyItAndNoOthers) {
  const std::vector<SchemaCase> cases = {
      {"true",
       {"1", "\"a\"", "[1, {\"a\": [null]}]", "{}", "-0.5e+10", "\"\\u00e9\\n\"", "[ ]"},
       {"", "01", "[1,]", "{a:1}", "\"\n\"", "'a'", "1 2"}},
      {R"({"type": "integer"})", {"0", "-12", "7"}, {"1.5", "01", "-", "\"1\""}},
      {R"({"type": "integer", "minimum": 0})", {"0", "12"}, {"-1"}},
      {R"({"type": "integer", "exclusiveMinimum": 0})", {"1", "12"}, {"0", "-1"}},
      {R"({"type": "number"})", {"0", "-1.5", "2e8"}, {".5", "1.", "true"}},
      {R"({"type": ["string", "null"]})", {"\"\"", "null"}, {"1"}},
      {R"({"enum": ["a", 1, null, {"b": []}]})", {"\"a\"", "1", "null", "{\"b\":[]}"}, {"a", "2"}},
      {R"({"const": "q\"uo\\te\n"})", {"\"q\\\"uo\\\\te\\n\""}, {"\"quote\""}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})", {"\"ab\"", "\"é世\\n\""}, {"\"a\"", "\"abcd\""}},
      {R"({"type": "string", "format": "date"})", {"\"2026-01-31\""}, {"\"2026-13-01\"", "\"today\""}},
      {R"({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3})",
       {"[true]", "[true, false,true]"},
       {"[]", "[1]", "[true,true,true,true]"}},
      {R"({"type": "array", "items": {"type": "null"}})", {"[]", "[null]", "[ null , null ]"}, {"[1]"}},
      {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false})", {"[1, \"a\"]"}, {"[1]", "[1,\"a\",2]"}},
      {R"({"type": "object"})", {"{}", "{\"x\": [1]}"}, {"[]"}},
      {R"({"properties": {"a": {"type": "integer"}, "b": true, "c": {"type": "null"}}, "required": ["b"]})",
       {R"({"b":1})", R"({"a":1,"b":2})", R"({ "b" : "x" , "c" : null })", R"({"a":1,"b":2,"c":null})"},
       {"{}", R"({"a":1})", R"({"b":1,"a":1})", R"({"b":1,})", R"({"b":1,"d":1})", R"({"a":"x","b":1})"}},
      {R"({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"b":1,"a":2})", "{,}"}},
      {R"({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}})",
       {"{}", R"({"a":1})", R"({"x":true})", R"({"a":1,"x":true,"y":false})"},
       {R"({"x":1})"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}})", {"{}", R"({"p":1,"q":2})"}, {R"({"p":"1"})"}},
      {R"({"anyOf": [{"type": "integer"}, {"properties": {"v": {"type": "integer"}}, "required": ["v"]}]})",
       {"3", R"({"v":4})"},
       {"{}", "\"3\""}},
      {R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"properties": {"b": {"const": 1}}, "required": ["b"]}}})",
       {R"({"a":5,"b":1})"},
       {R"({"a":5})", R"({"b":1})"}},
      {R"({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["v", "next"]}}})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1})", R"({"v":1,"next":{}})"}},
  };
  for (const SchemaCase& item : cases) {
    SCOPED_TRACE(item.schema);
    const auto grammar = compiled(grammar::gbnf_of_json_schema(json::parse(item.schema, "schema"), "schema"));
    for (const std::string& text : item.valid) EXPECT_TRUE(matches(grammar, text)) << text;
    for (const std::string& text : item.invalid) EXPECT_FALSE(matches(grammar, text)) << text;
  }
}

TEST(JsonSchema, ThatNoTextSatisfiesIsRefused) {
  for (const char* schema : {R"({"$ref": "#"})", R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})"})
    EXPECT_NE(error_of([&] { compiled(grammar::gbnf_of_json_schema(json::parse(schema, "f"), "f")); }).find("there is no text"),
              std::string::npos)
        << schema;
}

TEST(JsonSchema, WhatItCannotExpressIsRefused) {
  const auto error = [](const char* schema) { return error_of([&] { grammar::gbnf_of_json_schema(json::parse(schema, "f"), "f"); }); };
  EXPECT_EQ(error(R"({"type": "object", "minProperties": 1})"), "f: #: keyword 'minProperties' is not supported");
  EXPECT_EQ(error(R"({"properties": {"a": {"type": "text"}}})"),
            "f: #/properties/a: type 'text' (allowed: object, array, string, number, integer, boolean, null)");
  EXPECT_EQ(error(R"({"$ref": "#/$defs/x"})"), "f: #: $ref: there is no '#/$defs/x'");
  EXPECT_EQ(error(R"({"properties": {}, "required": ["z"]})"), "f: #: required 'z' is not among the properties");
  EXPECT_EQ(error("3"), "f: #: a value of type number (allowed: an object, true, false)");
}

}  // namespace
}  // namespace rlx::test
