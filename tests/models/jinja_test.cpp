#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/json/json.h"
#include "message.h"
#include "text/template/template.h"

namespace rlx::test {
namespace {

/// Small enough that a template without an end is refused soon.
jinja::RenderOptions small_limits() {
  jinja::RenderOptions options;
  options.limits = {.steps = 200'000, .depth = 400, .output_bytes = 1 << 20, .memory_bytes = 1 << 24};
  options.now.tm_year = 126, options.now.tm_mon = 0, options.now.tm_mday = 2;  // 2026-01-02T03:04:05, a Friday
  options.now.tm_hour = 3, options.now.tm_min = 4, options.now.tm_sec = 5, options.now.tm_wday = 5, options.now.tm_yday = 1;
  return options;
}

std::string rendered(const std::string& source, const json::Value& variables = json::Value::object()) {
  return jinja::Template::parse(source, "t").render(variables, small_limits());
}

// Recorded by tests/fixtures/jinja/make_cases.py from jinja2 3.1. Of what jinja2 refuses only the refusal binds, not its words.
TEST(Jinja, RendersAsRecordedFromJinja2) {
  const json::Value file = json::read_file(fixture("jinja/cases.json"));
  ASSERT_GT(file.at("cases").size(), 900u);
  for (const json::Value& item : file.at("cases")) {
    const auto source = item.at("template").get<std::string>();
    SCOPED_TRACE(source);
    std::string text;
    const std::string error = error_of([&] { text = rendered(source, file.at("variables")); });
    if (item.contains("error")) EXPECT_NE(error, "no error") << "jinja2: " << item.at("error") << "\nhere: " << text;
    else if (error != "no error") ADD_FAILURE() << error;
    else EXPECT_EQ(text, item.at("text").get<std::string>());
  }
}

std::string error_for(const std::string& source) {
  return error_of([&] { rendered(source); });
}

TEST(Jinja, AnErrorNamesTheTemplateTheLineAndWhatIsAllowed) {
  EXPECT_EQ(error_for("a\n{% if true %}\n{% nosuch %}").substr(0, 46), "t: line 3: unexpected tag 'nosuch' (allowed: i");
  EXPECT_EQ(error_for("\n\n{{ 1 + }}"), "t: line 3: unexpected '}}' (expected a value)");
  EXPECT_EQ(error_for("{% for x in [1] %}"), "t: line 1: unexpected the end of the template (expected 'endfor')");
  EXPECT_EQ(error_for("x\n{{ missing.name }}"), "t: line 2: 'missing' is undefined");
  EXPECT_EQ(error_for("{{ {'a': 1}.b.c }}"), "t: line 1: a value of type dict has no attribute 'b'");
  EXPECT_EQ(error_for("{{ 'x'|uper }}"), "t: line 1: there is no filter 'uper' (near: 'upper')");
  EXPECT_EQ(error_for("{{ 'x'|replace('a') }}"), "t: line 1: replace needs the argument 'new'");
  EXPECT_EQ(error_for("{{ 1 + 'a' }}"), "t: line 1: '+' is not defined for values of types int and str");
  EXPECT_EQ(error_for("\n{{ raise_exception('no system role') }}"), "t: line 2: the template refuses: no system role");
  EXPECT_EQ(error_for("{% macro m() %}\n{{ nope() }}{% endmacro %}\n{{ m() }}"), "t: line 2: 'nope' is undefined");
}

TEST(Jinja, ATemplateWithoutEndIsRefusedByTheLimitItExceeds) {
  const std::string many = "{% for a in range(1000) %}{% for b in range(1000) %}";
  EXPECT_EQ(error_for(many + "{% endfor %}{% endfor %}"), "t: line 1: the template takes more than 200000 steps");
  EXPECT_EQ(error_for(many + "xxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}"), "t: line 1: the template writes more than 1048576 bytes");
  EXPECT_EQ(error_for("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "t: line 1: nested more than 400 deep while rendering");
  EXPECT_EQ(error_for("{{ 'x' * 10000000000 }}"), "t: the template makes more than 16777216 bytes of values");
  EXPECT_EQ(error_for("{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
            "t: the template makes more than 16777216 bytes of values");
  EXPECT_EQ(error_for("{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}"),
            "t: line 1: the template takes more than 200000 steps");
  EXPECT_EQ(error_for("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
            "t: line 1: expressions and blocks are nested more than 100 deep");
}

TEST(Jinja, ANamespaceThatHoldsItselfHasNoTextAndLeaksNothing) {
  EXPECT_EQ(error_for("{% set ns = namespace() %}{% set ns.me = ns %}{{ [ns] }}"), "t: line 1: a namespace has no text");
}

TEST(Jinja, IntegersStayExactAndWiderOnesAreRefused) {
  EXPECT_EQ(rendered("{{ 2**126 }} {{ 9007199254740993 * 9007199254740993 }}"),
            "85070591730234615865843651857942052864 81129638414606699710187514626049");
  EXPECT_EQ(error_for("{{ 2**127 }}"), "t: line 1: an integer does not fit 128 bits");
  EXPECT_EQ(error_of([] { json::parse("[123456789012345678901]", "f", {.wide_integers = false}); }),
            "f: line 1, column 23: the integer '123456789012345678901' does not fit 64 bits");
}

}  // namespace
}  // namespace rlx::test
