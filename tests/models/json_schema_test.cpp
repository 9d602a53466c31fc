// What keywords of JSON schemas forbid within numbers, strings and lists, beside arithmetic and lists of texts.
#include <cmath>
#include <random>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "message.h"
#include "models/grammar_texts.h"

namespace rlx::test {
namespace {

std::string error(std::string_view schema) {
  return error_of([&] { compiled(grammar::gbnf_of_json_schema(json::parse(schema, "f"), "f")); });
}

struct Limits {
  std::optional<double> least, most, step;
  bool above = false, below = false;

  bool hold(double x) const {
    if (least && (x < *least || (above && x == *least))) return false;
    if (most && (x > *most || (below && x == *most))) return false;
    return !step || std::abs(x / *step - std::round(x / *step)) < 1e-9;
  }
  std::string schema(std::string_view type) const {
    std::string text = fmt::format(R"({{"type": "{}")", type);
    if (least) text += fmt::format(R"(, "{}": {})", above ? "exclusiveMinimum" : "minimum", *least);
    if (most) text += fmt::format(R"(, "{}": {})", below ? "exclusiveMaximum" : "maximum", *most);
    if (step) text += fmt::format(R"(, "multipleOf": {})", *step);
    return text + "}";
  }
};

/// Integers up to 2222 and decimals up to 22.22, beside limits near them.
void expect_exact(const Limits& limits) {
  for (const bool integer : {true, false}) {
    const std::string schema = limits.schema(integer ? "integer" : "number");
    SCOPED_TRACE(schema);
    std::vector<std::string> texts;
    std::vector<bool> expected;
    for (int i = -2222; i <= 2222; ++i) {
      const double value = integer ? i : i / 100.0;
      if (i == 0 && std::signbit(value)) continue;
      texts.push_back(integer ? fmt::format("{}", i) : fmt::format("{}", value));
      expected.push_back(limits.hold(value));
    }
    if (std::ranges::count(expected, true) == 0) continue;  // that may be an error
    const auto grammar = of_schema(schema);
    for (std::size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(matches(grammar, texts[i]), expected[i]) << texts[i];
  }
}

TEST(JsonSchemaLimits, NumbersAreThoseOfTheLimits) {
  for (const Limits& limits : {Limits{5, {}, {}},
                               {{}, 5, {}},
                               {0, 1, {}},
                               {-1, 1, {}, true, true},
                               {1, 100, {}},
                               {-7.25, -0.5, {}},
                               {0, 0, {}},
                               {{}, {}, 5},
                               {{}, {}, 0.25},
                               {-10, 999, 7},
                               {0.1, 0.3, 0.1},
                               {3, 14, 2.5},
                               {-3, {}, {}, true},
                               {{}, 0, {}, false, true},
                               {9.99, 10.01, {}},
                               {99, 1000, 100},
                               {{}, {}, 1000}})
    expect_exact(limits);
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    const auto draw = [&](int decimals) { return std::round((static_cast<double>(random() % 5000) - 2500) * decimals) / 100.0; };
    const double a = draw(random() % 2 != 0 ? 1 : 100), b = draw(random() % 2 != 0 ? 1 : 100);
    const std::optional<double> step =
        random() % 3 == 0 ? std::optional(static_cast<double>(random() % 40 + 1) / (random() % 2 != 0 ? 1 : 10)) : std::nullopt;
    expect_exact({std::min(a, b), std::max(a, b), step, random() % 2 != 0, random() % 2 != 0});
  }
}

TEST(JsonSchemaLimits, NumbersAreWrittenAsJsonWritesThem) {
  const auto grammar = of_schema(R"({"type": "number", "minimum": 0, "exclusiveMaximum": 1e3})");
  for (const char* text : {"0", "0.0", "12.5", "999.999", "0.001"}) EXPECT_TRUE(matches(grammar, text)) << text;
  for (const char* text : {"00", "01", ".5", "1.", "-1", "1000", "1000.0", "1e2", "--1", ""}) EXPECT_FALSE(matches(grammar, text)) << text;
  const auto large = of_schema(R"({"type": "integer", "minimum": 123456789012345678, "maximum": 18446744073709551615})");
  EXPECT_TRUE(matches(large, "123456789012345678"));
  EXPECT_TRUE(matches(large, "999999999999999999"));
  EXPECT_FALSE(matches(large, "123456789012345677"));
  EXPECT_FALSE(matches(large, "12345678901234567"));
  // Draft 4 says with a bool that a bound is not allowed itself.
  const auto old = of_schema(R"({"type": "integer", "minimum": 3, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false})");
  EXPECT_FALSE(matches(old, "3"));
  EXPECT_TRUE(matches(old, "4"));
  EXPECT_TRUE(matches(old, "9"));
  const auto prices = of_schema(R"({"type": "number", "minimum": 0, "multipleOf": 0.01})");
  EXPECT_TRUE(matches(prices, "19.99"));
  EXPECT_TRUE(matches(prices, "20"));
  EXPECT_FALSE(matches(prices, "19.999"));
  const auto days = of_schema(R"({"type": "integer", "multipleOf": 86400})");
  EXPECT_TRUE(matches(days, "-172800"));
  EXPECT_FALSE(matches(days, "172801"));
}

struct Texts {
  const char* schema;
  std::vector<std::string> valid, invalid;
};

void expect_strings(const Texts& item) {
  SCOPED_TRACE(item.schema);
  const auto grammar = of_schema(item.schema);
  for (const std::string& text : item.valid) EXPECT_TRUE(matches(grammar, json::Value(text).dump())) << text;
  for (const std::string& text : item.invalid) EXPECT_FALSE(matches(grammar, json::Value(text).dump())) << text;
}

TEST(JsonSchemaLimits, PatternsAreSearchedForInTheText) {
  for (const Texts& item : std::vector<Texts>{{R"({"pattern": "^[a-z]+$"})", {"a", "abc"}, {"", "A", "ab1", "a b"}},
                                              {R"({"pattern": "b"})", {"b", "abc", "\"b\n"}, {"", "ac"}},
                                              {R"({"pattern": "^a|b$"})", {"a", "ax", "xb", "b"}, {"xa", "bx", ""}},
                                              {R"({"pattern": "^(?:a|(b|c)d){2}$"})", {"aa", "abd", "cdbd"}, {"a", "ab", "aaa"}},
                                              {R"({"pattern": "(^a|b)c"})", {"acx", "bc", "xbc"}, {"c", "xac"}},
                                              {R"({"pattern": "^\\d{3}-\\d{2,}$"})", {"123-45", "123-4567"}, {"12-345", "123-4", "١٢٣-45"}},
                                              {R"({"pattern": "^\\w*\\S\\s?$"})", {"a_1", "é "}, {"a b c", "  "}},
                                              {R"({"pattern": "^[^\"\\\\]$"})", {"a", "\n", "世"}, {"\"", "\\", "", "ab"}},
                                              {R"({"pattern": "^[\"\\\\\\n\\u0001]+$"})", {"\"", "\\\"\n", "\x01"}, {"a", "\t"}},
                                              {R"({"pattern": "^.$"})", {"a", "é", "😀"}, {"\n", "\r", ""}},
                                              {R"({"pattern": "^[[a&&b]$"})", {"[", "a", "&", "b"}, {"]", "c"}},
                                              {R"({"pattern": "^a{,2}$"})", {"a{,2}"}, {"", "aa"}},
                                              {R"({"pattern": "^$"})", {""}, {"a"}},
                                              {R"({"pattern": ""})", {"", "anything"}, {}},
                                              {R"({"pattern": "^[a-z]*$", "minLength": 2, "maxLength": 3})", {"ab", "abc"}, {"a", "abcd"}},
                                              {R"({"pattern": "^ab?c$", "minLength": 2, "maxLength": 3})", {"ac", "abc"}, {"a"}}})
    expect_strings(item);
  EXPECT_EQ(error(R"x({"pattern": "a(?=b)"})x"), "f: #: pattern: look-around and atomic groups are not supported");
  EXPECT_EQ(error(R"({"pattern": "(a^)+"})"), "f: #: pattern: anchors are supported at the ends of the pattern; word boundaries are not");
  EXPECT_EQ(error(R"({"pattern": "a\\b"})"), "f: #: pattern: anchors are supported at the ends of the pattern; word boundaries are not");
  EXPECT_EQ(error(R"({"pattern": "["})"), "f: #: the pattern ends too early, at code point 1");
  EXPECT_EQ(error(R"({"pattern": "^[]$"})"), "f: #: pattern: a set of characters is empty");
  EXPECT_EQ(error(fmt::format(R"({{"pattern": "a{}"}})", std::string(60'000, '*'))),
            "f: #: the pattern is nested too deeply, at code point 63");
  EXPECT_EQ(error(R"({"pattern": "^(a{1000}{1000}{1000}{1000}{1000}{1000}{1000}b){2}$", "maxLength": 9})"),
            "f: #: maxLength 9 beside this pattern, which allows more, is not supported");
  EXPECT_EQ(error(R"({"pattern": 3})"), "f: #: pattern is 3 (allowed: a regular expression)");
  EXPECT_EQ(error(R"({"pattern": "^ab+c$", "maxLength": 3})"),
            "f: #: maxLength 3 beside this pattern, which allows more, is not supported");
  EXPECT_EQ(error(R"({"pattern": "a", "minLength": 2})"), "f: #: minLength 2 beside this pattern, which allows 1, is not supported");
  EXPECT_EQ(error(R"({"pattern": "^[a-z]{1,3}$", "minLength": 4})"), "f: #: no text has the length and matches the pattern");
}

TEST(JsonSchemaLimits, FormatsAreThoseOfTheirStandards) {
  for (const Texts& item : std::vector<Texts>{
           {R"({"format": "date"})",
            {"2026-01-31", "2024-02-29", "2000-02-29"},
            {"2026-02-29", "1900-02-29", "2026-04-31", "2026-00-10", "today"}},
           {R"({"format": "time"})", {"23:59:59Z", "00:00:00.5+01:30"}, {"24:00:00Z", "12:00", "12:00:00"}},
           {R"({"format": "date-time"})", {"2026-01-31T12:00:00Z"}, {"2026-01-31", "2026-01-31 12:00:00Z"}},
           {R"({"format": "duration"})", {"P3D", "PT1H", "P1Y2M3DT4H5M6S", "P2W"}, {"P", "PT", "3D", "P1S", "PT1D"}},
           {R"({"format": "uuid"})", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567e89b12d3a456426614174000"}},
           {R"({"format": "email"})", {"ada@example.org", "a.b+c@x"}, {"ada", "@x", "a@", "a..b@x", "a b@x"}},
           {R"({"format": "hostname"})", {"localhost", "www.example-1.org"}, {"", "-a.org", "a-.org", "a..b", "a_b"}},
           {R"({"format": "ipv4"})", {"0.0.0.0", "255.255.255.255", "192.168.1.9"}, {"256.1.1.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"}},
           {R"({"format": "ipv6"})",
            {"::", "::1", "1::", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::"},
            {":", "1:2:3:4:5:6:7", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9"}},
           {R"({"format": "uri"})",
            {"https://example.org/a/b?q=1#f", "mailto:ada@example.org", "http://[::1]:80/", "urn:isbn:0", "file:///tmp/a%20b"},
            {"example.org", "//x", "http://a b", "1a:b", "http://a/%zz", "http://a/\"b\""}}})
    expect_strings(item);
  EXPECT_EQ(error(R"({"format": "phone"})"),
            "f: #: format \"phone\" is not supported (supported: date, time, date-time, duration, uuid, email, hostname, ipv4, ipv6, uri)");
}

TEST(JsonSchemaLimits, ItemsThatAreListedCanBeUnique) {
  const auto grammar = of_schema(R"({"items": {"enum": ["a", "b", 1]}, "uniqueItems": true, "minItems": 1, "maxItems": 2})");
  for (const char* text : {R"(["a"])", R"(["b", "a"])", R"([1,"a"])"}) EXPECT_TRUE(matches(grammar, text)) << text;
  for (const char* text : {"[]", R"(["a","a"])", R"(["a","b",1])", R"(["c"])"}) EXPECT_FALSE(matches(grammar, text)) << text;
  EXPECT_TRUE(matches(of_schema(R"({"items": {"type": "boolean"}, "uniqueItems": true})"), "[false, true]"));
  EXPECT_TRUE(matches(of_schema(R"({"items": {"$ref": "#/$defs/x"}, "uniqueItems": true, "$defs": {"x": {"const": 3}}})"), "[3]"));
  EXPECT_TRUE(matches(of_schema(R"({"items": {"type": "string"}, "uniqueItems": true, "maxItems": 1})"), R"(["x"])"));
  EXPECT_EQ(error(R"({"items": {"type": "string"}, "uniqueItems": true})"),
            "f: #: uniqueItems is supported where items are listed (enum, const, boolean)");
  EXPECT_EQ(error(R"({"items": {"enum": [1,2,3,4,5,6,7,8,9,10,11]}, "uniqueItems": true})"),
            "f: #: uniqueItems of 11 values takes too many rules (supported: up to 10)");
}

TEST(JsonSchemaLimits, WhatContradictsItselfIsOneError) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "integer", "minimum": 5, "maximum": 3})", "there is no integer of up to 18 digits within the limits"},
      {R"({"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 6})", "there is no integer of up to 18 digits within the limits"},
      {R"({"type": "integer", "minimum": 1e18})", "there is no integer of up to 18 digits within the limits"},
      {R"({"type": "number", "minimum": 1, "maximum": 1, "exclusiveMaximum": 1})",
       "there is no number of up to 18 digits within the limits"},
      {R"({"type": "number", "minimum": 0.1, "maximum": 0.2, "multipleOf": 1})", "there is no number of up to 18 digits within the limits"},
      {R"({"type": "number", "multipleOf": 0})", "multipleOf is 0 (allowed: above 0)"},
      {R"({"type": "number", "multipleOf": -2})", "multipleOf is -2 (allowed: above 0)"},
      {R"({"type": "number", "maximum": "3"})", "maximum is \"3\" (allowed: a number)"},
      {R"({"type": "number", "multipleOf": 0.12345678901})",
       "multipleOf has more digits than are supported (allowed: below 2^31 without the point)"},
      {R"({"type": "integer", "multipleOf": 1000003})", "multipleOf takes more than 10000 rules within these limits"},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", "minLength 3 is above maxLength 2"},
      {R"({"type": "string", "enum": [1, null]})", "none of the listed values is one that the other keywords allow"},
      {R"({"type": "integer", "enum": [1, 5, 2.5], "minimum": 6})", "none of the listed values is one that the other keywords allow"},
      {R"({"const": 3, "enum": [1, 2]})", "none of the listed values is one that the other keywords allow"},
      {R"({"enum": ["abc"], "maxLength": 2})", "none of the listed values is one that the other keywords allow"},
      {R"({"enum": ["abc"], "pattern": "^b"})", "pattern beside listed values is not supported"},
      {R"({"items": {"enum": [1, 2]}, "uniqueItems": true, "minItems": 3})", "minItems 3 of 2 values cannot be unique"},
      {R"({"prefixItems": [true, true], "minItems": 3})", "prefixItems lists 2 items, minItems and maxItems allow 3.."},
      {R"({"uniqueItems": 1})", "uniqueItems is 1 (allowed: true, false)"},
      {R"({"type": "string", "format": "date", "minLength": 3})", "format beside pattern, minLength or maxLength is not supported"},
  };
  for (const auto& [schema, message] : cases) EXPECT_EQ(error(schema), std::string("f: #: ") + message) << schema;
}

TEST(JsonSchemaLimits, ListedValuesAreThoseThatTheOtherKeywordsAllow) {
  const auto grammar = of_schema(R"({"type": ["integer", "string"], "enum": [1, 2.5, "a", "abc", null, 1], "maximum": 2, "maxLength": 1})");
  for (const char* text : {"1", R"("a")"}) EXPECT_TRUE(matches(grammar, text)) << text;
  for (const char* text : {"2.5", R"("abc")", "null"}) EXPECT_FALSE(matches(grammar, text)) << text;
}

TEST(JsonSchemaLimits, RulesForManyOptionalPropertiesGrowAsTheirSortingDoes) {
  const auto sizes = [](int count) {
    json::Value properties = json::Value::object(), required = json::Value::array();
    for (int i = 0; i < count; ++i) properties[fmt::format("field_{}é", i)] = {{"type", "integer"}};
    required.push_back(fmt::format("field_{}é", count / 2));
    const std::string schema = json::Value{{"type", "object"}, {"properties", properties}, {"required", required}}.dump();
    std::string text = "{";
    for (int i = 0; i < count; i += 5) text += fmt::format("{}\"field_{}é\": {}", i > 0 ? ", " : "", i, i);
    const std::string rules = grammar::gbnf_of_json_schema(json::parse(schema, "schema"), "schema");
    const auto grammar = compiled(rules);
    EXPECT_TRUE(matches(grammar, text + "}"));
    EXPECT_FALSE(matches(grammar, text + ", \"field_1é\": 1}"));
    EXPECT_FALSE(matches(grammar, "{}"));
    EXPECT_FALSE(matches(grammar, "{\"field_2é\": 1}"));
    EXPECT_FALSE(matches(grammar, fmt::format("{{\"field_{}é\": 1}}", count - 1)));
    EXPECT_TRUE(matches(grammar, fmt::format("{{\"field_{}é\": 1}}", count / 2)));
    return std::pair(grammar->rules.size(), rules.size());
  };
  const auto [few, short_text] = sizes(500);
  const auto [many, long_text] = sizes(5000);
  const double grows = 10 * std::log2(8192) / std::log2(512);  // every choice is a few ranges of a binary tree
  EXPECT_LE(static_cast<double>(many), grows * static_cast<double>(few));
  EXPECT_LE(static_cast<double>(long_text), grows * static_cast<double>(short_text));
}

TEST(JsonSchemaLimits, NamesOfMembersMayBeginWithEachOther) {
  const auto grammar =
      of_schema(R"({"properties": {"ab": {"const": 1}, "a": {"const": 2}, "aé": {"const": 3}, "aè": {"const": 4}, "\"": {"const": 5}},
                                     "required": ["aé"], "additionalProperties": {"const": 6}})");
  for (const char* text : {R"({"aé":3})", R"({"ab":1,"a":2,"aé":3,"aè":4,"\"":5,"x":6,"y":6})", R"({"a":2,"aé":3})", R"({"aé":3,"x":6})"})
    EXPECT_TRUE(matches(grammar, text)) << text;
  for (const char* text : {"{}", R"({"a":2,"ab":1,"aé":3})", R"({"a":3,"aé":3})", R"({"x":6})", R"({"aé":3,})", R"({"aè":4,"aé":3})"})
    EXPECT_FALSE(matches(grammar, text)) << text;
}

TEST(JsonSchemaLimits, OneOfIsRefusedWhereTwoMayHold) {
  for (const char* schemas : {
           R"({"type": "integer", "exclusiveMaximum": 9007199254740993}, {"type": "integer", "minimum": 9007199254740992})",
           R"({"type": "string", "minLength": 3}, {"type": "string", "maxLength": 3})",
           R"({"type": "integer"}, {"type": "number"})",
           R"({"minimum": 3}, {"type": "string"})",
           R"({"enum": [1, "a"]}, {"enum": [1.0]})",
           R"({"type": "string", "nullable": true}, {"type": "null"})",
           R"({"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}})",
           R"({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]},
              {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]})",
           R"({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "string"}})",
           R"({"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/loop"})",
       }) {
    SCOPED_TRACE(schemas);
    EXPECT_EQ(
        error(fmt::format(R"({{"oneOf": [{}], "$defs": {{"loop": {{"type": "array", "items": {{"$ref": "#/$defs/loop"}}}}}}}})", schemas)),
        "f: #: oneOf: 0 and 1 may both hold of one value, which is not supported (supported: alternatives of other types, values, limits "
        "or required members; anyOf)");
  }
}

TEST(JsonSchemaLimits, OneOfIsAChoiceWhereOneAloneHolds) {
  for (const char* schemas : {
           R"({"type": "string", "minLength": 4}, {"type": "string", "maxLength": 3}, {"type": "null"})",
           R"({"type": "integer", "maximum": 2}, {"type": "number", "exclusiveMinimum": 2}, {"enum": ["a", true]}, {"const": "b"})",
           R"({"enum": [1, 9]}, {"type": "number", "minimum": 2, "maximum": 8})",
           R"({"type": "object", "properties": {"kind": {"const": "a"}, "x": {}}, "required": ["kind"]},
              {"type": "object", "properties": {"kind": {"enum": ["b", "c"]}}, "required": ["kind"]})",
           R"({"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"})",
           R"({"type": "array", "maxItems": 1}, {"type": "array", "minItems": 2}, {"anyOf": [{"type": "string"}, {"type": "boolean"}]})",
       }) {
    SCOPED_TRACE(schemas);
    EXPECT_EQ(error(fmt::format(R"({{"oneOf": [{}], "$defs": {{"a": {{"type": "object", "properties": {{"a": {{}}}}, "required": ["a"]}},
                                    "b": {{"allOf": [{{"type": "object", "properties": {{"b": {{}}}}, "required": ["b"]}}]}}}}}})",
                                schemas)),
              "no error");
  }
  EXPECT_EQ(error(R"({"type": "array", "items": {"enum": [1, 1.0]}, "uniqueItems": true, "minItems": 2})"),
            "f: #: minItems 2 of 1 values cannot be unique");
}

