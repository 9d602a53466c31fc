#include "text/grammar/pattern_rules.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.h"
#include "rlx/error.h"
#include "text/regex/regex_tree.h"

namespace rlx::grammar {
namespace {

using Kind = RegexNode::Kind;
using Place = RegexNode::Place;

bool begins(const RegexNode& node) {
  return node.kind == Kind::place && (node.place == Place::line_begin || node.place == Place::text_begin);
}
bool ends(const RegexNode& node) { return node.kind == Kind::place && (node.place == Place::line_end || node.place == Place::text_end); }

/// Whether `test` holds of it or of anything in it.
bool any_node(const RegexNode& node, bool (*test)(const RegexNode&)) {
  return test(node) || std::ranges::any_of(node.children, [&](const RegexNode& child) { return any_node(child, test); });
}

/// How many code points a match has.
struct Length {
  std::int64_t least = 0;
  std::optional<std::int64_t> most = 0;  // none: any number
};

constexpr std::int64_t no_text_is_longer = std::numeric_limits<std::int64_t>::max();

Length length_of(const RegexNode& node) {
  if (node.kind == Kind::set) return {1, 1};
  Length result;
  if (node.kind == Kind::repeat) {
    const Length child = length_of(node.children[0]);
    result.least = checked_mul<std::int64_t>(child.least, node.min).value_or(no_text_is_longer);
    if (!child.most || (node.max == RegexNode::unbounded && *child.most > 0)) result.most = std::nullopt;
    else result.most = checked_mul<std::int64_t>(*child.most, node.max == RegexNode::unbounded ? 0 : node.max);
    return result;
  }
  for (bool first = true; const RegexNode& child : node.children) {
    const Length one = length_of(child);
    if (node.kind == Kind::alternatives) {
      result.least = first ? one.least : std::min(result.least, one.least);
      if (first) result.most = one.most;
      else result.most = result.most && one.most ? std::optional(std::max(*result.most, *one.most)) : std::nullopt;
    } else {
      result.least = checked_add(result.least, one.least).value_or(no_text_is_longer);
      result.most = result.most && one.most ? checked_add(*result.most, *one.most) : std::nullopt;
    }
    first = false;
  }
  return result;
}

/// The class of characters that JSON strings hold as they are.
std::string plain_class(const CharSet& set) {
  std::string text;
  for (const auto& [first, last] : set.ranges()) {
    text += fmt::format("\\U{:08X}", static_cast<std::uint32_t>(first));
    if (last > first) text += fmt::format("-\\U{:08X}", static_cast<std::uint32_t>(last));
  }
  return fmt::format("[{}]", text);
}

/// Those that stand there behind a backslash.
void add_escaped(const CharSet& set, std::vector<std::string>& alternatives) {
  constexpr std::string_view characters = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
  for (char32_t c = 0; c <= '\\'; ++c) {
    if (!set.contains(c) || (c >= 0x20 && c != '"' && c != '\\')) continue;
    const std::size_t known = characters.find(static_cast<char>(c));
    if (c != 0 && known != std::string_view::npos) alternatives.push_back(fmt::format(R"("\\\x{:02X}")", static_cast<int>(letters[known])));
    else alternatives.push_back(fmt::format(R"("\\u{:04x}")", static_cast<std::uint32_t>(c)));
  }
}

class PatternWriter {
 public:
  PatternWriter(const AddRule& add_rule, const std::string& place) : add_rule_(add_rule), place_(place) {}

  /// What matches the node; where it is `first` (`last`) the text before (behind) the match is written too, unless an anchor stands there.
  std::string write(const RegexNode& node, bool first, bool last) {
    switch (node.kind) {
      case Kind::alternatives: return write_alternatives(node, first, last);
      case Kind::sequence: return write_sequence(node, first, last);
      case Kind::empty: return between(R"("")", first, last);
      case Kind::set: return between(write_set(node.set), first, last);
      case Kind::repeat: return between(write_repeat(node), first, last);
      case Kind::place: return write_sequence({.kind = Kind::sequence, .children = {node}}, first, last);
      case Kind::atomic:
      case Kind::look: break;
    }
    fail("{}: pattern: look-around and atomic groups are not supported", place_);
  }

