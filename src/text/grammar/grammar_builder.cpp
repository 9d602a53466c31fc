#include "text/grammar/grammar_builder.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/names.h"
#include "rlx/error.h"
#include "text/unicode/unicode.h"

namespace rlx::grammar {
namespace {

/// Which rules give a text, alone or together with others: a text of bytes that `allowed` holds, so of none the empty text.
std::vector<bool> rules_with_text(const Grammar& grammar, const ByteSet& allowed) {
  using Alternative = std::pair<std::uint32_t, std::uint32_t>;  // its rule, and the first element that is not known to give a text
  std::vector<bool> found(grammar.rules.size(), false);
  std::vector<std::vector<Alternative>> waiting(grammar.rules.size());  // for each rule
  std::vector<Alternative> next;
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule)
    for (const std::uint32_t at : grammar.rules[rule].alternatives) next.emplace_back(rule, at);
  while (!next.empty()) {
    const auto [rule, at] = next.back();
    next.pop_back();
    const auto [kind, index] = grammar.elements[at];
    if (kind == Element::Kind::end && !found[rule]) {
      found[rule] = true;
      next.insert(next.end(), waiting[rule].begin(), waiting[rule].end());
    } else if (kind == Element::Kind::rule && !found[index]) {
      waiting[index].emplace_back(rule, at);
    } else if (kind == Element::Kind::rule || (kind == Element::Kind::bytes && (grammar.sets[index] & allowed).any())) {
      next.emplace_back(rule, at + 1);
    }
  }
  return found;
}

struct Edge {
  std::uint32_t to;
  bool returns;  // something stands behind it, so that a stack grows
};

/// The rules that each rule may enter before any byte is read.
std::vector<std::vector<Edge>> first_rules(const Grammar& grammar) {
  const std::vector<bool> nullable = rules_with_text(grammar, {});
  std::vector<std::vector<Edge>> edges(grammar.rules.size());
  for (std::size_t rule = 0; rule < grammar.rules.size(); ++rule) {
    for (std::uint32_t at : grammar.rules[rule].alternatives) {
      for (; grammar.elements[at].kind == Element::Kind::rule; ++at) {
        edges[rule].push_back({grammar.elements[at].index, grammar.elements[at + 1].kind != Element::Kind::end});
        if (!nullable[grammar.elements[at].index]) break;
      }
    }
  }
  return edges;
}

/// The strongly connected component of each rule (Tarjan 1972, with a stack of its own: grammars may be deep).
std::vector<std::size_t> components(const std::vector<std::vector<Edge>>& edges) {
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> order(edges.size(), none), low(edges.size()), component(edges.size(), none), open;
  std::size_t visited = 0, found = 0;
  std::vector<std::pair<std::size_t, std::size_t>> calls;  // a rule, and its next edge
  for (std::size_t start = 0; start < edges.size(); ++start) {
    if (order[start] != none) continue;
    calls.emplace_back(start, 0);
    while (!calls.empty()) {
      auto& [rule, next] = calls.back();
      if (next == 0) order[rule] = low[rule] = visited++, open.push_back(rule);
      if (next < edges[rule].size()) {
        const std::size_t to = edges[rule][next++].to;
        if (order[to] == none) calls.emplace_back(to, 0);
        else if (component[to] == none) low[rule] = std::min(low[rule], order[to]);
        continue;
      }
      const std::size_t done = rule;
      calls.pop_back();
      if (!calls.empty()) low[calls.back().first] = std::min(low[calls.back().first], low[done]);
      if (low[done] != order[done]) continue;
      for (std::size_t member = none; member != done; open.pop_back()) member = open.back(), component[member] = found;
      ++found;
    }
  }
  return component;
}

std::string encoded(char32_t value) {
  std::string bytes;
  unicode::append_utf8(bytes, value);
  return bytes;
}

}  // namespace

std::uint32_t GrammarBuilder::rule(std::string_view name) {
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  if (grammar_.rules.size() >= most_rules) fail("{}: more than {} rules", what_, most_rules);
  const auto index = static_cast<std::uint32_t>(grammar_.rules.size());
  grammar_.rules.push_back({std::string(name), {}});
  by_name_.emplace(name, index);
  return index;
}

Element GrammarBuilder::unnamed(std::vector<Sequence> alternatives) {
  if (grammar_.rules.size() >= most_rules) fail("{}: more than {} rules", what_, most_rules);
  const auto index = static_cast<std::uint32_t>(grammar_.rules.size());
  grammar_.rules.push_back({});
  define(index, std::move(alternatives));
  return {Element::Kind::rule, index};
}

void GrammarBuilder::define(std::uint32_t rule, std::vector<Sequence> alternatives) {
  for (const Sequence& alternative : alternatives) {
    if (grammar_.elements.size() + alternative.size() >= most_elements) fail("{}: more than {} elements", what_, most_elements);
    grammar_.rules[rule].alternatives.push_back(static_cast<std::uint32_t>(grammar_.elements.size()));
    grammar_.elements.insert(grammar_.elements.end(), alternative.begin(), alternative.end());
    grammar_.elements.push_back({});
  }
}

