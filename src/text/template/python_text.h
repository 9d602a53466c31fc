#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

/// Values as text, as Python writes them.
namespace rlx::jinja {

/// str(value). The text lives as long as the value's memory.
std::string_view text_of(Renderer& run, const Value& value);
/// repr(value): strings in quotes.
std::string repr(Renderer& run, const Value& value);
/// The shortest digits that give the number back: 0.1, 1e-07, 1e+16, -0.0, inf, nan.
std::string float_text(double value);

struct JsonStyle {
  bool ascii = false;   // other characters as \uXXXX
  bool sorted = false;  // keys
  bool broken = false;  // one element a line, each level further by `indent`
  std::string_view indent;
  std::string_view item_separator = ", ", key_separator = ": ";
};
/// json.dumps(value). Throws Error for what JSON lacks.
std::string json_text(Renderer& run, const Value& value, const JsonStyle& style);

/// Where str.isspace() is true.
bool is_space(char32_t value);
std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// The first character in upper case, the others in lower case.
std::string capitalized(std::string_view text);
/// The text with each word changed: the longest pieces without a character that `is_between` holds for.
std::string change_words(std::string_view text, bool (*is_between)(char32_t), std::string (*change)(std::string_view word));

/// The characters of `characters` (white space if it is null) removed at one or both ends.
std::string_view stripped(std::string_view text, const std::string_view* characters, bool left, bool right);
/// str.splitlines().
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
std::string replaced(Renderer& run, std::string_view text, std::string_view old, std::string_view replacement, std::ptrdiff_t most);

/// A number from text as int(text, base) and float(text) read it; nothing for other text. Throws Error beyond 128 bits.
std::optional<Integer> parse_integer(Renderer& run, std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);
/// Truncated. Throws Error for what is not finite or beyond 128 bits.
Integer to_integer(Renderer& run, double value);

/// text % value: printf's formats.
std::string percent_format(Renderer& run, std::string_view format, const Value& value);
/// format.format(*positional, **named).
std::string brace_format(Renderer& run, std::string_view format, const Arguments& arguments);

}  // namespace rlx::jinja