/// Everything that stands in one schema holds, and a choice or a reference is a part of it.
TEST(JsonSchemaLimits, KeywordsBesideAChoiceOrAReferenceHold) {
  struct Case {
    const char* schema;
    std::vector<std::string> valid, invalid;
  };
  for (
      const Case& item : std::vector<Case>{
          {R"({"$ref": "#/$defs/n", "minimum": 5, "title": "t", "$defs": {"n": {"type": "integer"}}})", {"5"}, {"4", "5.5"}},
          {R"({"allOf": [{"$ref": "#/$defs/n"}, {"maximum": 9}], "$defs": {"n": {"$ref": "#/$defs/m", "minimum": 5}, "m": {"type": "integer"}}})",
           {"5", "9"},
           {"4", "10", "5.5"}},
          {R"({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 0}]})", {"5", "-3"}, {"3", "5.5"}},
          {R"({"type": ["number", "null"], "oneOf": [{"type": "integer"}, {"type": "null"}]})", {"5", "null"}, {"5.5", "\"\""}},
          {R"({"minLength": 2, "anyOf": [{"const": "abc"}, {"type": "string", "maxLength": 3}]})",
           {"\"abc\"", "\"xy\""},
           {"\"x\"", "\"wxyz\""}},
          {R"({"enum": [1, 2, 3], "anyOf": [{"minimum": 3}, {"maximum": 1}]})", {"1", "3"}, {"2"}},
          {R"({"properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})",
           {R"({"a":1})", R"({"b":null})", R"({"a":1,"b":null})"},
           {"{}", R"({"a":"1"})"}},
          {R"({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"minimum": 5}}}]})",
           {R"({"a":5})"},
           {R"({"a":5.5})", R"({"a":4})"}},
          {R"({"title": "outer", "allOf": [{"title": "inner", "type": "boolean"}]})", {"true"}, {"null"}},
          {R"({"nullable": true, "allOf": [{"type": "boolean"}]})", {"true", "null"}, {"1"}},
          {R"({"items": {"$ref": "#/$defs/x", "minimum": 2}, "uniqueItems": true, "$defs": {"x": {"enum": [1, 2, 3]}}})",
           {"[3,2]"},
           {"[1]"}},
          {R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next": {"type": "object", "$ref": "#/$defs/node"}}}}})",
           {R"({"next":{"next":{}}})"},
           {R"({"next":1})"}}}) {
    SCOPED_TRACE(item.schema);
    const auto grammar = of_schema(item.schema);
    for (const std::string& text : item.valid) EXPECT_TRUE(matches(grammar, text)) << text;
    for (const std::string& text : item.invalid) EXPECT_FALSE(matches(grammar, text)) << text;
  }
}

TEST(JsonSchemaLimits, SchemasThatCannotHoldTogetherAreRefused) {
  EXPECT_EQ(error(R"({"type": "string", "anyOf": [{"minLength": 1}, {"type": "null"}]})"),
            "f: #/anyOf/1: no value is of type \"string\" and of type \"null\"");
  EXPECT_EQ(error(R"({"allOf": [{"minimum": 1}, {"minimum": 2}]})"),
            "f: #: allOf: the keyword 'minimum' differs between schemas that must hold together, which is not supported");
  EXPECT_EQ(error(R"({"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]})"),
            "f: #: allOf: additionalProperties of one schema beside the property 'b' of another is not supported");
  EXPECT_EQ(error(R"({"minimum": 1, "anyOf": [{"minimum": 2}]})"),
            "f: #/anyOf/0: the keyword 'minimum' differs between schemas that must hold together, which is not supported");
  EXPECT_EQ(error(R"({"type": "integer", "anyOf": [true]})"), "f: #/anyOf/0: a value of type boolean (allowed: objects)");
}

}  // namespace
}  // namespace rlx::test