Element GrammarBuilder::set(const ByteSet& bytes) {
  const auto [known, is_new] = known_sets_.emplace(bytes.to_string(), static_cast<std::uint32_t>(grammar_.sets.size()));
  if (is_new) grammar_.sets.push_back(bytes);
  return {Element::Kind::bytes, known->second};
}

Element GrammarBuilder::byte(unsigned char value) { return set(ByteSet().set(value)); }

/// Code points with as many bytes, as alternatives whose bytes vary independently.
void GrammarBuilder::add_range(char32_t first, char32_t last, std::vector<Sequence>& alternatives) {
  const std::string low = encoded(first), high = encoded(last);
  std::size_t same = 0;
  while (same < low.size() && low[same] == high[same]) ++same;
  // The bits of the bytes behind the first that differs: a range is a box where they go from all zeros to all ones.
  const std::size_t behind = same < low.size() ? 6 * (low.size() - same - 1) : 0;
  const char32_t tail = (char32_t{1} << behind) - 1;
  if (behind > 0 && (first & tail) != 0) {
    add_range(first, first | tail, alternatives);
    return add_range((first | tail) + 1, last, alternatives);
  }
  if (behind > 0 && (last & tail) != tail) {
    add_range(first, (last & ~tail) - 1, alternatives);
    return add_range(last & ~tail, last, alternatives);
  }
  Sequence bytes;
  for (std::size_t i = 0; i < low.size(); ++i) {
    ByteSet allowed;
    for (unsigned value = static_cast<unsigned char>(low[i]); value <= static_cast<unsigned char>(high[i]); ++value) allowed.set(value);
    bytes.push_back(set(allowed));
  }
  alternatives.push_back(std::move(bytes));
}

Element GrammarBuilder::code_point(std::vector<CodePoints> ranges, bool negated) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<CodePoints> wanted;
  char32_t next = 0;  // of those that no range so far covers
  for (const auto& [first, last] : ranges) {
    if (negated && first > next) wanted.emplace_back(next, first - 1);
    if (!negated && last >= next) wanted.emplace_back(std::max(first, next), last);
    next = std::max<char32_t>(next, last + 1);
  }
  if (negated && next <= 0x10FFFF) wanted.emplace_back(next, 0x10FFFF);
  ByteSet ascii;
  std::vector<Sequence> alternatives;
  // Numbers of bytes change at 80, 800 and 10000; D800 to DFFF are no characters.
  constexpr std::array<CodePoints, 4> parts = {{{0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}}};
  for (const auto& [first, last] : wanted) {
    for (char32_t value = first; value <= std::min<char32_t>(last, 0x7F); ++value) ascii.set(value);
    for (const auto& [low, high] : parts)
      if (std::max(first, low) <= std::min(last, high)) add_range(std::max(first, low), std::min(last, high), alternatives);
  }
  if (alternatives.empty()) return set(ascii);
  if (ascii.any()) alternatives.push_back({set(ascii)});
  return unnamed(std::move(alternatives));
}

Sequence GrammarBuilder::repeated(const Sequence& piece, std::int64_t least, std::int64_t most) {
  Sequence out;
  if (static_cast<std::size_t>(std::max(least, most)) * (piece.size() + 1) > most_elements)
    fail("{}: more than {} elements", what_, most_elements);
  for (std::int64_t i = 0; i < least; ++i) out.insert(out.end(), piece.begin(), piece.end());
  if (most < 0) {
    const Element loop = unnamed({{}});
    Sequence again = piece;
    again.push_back(loop);
    define(loop.index, {again});
    out.push_back(loop);
  }
  // (piece (piece (piece)?)?)?, from the inside: what is left out first stands last.
  Sequence optional;
  for (std::int64_t i = least; i < most; ++i) {
    Sequence longer = piece;
    longer.insert(longer.end(), optional.begin(), optional.end());
    optional = {unnamed({longer, {}})};
  }
  out.insert(out.end(), optional.begin(), optional.end());
  return out;
}

Grammar GrammarBuilder::finish(std::uint32_t root) {
  grammar_.root = root;
  const auto edges = first_rules(grammar_);
  const auto component = components(edges);
  for (std::size_t rule = 0; rule < edges.size(); ++rule)
    for (const Edge& edge : edges[rule])
      if (edge.returns && component[rule] == component[edge.to]) {
        const auto named = std::find_if(grammar_.rules.begin(), grammar_.rules.end(), [&](const Rule& other) {
          return !other.name.empty() && component[static_cast<std::size_t>(&other - grammar_.rules.data())] == component[rule];
        });
        fail("{}: rule {} is left-recursive: it can begin with itself (write it as a repetition)", what_,
             quote_name(named == grammar_.rules.end() ? "a group" : named->name));
      }
  if (!rules_with_text(grammar_, ByteSet().set())[root])
    fail("{}: there is no text that the rule {} allows", what_, quote_name(grammar_.rules[root].name));
  return std::move(grammar_);
}

}  // namespace rlx::grammar
