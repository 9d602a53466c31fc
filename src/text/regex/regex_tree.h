#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex/char_set.h"

namespace rlx {

/// A parsed regular expression.
struct RegexNode {
  enum class Kind : std::uint8_t {
    empty,         // matches the empty text
    set,           // one code point of `set`
    sequence,      // the children one after the other
    alternatives,  // the first child that matches, later ones when what follows fails
    repeat,        // the child `min` to `max` times
    atomic,        // the child, without going back into it
    look,          // the child matches here (after or before this place), taking nothing
    place,         // `place` holds here
  };
  enum class Greed : std::uint8_t { greedy, lazy, possessive };
  enum class Place : std::uint8_t { text_begin, text_end, last_line_end, line_begin, line_end, word_boundary, no_word_boundary };

  static constexpr std::uint32_t unbounded = UINT32_MAX;

  Kind kind = Kind::empty;
  CharSet set = {};
  std::vector<RegexNode> children = {};
  std::uint32_t min = 0, max = 0;
  Greed greed = Greed::greedy;
  bool negated = false, behind = false;  // of `look`
  Place place = Place::text_begin;
};

/// Whose syntax, where they differ: Oniguruma's, or that of ECMA-262, where \d and \w are ASCII and sets do not nest.
enum class RegexSyntax : std::uint8_t { oniguruma, ecma };

/// Parses the syntax that Oniguruma calls Ruby's, as far as patterns of tokenizers use it: sets with properties, nested sets, && and
/// ranges; groups, (?i) and (?i:...), look-around, atomic groups; greedy, lazy and possessive quantifiers; ^ $ \A \z \Z \b \B. No back
/// references. Throws Error naming `what` and the byte for anything else.
RegexNode parse_regex(std::string_view pattern, std::string_view what, RegexSyntax syntax = RegexSyntax::oniguruma);

}  // namespace rlx
