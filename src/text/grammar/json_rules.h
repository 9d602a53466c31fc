#pragma once
#include <string>
#include <string_view>

namespace rlx::grammar {

/// GBNF for exactly this text.
std::string literal(std::string_view text);

/// Rules of GBNF for JSON as such: ws, char, string, integer, number, boolean, null, array, object, value.
std::string json_rules();

/// What stands between the quotes of a string of a `format`; empty for a format that is not known. `format_rules` must be there too.
std::string_view format_rule(std::string_view format);
std::string format_rules();
/// "date, time, ...".
std::string format_names();

}  // namespace rlx::grammar
