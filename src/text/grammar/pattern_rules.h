#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/grammar/number_rules.h"

namespace rlx::grammar {

/// GBNF for the inside of JSON strings whose text has a part that matches a regular expression of ECMA-262, as JSON schemas mean `pattern`:
/// `^` and `$` are the ends of the text. `least` and `most` (none: any) bound its code points. Throws Error, after `place`, for what a
/// grammar cannot say: look-around, word boundaries, anchors inside repetitions, and a length that the pattern does not imply.
std::string pattern_rules(std::string_view pattern, std::int64_t least, std::optional<std::int64_t> most, const AddRule& add_rule,
                          const std::string& place);

}  // namespace rlx::grammar
