#include <array>
#include <optional>
#include <utility>

#include "rlx/error.h"
#include "text/regex/regex_tree.h"
#include "text/unicode/unicode.h"

namespace rlx {
namespace {

using Kind = RegexNode::Kind;

constexpr int max_depth = 60;
constexpr int max_stacked = 60;
constexpr std::uint32_t max_count = 1000;
constexpr std::size_t max_pattern = 1 << 16;

CharSet either_case(char32_t value) {
  CharSet set(value, value);
  std::array<char32_t, 2> lower{};
  if (unicode::lowercase(value, lower) == 1) set.add_range(lower[0], lower[0]);
  const char32_t upper = unicode::uppercase(lower[0]);
  set.add_range(upper, upper);
  // Letters that only their folding makes equal: long s, the Kelvin and Angstrom signs.
  if (lower[0] == 's' || value == 0x17F) set.add(CharSet({{'S', 'S'}, {'s', 's'}, {0x17F, 0x17F}}));
  if (lower[0] == 'k') set.add_range(0x212A, 0x212A);
  if (lower[0] == 0xE5) set.add_range(0x212B, 0x212B);
  return set;
}

class RegexParser {
 public:
  RegexParser(std::string_view pattern, std::string_view what, RegexSyntax syntax)
      : what_(what), text_(unicode::to_utf32(pattern)), ecma_(syntax == RegexSyntax::ecma) {
    if (pattern.size() > max_pattern) refuse("is longer than 65536 bytes");
  }

  RegexNode parse() {
    RegexNode result = alternatives(0);
    if (!at_end()) refuse("')' closes no group");
    return result;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const { fail("{}: the pattern {}, at code point {}", what_, why, at_); }

  bool at_end() const { return at_ == text_.size(); }
  char32_t peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0'; }
  char32_t take() {
    if (at_end()) refuse("ends too early");
    return text_[at_++];
  }
  bool accept(std::u32string_view expected) {
    if (std::u32string_view(text_).substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  RegexNode alternatives(int depth) {
    if (depth > max_depth) refuse("is nested too deeply");
    const bool outer_case = ignore_case_;
    RegexNode result = {.kind = Kind::alternatives};
    do result.children.push_back(sequence(depth));
    while (accept(U"|"));
    ignore_case_ = outer_case;
    return result.children.size() == 1 ? std::move(result.children[0]) : std::move(result);
  }

  RegexNode sequence(int depth) {
    RegexNode result = {.kind = Kind::sequence};
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (flag_group()) continue;
      result.children.push_back(repeated(atom(depth)));
    }
    return result;
  }

  /// (?i) and (?-i), which last until the end of the group.
  bool flag_group() {
    if (accept(U"(?i)")) ignore_case_ = true;
    else if (accept(U"(?-i)")) ignore_case_ = false;
    else return false;
    return true;
  }

  RegexNode repeated(RegexNode child) {
    for (bool stacked = false;; stacked = true) {
      std::uint32_t min = 0;
      std::uint32_t max = RegexNode::unbounded;
      bool interval = false;
      if (accept(U"*")) {
      } else if (accept(U"+")) min = 1;
      else if (accept(U"?")) max = 1;
      else if (counts(min, max)) interval = true;
      else return child;
      if (stacked && ++stacked_ > max_stacked) refuse("is nested too deeply");
      RegexNode result = {.kind = Kind::repeat, .min = min, .max = max};
      if (accept(U"?")) result.greed = RegexNode::Greed::lazy;
      else if (!interval && accept(U"+")) result.greed = RegexNode::Greed::possessive;  // after {}, a + repeats once more
      result.children.push_back(std::move(child));
      child = std::move(result);
    }
  }

  /// {n}, {n,}, {,m} or {n,m}; anything else after a brace is a brace.
  bool counts(std::uint32_t& min, std::uint32_t& max) {
    const std::size_t start = at_;
    const auto number = [this]() -> std::optional<std::uint32_t> {
      std::optional<std::uint32_t> value;
      while (peek() >= '0' && peek() <= '9') {
        value = value.value_or(0) * 10 + static_cast<std::uint32_t>(take() - '0');
        if (*value > max_count) refuse("repeats more than 1000 times");
      }
      return value;
    };
    if (!accept(U"{")) return false;
    const auto low = number();
    const bool range = accept(U",");
    const auto high = range ? number() : low;
    if ((!low && (!high || ecma_)) || !accept(U"}")) {
      at_ = start;
      return false;
    }
    min = low.value_or(0);
    max = high.value_or(RegexNode::unbounded);
    if (min > max) refuse("has a count whose minimum is over its maximum");
    return true;
  }

  RegexNode atom(int depth) {
    switch (const char32_t c = take()) {
      case '(': return group(depth);
      case '[': return of_set(bracket(depth));
      case '.': return of_set((ecma_ ? CharSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}) : CharSet('\n', '\n')).complement());
      case '^': return {.kind = Kind::place, .place = RegexNode::Place::line_begin};
      case '$': return {.kind = Kind::place, .place = RegexNode::Place::line_end};
      case '\\': return escape();
      case '*':
      case '+':
      case '?': refuse("repeats nothing");
      default: return literal(c);
    }
  }

