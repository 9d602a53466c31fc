#include "text/grammar/json_rules.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rlx::grammar {
namespace {

using NamedRule = std::pair<std::string_view, std::string_view>;

/// White space is short, so that no model fills its answer with it.
constexpr std::array<NamedRule, 11> rules = {{
    {"ws", R"([ \t\n\r]{0,20})"},
    {"char", R"([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))"},
    {"string", R"("\"" char* "\"")"},
    {"integer", R"("-"? ("0" | [1-9] [0-9]{0,17}))"},
    {"number", R"(integer ("." [0-9]{1,17})? ([eE] [-+]? [0-9]{1,3})?)"},
    {"boolean", R"("true" | "false")"},
    {"null", R"("null")"},
    {"array", R"("[" ws (value (ws "," ws value)*)? ws "]")"},
    {"object", R"("{" ws (member (ws "," ws member)*)? ws "}")"},
    {"member", R"(string ws ":" ws value)"},
    {"value", "object | array | string | number | boolean | null"},
}};

/// RFC 3339 (dates and times, its appendix A for durations), 9562 (uuid), 5321 (email), 1123 (hostname), 4291 (ipv6), 3986 (uri). Names are
/// a little shorter than they might be, so that no sum of parts is too long.
constexpr std::array<NamedRule, 10> formats = {{
    {"date", R"(days | leap-day)"},
    {"time",
     R"(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,9})? ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]))"},
    {"date-time", R"(date "T" time)"},
    {"duration", R"("P" ([0-9]{1,9} "W" | in-days in-time? | in-time))"},
    {"uuid", R"([0-9a-fA-F]{8} ("-" [0-9a-fA-F]{4}){3} "-" [0-9a-fA-F]{12})"},
    {"email", R"(atom ("." atom){0,2} "@" hostname)"},
    {"hostname", R"(label ("." label){0,6})"},
    {"ipv4", R"(octet ("." octet){3})"},
    {"ipv6",
     R"((h16 ":"){6} ls32 | "::" (h16 ":"){5} ls32 | h16? "::" (h16 ":"){4} ls32 | ((h16 ":"){0,1} h16)? "::" (h16 ":"){3} ls32 | )"
     R"(((h16 ":"){0,2} h16)? "::" (h16 ":"){2} ls32 | ((h16 ":"){0,3} h16)? "::" h16 ":" ls32 | ((h16 ":"){0,4} h16)? "::" ls32 | )"
     R"(((h16 ":"){0,5} h16)? "::" h16 | ((h16 ":"){0,6} h16)? "::")"},
    {"uri", R"([a-zA-Z] [a-zA-Z0-9+.\-]{0,30} ":" ("//" authority ("/" pchar*)* | "/"? (pchar+ ("/" pchar*)*)?) )"
            R"(("?" (pchar | [/?])*)? ("#" (pchar | [/?])*)?)"},
}};

constexpr std::array<NamedRule, 14> parts = {{
    {"days", R"([0-9]{4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) | )"
             R"(("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])))"},
    {"leap-day", R"(([0-9]{2} ("0" [48] | [2468] [048] | [13579] [26]) | ("0" [048] | [2468] [048] | [13579] [26]) "00") "-02-29")"},
    {"in-days", R"([0-9]{1,9} ("D" | "M" ([0-9]{1,9} "D")? | "Y" ([0-9]{1,9} "M" ([0-9]{1,9} "D")?)?))"},
    {"in-time", R"("T" [0-9]{1,9} ("S" | "M" ([0-9]{1,9} "S")? | "H" ([0-9]{1,9} "M" ([0-9]{1,9} "S")?)?))"},
    {"atom", R"([a-zA-Z0-9!#$%&'*+/=?\^_`{|}~\-]{1,20})"},
    {"label", R"([a-zA-Z0-9] ([a-zA-Z0-9\-]{0,29} [a-zA-Z0-9])?)"},
    {"octet", R"("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9] [0-9] | [1-9]? [0-9])"},
    {"h16", R"([0-9a-fA-F]{1,4})"},
    {"ls32", R"(h16 ":" h16 | ipv4)"},
    {"authority", R"((userinfo "@")? ("[" ipv6 "]" | name-char*) (":" [0-9]{0,5})?)"},
    {"userinfo", R"((name-char | ":")*)"},
    {"name-char", R"([a-zA-Z0-9._~!$&'()*+,;=\-] | percent)"},
    {"pchar", R"(name-char | [:@])"},
    {"percent", R"("%" [0-9a-fA-F]{2})"},
}};

std::string text_of(std::span<const NamedRule> some) {
  std::string text;
  for (const auto& [name, rule] : some) text += fmt::format("{} ::= {}\n", name, rule);
  return text;
}

}  // namespace

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    else out += c;
  }
  return out + '"';
}

std::string json_rules() { return text_of(rules); }

std::string_view format_rule(std::string_view format) {
  for (const auto& [name, rule] : formats)
    if (name == format) return name;
  return {};
}

std::string format_rules() { return text_of(formats) + text_of(parts); }

std::string format_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, rule] : formats) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace rlx::grammar
