#include "formats/json/json.h"

#include <cmath>

#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::error_of;

std::string error(std::string_view text, json::Options options = {}) {
  return error_of([&] { json::parse(text, "c.json", options); });
}

TEST(Json, KeepsValuesAndTheOrderOfKeys) {
  const json::Value value = json::parse(R"( {"z": [1, -2, 2.5, true, null], "a": {"k": "\u00e9\ud83d\ude00\n"}} )", "c.json");
  EXPECT_EQ(value.dump(), "{\"z\":[1,-2,2.5,true,null],\"a\":{\"k\":\"é😀\\n\"}}");
  EXPECT_TRUE(value["z"][0].is_number_unsigned());
  EXPECT_FALSE(value["z"][1].is_number_unsigned());
}

TEST(Json, KeepsTheValuesOfALargeObjectInOrder) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += fmt::format("{}\"k{}\":[{}]", i ? "," : "", i, i);
  const json::Value value = json::parse(text + "}", "c.json");
  ASSERT_EQ(value.size(), 1000u);
  int expected = 0;
  for (const auto& [key, element] : value.items()) {
    EXPECT_EQ(key, fmt::format("k{}", expected));
    EXPECT_EQ(element, json::Value::array({expected++}));
  }
}

TEST(Json, NamesLineAndColumn) {
  EXPECT_EQ(error("{\"a\": 1,\n  \"b\": x}"), "c.json: line 2, column 8: invalid literal");
  EXPECT_EQ(error("{\"a\": 1,\n \"a\": 2}"), "c.json: line 2, column 4: duplicate key 'a'");
  EXPECT_EQ(error(""), "c.json: line 1, column 1: unexpected end of input; expected '[', '{', or a literal");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (std::string_view text :
       {"{",           "[1,]",         "{\"a\":1,}", "[1] x",      "[1][2]",   "{'a':1}",    "[01]",        "[+1]",
        "[.5]",        "[1.]",         "// c\n1",    "[1]/* c */", "[NaN]",    "[Infinity]", "[-Infinity]", "[nan]",
        "\"\\ud800\"", "\"\\udc00x\"", "\"\\u12\"",  "\"\\x\"",    "\"a\nb\"", "[1e999]",    "tru",         "\"open"})
    EXPECT_NE(error(text).find("c.json: line "), std::string::npos) << text;
}

TEST(Json, RefusesBytesThatAreNotUtf8AndByteOrderMarks) {
  for (std::string_view text : {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\""})
    EXPECT_NE(error(text).find("UTF-8"), std::string::npos);
  EXPECT_NE(error("\xEF\xBB\xBF{}").find("byte-order mark"), std::string::npos);
  EXPECT_NE(error(std::string_view("[1]\0", 4)).find("NUL"), std::string::npos);
}

TEST(Json, FindsDuplicatesThatAreWrittenWithEscapes) {
  EXPECT_NE(error(R"({"w":1,"\u0077":2})").find("duplicate key 'w'"), std::string::npos);
  EXPECT_EQ(json::parse(R"({"a":{"w":1},"b":{"w":2}})", "c.json")["b"]["w"], 2);
}

TEST(Json, LimitsTheDepth) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(json::parse(nested(64), "c.json"));
  EXPECT_EQ(error(nested(65)), "c.json: line 1, column 65: nested more than 64 deep");
  EXPECT_NE(error(nested(40000)).find("nested"), std::string::npos);
  EXPECT_NE(error(std::string(40000, '[')).find("nested"), std::string::npos);
  EXPECT_NO_THROW(json::parse(nested(40000), "c.json", {.max_depth = 50000}));
}

TEST(Json, LimitsTheSize) { EXPECT_EQ(error("[1,2,3]", {.max_bytes = 4}), "c.json: 7 bytes of JSON (at most 4 are read)"); }

TEST(Json, AcceptsNonFiniteWordsOnlyAsWholeWords) {
  const json::Options options{.allow_non_finite = true};
  const json::Value value = json::parse(R"({"a": NaN, "b": [1, Infinity, -2.5, -Infinity, "NaN \" NaN"], "NaN": 11})", "c.json", options);
  EXPECT_TRUE(std::isnan(value["a"].get<double>()));
  EXPECT_EQ(value["b"][0], 1);
  EXPECT_EQ(value["b"][1].get<double>(), INFINITY);
  EXPECT_EQ(value["b"][2], -2.5);
  EXPECT_EQ(value["b"][3].get<double>(), -INFINITY);
  EXPECT_EQ(value["b"][4], "NaN \" NaN");
  EXPECT_EQ(value["NaN"], 11);
  for (std::string_view text :
       {"[10NaN]", "[NaN5]", "[-NaN]", "[+Infinity]", "[NaN.5]", "[xNaN]", "[Infinity1]", "[Infinit]", "[Infinitye5]", "\"NaN"})
    EXPECT_NE(error(text, options).find("line 1"), std::string::npos) << text;
  EXPECT_EQ(error("[NaN, x]", options), "c.json: line 1, column 7: invalid literal");
}

TEST(Json, ErrorsStayOnOneLine) {
  for (std::string_view text : {"{\"a\\n\\u001b[2J\":1,\"a\\n\\u001b[2J\":1}", "[\"\n\"]", "[\x1b]"}) {
    const std::string message = error(text);
    for (char c : message) EXPECT_GE(c, ' ') << message;
  }
}

TEST(Json, ReadsFilesAndNamesThem) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "good.json", "{\"a\": [1]}");
  test::write_text(folder / "bad.json", "{");
  EXPECT_EQ(json::read_file(folder / "good.json")["a"][0], 1);
  EXPECT_TRUE(error_of([&] { json::read_file(folder / "bad.json"); }).starts_with((folder / "bad.json").string() + ": line 1, column 2: "));
  EXPECT_NE(error_of([&] { json::read_file(folder / "none.json"); }).find("No such file"), std::string::npos);
}

TEST(Json, QuotesStringsThatAreUtf8) {
  EXPECT_EQ(json::quote("a\"\n\x01é", "f"), "\"a\\\"\\n\\u0001é\"");
  EXPECT_EQ(error_of([] { json::quote("\xff", "f"); }), "f: is not UTF-8: byte \\xff at offset 0");
  EXPECT_EQ(json::quote("a\u2028b\u2029\u2029\u0085", "f"), "\"a\\u2028b\\u2029\\u2029\\u0085\"");
}

TEST(Json, WritesValuesOnOneLineOfAnyReader) {
  const json::Value value{{"a\u2028", "\n\u0085"}, {"b", "\xff"}};
  EXPECT_EQ(json::line(value), "{\"a\\u2028\":\"\\n\\u0085\",\"b\":\"\uFFFD\"}");
  EXPECT_EQ(json::parse(json::line(value), "line").begin().key(), "a\u2028");
}

}  // namespace
}  // namespace rlx
