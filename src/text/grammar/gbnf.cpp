#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/names.h"
#include "rlx/error.h"
#include "text/grammar/grammar_builder.h"
#include "text/unicode/unicode.h"

namespace rlx::grammar {
namespace {

constexpr int deepest_group = 100;
constexpr std::int64_t most_repetitions = 10'000;
constexpr std::size_t longest_grammar = 1 << 22;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfParser {
 public:
  GbnfParser(std::string_view text, std::string_view what) : text_(text), what_(what), compiler_(what) {}

  Grammar run() {
    if (text_.size() > longest_grammar) refuse(0, "a grammar of {} bytes (at most {} are read)", text_.size(), longest_grammar);
    for (skip_space(true); at_ < text_.size(); skip_space(true)) rule();
    for (const auto& [index, place] : used_)
      if (!compiler_.is_defined(index)) refuse(place, "rule {} is not defined", quote_name(compiler_.grammar().rules[index].name));
    const std::uint32_t root = compiler_.rule("root");
    if (!compiler_.is_defined(root)) refuse(text_.size(), "there is no rule 'root'");
    return compiler_.finish(root);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(std::size_t at, fmt::format_string<Args...> text, Args&&... args) const {
    const std::string_view before = text_.substr(0, std::min(at, text_.size()));
    const std::size_t newline = before.rfind('\n');
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    fail("{}: line {}, column {}: {}", what_, line, newline == std::string_view::npos ? before.size() + 1 : before.size() - newline,
         fmt::format(text, std::forward<Args>(args)...));
  }

  char seen() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  /// Blanks and comments; line breaks too, where the rule cannot end.
  void skip_space(bool lines) {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size()) return;
      const bool line = text_[at_] == '\n' || text_[at_] == '\r';
      if (line ? !lines : text_[at_] != ' ' && text_[at_] != '\t') return;
    }
  }

  std::string_view name() {
    const std::size_t begin = at_;
    while (is_name_character(seen())) ++at_;
    if (at_ == begin) refuse(at_, "expected the name of a rule, found {}", shown());
    return text_.substr(begin, at_ - begin);
  }

  std::string shown() const {
    if (at_ >= text_.size()) return "the end";
    return quote_name(text_.substr(at_, unicode::decode(text_.substr(at_)).bytes));
  }

  void rule() {
    const std::size_t begin = at_;
    const std::uint32_t index = compiler_.rule(name());
    skip_space(false);
    if (!text_.substr(at_).starts_with("::=")) refuse(at_, "expected '::=', found {}", shown());
    at_ += 3;
    skip_space(true);
    if (compiler_.is_defined(index)) refuse(begin, "rule {} is defined twice", quote_name(compiler_.grammar().rules[index].name));
    compiler_.define(index, alternatives(0));
    if (at_ < text_.size() && seen() != '\n' && seen() != '\r') refuse(at_, "unexpected {}", shown());
  }

  std::vector<Sequence> alternatives(int depth) {
    if (depth > deepest_group) refuse(at_, "groups are nested more than {} deep", deepest_group);
    std::vector<Sequence> out;
    out.push_back(sequence(depth));
    while (bar_follows()) {
      ++at_;
      skip_space(true);
      out.push_back(sequence(depth));
    }
    return out;
  }

  /// Whether another alternative follows, perhaps on the next line; goes there.
  bool bar_follows() {
    const std::size_t begin = at_;
    skip_space(true);
    if (seen() == '|') return true;
    at_ = begin;
    return false;
  }

  Sequence sequence(int depth) {
    Sequence out;
    for (;;) {
      Sequence piece;
      const char c = seen();
      if (c == '"') piece = literal();
      else if (c == '[') piece = {character_class()};
      else if (c == '.') ++at_, piece = {compiler_.code_point({}, true)};
      else if (c == '(') piece = {group(depth)};
      else if (is_name_character(c)) piece = {reference()};
      else return out;
      skip_space(depth > 0);
      while (repeats(seen())) piece = repetition(piece, depth);
      out.insert(out.end(), piece.begin(), piece.end());
      if (out.size() > GrammarBuilder::most_elements) refuse(at_, "a rule has more than {} elements", GrammarBuilder::most_elements);
    }
  }

  static bool repeats(char c) { return c == '*' || c == '+' || c == '?' || c == '{'; }

  Element reference() {
    const std::size_t begin = at_;
    const std::uint32_t index = compiler_.rule(name());
    used_.emplace(index, begin);
    return {Element::Kind::rule, index};
  }