  static RegexNode of_set(CharSet set) { return {.kind = Kind::set, .set = std::move(set)}; }
  RegexNode literal(char32_t c) const { return of_set(ignore_case_ ? either_case(c) : CharSet(c, c)); }

  RegexNode group(int depth) {
    RegexNode result;
    const bool outer_case = ignore_case_;
    if (accept(U"?:")) {
    } else if (accept(U"?i:")) ignore_case_ = true;
    else if (accept(U"?-i:")) ignore_case_ = false;
    else if (accept(U"?>")) result = {.kind = Kind::atomic};
    else if (accept(U"?=")) result = {.kind = Kind::look};
    else if (accept(U"?!")) result = {.kind = Kind::look, .negated = true};
    else if (accept(U"?<=")) result = {.kind = Kind::look, .behind = true};
    else if (accept(U"?<!")) result = {.kind = Kind::look, .negated = true, .behind = true};
    else if (peek() == '?') refuse("has a kind of group that is not supported");
    RegexNode inner = alternatives(depth + 1);
    ignore_case_ = outer_case;
    if (!accept(U")")) refuse("has a group that is not closed");
    if (result.kind == Kind::empty) return inner;
    result.children.push_back(std::move(inner));
    return result;
  }

  CharSet digits() const { return ecma_ ? CharSet('0', '9') : CharSet::digits(); }
  CharSet words(bool in_set) const {
    CharSet set;
    if (ecma_) return CharSet({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
    if (!in_set) return CharSet::words();
    CharSet::of_posix_class("word", set);
    return set;
  }

  /// A class such as \s, if `c` names one. Within a set, words are those of [:word:].
  std::optional<CharSet> named_class(char32_t c, bool in_set) {
    switch (c) {
      case 'd': return digits();
      case 'D': return digits().complement();
      case 'w': return words(in_set);
      case 'W': return words(in_set).complement();
      case 's': return CharSet::spaces();
      case 'S': return CharSet::spaces().complement();
      case 'h': return CharSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
      case 'p': return property(false);
      case 'P': return property(true);
      default: return std::nullopt;
    }
  }

  CharSet property(bool negated) {
    std::string name;
    if (!accept(U"{")) name += static_cast<char>(take() & 0x7F);
    else {
      if (accept(U"^")) negated = !negated;
      while (peek() != '}') name += static_cast<char>(take() & 0x7F);
      take();
    }
    CharSet set;
    if (!CharSet::of_property(name, set)) refuse(fmt::format("asks for the property '{}', which is not supported", name));
    return negated ? set.complement() : set;
  }

  /// The code point that an escape stands for, after the backslash and `c`.
  char32_t escaped(char32_t c) {
    switch (c) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'f': return '\f';
      case 'v': return '\v';
      case 'a': return '\a';
      case 'e': return 0x1B;
      case '0': return 0;
      case 'x': return accept(U"{") ? hexadecimal(8, true) : hexadecimal(2, false);
      case 'u': return hexadecimal(4, false);
      default: break;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) refuse("has an escape that is not supported");
    return c;
  }

  char32_t hexadecimal(int digits, bool braced) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = peek();
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!letter && !(c >= '0' && c <= '9')) break;
      value = value * 16 + (letter ? (c | 0x20) - 'a' + 10 : c - '0');
      ++at_;
    }
    if (braced && !accept(U"}")) refuse("has an escape that is not closed");
    if (value > 0x10FFFF) refuse("names a code point over U+10FFFF");
    return value;
  }