 private:
  static std::string between(std::string inner, bool first, bool last) {
    return fmt::format("{}{}{}", first ? "char* " : "", inner, last ? " char*" : "");
  }

  std::string write_alternatives(const RegexNode& node, bool first, bool last) {
    std::vector<std::string> alternatives;
    for (const RegexNode& child : node.children) alternatives.push_back(write(child, first, last));
    return fmt::format("({})", fmt::join(alternatives, " | "));
  }

  /// An anchor inside the first or last child speaks for the sequence.
  std::string write_sequence(const RegexNode& node, bool first, bool last) {
    std::size_t begin = 0, end = node.children.size();
    while (begin < end && first && begins(node.children[begin])) first = false, ++begin;
    while (end > begin && last && ends(node.children[end - 1])) last = false, --end;
    std::vector<std::string> parts;
    for (std::size_t i = begin; i < end; ++i) {
      const RegexNode& child = node.children[i];
      const bool at_first = i == begin && first && any_node(child, begins), at_last = i + 1 == end && last && any_node(child, ends);
      if (child.kind == Kind::place) fail("{}: pattern: anchors are supported at the ends of the pattern; word boundaries are not", place_);
      parts.push_back(write(child, at_first, at_last));
      first = first && !at_first;
      last = last && !at_last;
    }
    if (parts.empty()) parts.emplace_back(R"("")");
    return between(fmt::format("{}", fmt::join(parts, " ")), first, last);
  }

  std::string write_repeat(const RegexNode& node) {
    const std::string most = node.max == RegexNode::unbounded ? "" : fmt::format("{}", node.max);
    return fmt::format("({}){{{},{}}}", write(node.children[0], false, false), node.min, most);
  }

  /// A rule for each set, however often it stands there.
  std::string write_set(const CharSet& set) {
    std::vector<std::string> alternatives;
    // Not those with escapes, nor halves of pairs.
    const CharSet plain = set.intersection(CharSet({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0xD7FF}, {0xE000, 0x10FFFF}}));
    if (!plain.empty()) alternatives.push_back(plain_class(plain));
    add_escaped(set, alternatives);
    if (alternatives.empty()) fail("{}: pattern: a set of characters is empty", place_);
    const std::string body = fmt::format("{}", fmt::join(alternatives, " | "));
    const auto [known, is_new] = sets_.try_emplace(body);
    if (is_new) known->second = add_rule_(body);
    return known->second;
  }

  const AddRule& add_rule_;
  const std::string& place_;
  std::map<std::string, std::string> sets_;
};

/// The one repeated set that stands between both anchors, as in ^[a-z]+$.
RegexNode* only_repeat(RegexNode& node) {
  if (node.kind != Kind::sequence || node.children.size() != 3 || !begins(node.children[0]) || !ends(node.children[2])) return nullptr;
  RegexNode& inner = node.children[1];
  return inner.kind == Kind::repeat && inner.children[0].kind == Kind::set ? &inner : nullptr;
}

/// Makes the pattern say the length too, or fails where it does not.
void bound_length(RegexNode& tree, std::int64_t least, std::optional<std::int64_t> most, const std::string& place) {
  if (RegexNode* repeat = only_repeat(tree)) {
    repeat->min = std::max(repeat->min, static_cast<std::uint32_t>(least));
    if (most) repeat->max = std::min(repeat->max, static_cast<std::uint32_t>(*most));
    if (repeat->min > repeat->max) fail("{}: no text has the length and matches the pattern", place);
    return;
  }
  const bool anchored =
      tree.kind == Kind::sequence && tree.children.size() >= 2 && begins(tree.children.front()) && ends(tree.children.back());
  const Length length = length_of(tree);
  if (length.least < least) fail("{}: minLength {} beside this pattern, which allows {}, is not supported", place, least, length.least);
  if (most && (!anchored || !length.most || *length.most > *most))
    fail("{}: maxLength {} beside this pattern, which allows more, is not supported", place, *most);
}

}  // namespace

std::string pattern_rules(std::string_view pattern, std::int64_t least, std::optional<std::int64_t> most, const AddRule& add_rule,
                          const std::string& place) {
  RegexNode tree = parse_regex(pattern, place, RegexSyntax::ecma);
  bound_length(tree, least, most, place);
  return PatternWriter(add_rule, place).write(tree, true, true);
}

}  // namespace rlx::grammar