  Element group(int depth) {
    ++at_;
    skip_space(true);
    std::vector<Sequence> inside = alternatives(depth + 1);
    if (seen() != ')') refuse(at_, "expected ')', found {}", shown());
    ++at_;
    return compiler_.unnamed(std::move(inside));
  }

  Sequence literal() {
    const std::size_t begin = at_++;
    std::string bytes;
    while (at_ < text_.size() && seen() != '"') unicode::append_utf8(bytes, character());
    if (at_ >= text_.size()) refuse(begin, "the text that begins here has no end (expected '\"')");
    ++at_;
    Sequence out;
    for (char c : bytes) out.push_back(compiler_.byte(static_cast<unsigned char>(c)));
    return out;
  }

  Element character_class() {
    const std::size_t begin = at_++;
    const bool negated = seen() == '^';
    if (negated) ++at_;
    std::vector<CodePoints> ranges;
    while (at_ < text_.size() && seen() != ']') {
      const std::size_t start = at_;
      const char32_t first = character();
      char32_t last = first;
      if (seen() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') ++at_, last = character();
      if (last < first) refuse(start, "a range of characters goes backwards");
      ranges.emplace_back(first, last);
    }
    if (at_ >= text_.size()) refuse(begin, "the characters that begin here have no end (expected ']')");
    ++at_;
    return compiler_.code_point(std::move(ranges), negated);
  }

  /// One character of a literal or class.
  char32_t character() {
    const unicode::Decoded next = unicode::decode(text_.substr(at_));
    if (next.value == 0xFFFD && next.bytes < 3) refuse(at_, "a byte that is not UTF-8");
    at_ += next.bytes;
    if (next.value != '\\') return next.value;
    const char c = seen();
    constexpr std::string_view plain = "nrt\\\"[]-^/", meaning = "\n\r\t\\\"[]-^/";
    ++at_;
    if (c == 'x') return hexadecimal(2);
    if (c == 'u') return hexadecimal(4);
    if (c == 'U') return hexadecimal(8);
    const auto found = plain.find(c);
    if (c == '\0' || found == std::string_view::npos)
      refuse(at_ - 1, "{} is no escape (allowed: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xhh \\uhhhh \\Uhhhhhhhh)",
             quote_name(std::string_view(&c, 1)));
    return static_cast<unsigned char>(meaning[found]);
  }

  char32_t hexadecimal(std::size_t digits) {
    const std::size_t begin = at_;
    std::uint32_t value = 0;
    for (; at_ < begin + digits; ++at_) {
      const char c = seen(), small = static_cast<char>(c | 0x20);
      const int digit = c >= '0' && c <= '9' ? c - '0' : small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
      if (digit < 0) refuse(at_, "expected {} hexadecimal digits", digits);
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) refuse(begin, "U+{:X} is no character", value);
    return value;
  }

  std::int64_t number() {
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; seen() >= '0' && seen() <= '9'; ++at_) {
      value = value * 10 + (seen() - '0');
      if (value > most_repetitions) refuse(begin, "more than {} repetitions", most_repetitions);
    }
    if (at_ == begin) refuse(at_, "expected a number, found {}", shown());
    return value;
  }

  Sequence repetition(const Sequence& piece, int depth) {
    const std::size_t begin = at_;
    const char kind = text_[at_++];
    std::int64_t least = kind == '+' ? 1 : 0, most = kind == '?' ? 1 : -1;
    if (kind == '{') {
      skip_space(false);
      least = seen() == ',' ? 0 : number();
      skip_space(false);
      most = least;
      if (seen() == ',') {
        ++at_;
        skip_space(false);
        most = seen() == '}' ? -1 : number();
        skip_space(false);
      }
      if (seen() != '}') refuse(at_, "expected '}}', found {}", shown());
      ++at_;
      if (most >= 0 && most < least) refuse(begin, "a repetition of {} to {} times", least, most);
    }
    skip_space(depth > 0);
    return compiler_.repeated(piece, least, most);
  }

  std::string_view text_, what_;
  std::size_t at_ = 0;
  GrammarBuilder compiler_;
  std::map<std::uint32_t, std::size_t> used_;  // rules, and where they are first named
};

}  // namespace

Grammar parse_gbnf(std::string_view text, std::string_view what) { return GbnfParser(text, what).run(); }

}  // namespace rlx::grammar