  RegexNode escape() {
    using Place = RegexNode::Place;
    const char32_t c = take();
    switch (c) {
      case 'A': return {.kind = Kind::place, .place = Place::text_begin};
      case 'z': return {.kind = Kind::place, .place = Place::text_end};
      case 'Z': return {.kind = Kind::place, .place = Place::last_line_end};
      case 'b': return {.kind = Kind::place, .place = Place::word_boundary};
      case 'B': return {.kind = Kind::place, .place = Place::no_word_boundary};
      default: break;
    }
    if (auto set = named_class(c, false)) return of_set(std::move(*set));
    return literal(escaped(c));
  }

  /// After '['.
  CharSet bracket(int depth) {
    if (depth > max_depth) refuse("is nested too deeply");
    const bool negated = accept(U"^");
    CharSet set;
    std::optional<CharSet> left;  // of &&
    for (bool first = !ecma_; first || peek() != ']'; first = false) {
      if (ecma_) {
        set.add(member());
      } else if (accept(U"&&")) {
        left = left ? left->intersection(set) : set;
        set = {};
      } else if (auto posix = posix_class()) {
        set.add(*posix);
      } else if (accept(U"[")) {
        set.add(bracket(depth + 1));
      } else {
        set.add(member());
      }
    }
    take();
    if (left) set = left->intersection(set);
    return negated ? set.complement() : set;
  }

  /// A class such as [:punct:], which stands within a set of Oniguruma's.
  std::optional<CharSet> posix_class() {
    if (peek() != '[' || peek(1) != ':') return std::nullopt;
    const std::size_t begin = at_ + 2, end = text_.find_first_of(U":]", begin);
    if (end == std::u32string::npos || !text_.substr(end).starts_with(U":]")) return std::nullopt;
    std::string name;
    for (const char32_t c : text_.substr(begin, end - begin)) unicode::append_utf8(name, c);
    const bool negated = name.starts_with('^');
    CharSet set;
    if (!CharSet::of_posix_class(std::string_view(name).substr(negated ? 1 : 0), set))
      refuse(fmt::format("asks for the class [:{}:], which is not supported", name));
    at_ = end + 2;
    return negated ? set.complement() : set;
  }

  /// A code point, a class or a range in a set.
  CharSet member() {
    char32_t first = take();
    if (first == '\\') {
      const char32_t c = take();
      if (auto set = named_class(c, true)) return std::move(*set);
      first = c == 'b' ? 8 : escaped(c);
    }
    char32_t last = first;
    if (peek() == '-' && at_ + 1 < text_.size() && peek(1) != ']' && (ecma_ || peek(1) != '[')) {
      take();
      last = take();
      if (last == '\\') last = escaped(take());
      if (last < first) refuse("has a range whose end comes before its start");
    }
    CharSet set(first, last);
    if (ignore_case_ && last - first < 256) {
      for (char32_t c = first; c <= last; ++c) set.add(either_case(c));
    }
    return set;
  }

  std::string_view what_;
  std::u32string text_;
  std::size_t at_ = 0;
  int stacked_ = 0;  // quantifiers behind quantifiers, in the whole pattern: each is a level more, whatever groups they stand in
  bool ecma_;
  bool ignore_case_ = false;
};

}  // namespace

RegexNode parse_regex(std::string_view pattern, std::string_view what, RegexSyntax syntax) {
  return RegexParser(pattern, what, syntax).parse();
}

}  // namespace rlx
