#include "text/regex/regex.h"

#include <algorithm>
#include <span>
#include <utility>

#include "rlx/error.h"
#include "text/regex/regex_tree.h"

namespace rlx {
namespace {

using Kind = RegexNode::Kind;

constexpr std::size_t max_instructions = 20000;
constexpr std::size_t max_alternatives = 32;
constexpr std::uint32_t max_behind = 255;

/// What a match can start with, and whether it can be empty.
struct First {
  CharSet set;
  bool empty = false;
};

First first_of(const RegexNode& node) {
  switch (node.kind) {
    case Kind::set: return {node.set, false};
    case Kind::alternatives: {
      First result;
      for (const RegexNode& child : node.children) {
        const First one = first_of(child);
        result.set.add(one.set);
        result.empty = result.empty || one.empty;
      }
      return result;
    }
    case Kind::sequence: {
      First result = {{}, true};
      for (const RegexNode& child : node.children) {
        const First one = first_of(child);
        result.set.add(one.set);
        if (!one.empty) return {std::move(result.set), false};
      }
      return result;
    }
    case Kind::repeat: {
      First result = first_of(node.children[0]);
      result.empty = result.empty || node.min == 0;
      return result;
    }
    case Kind::atomic: return first_of(node.children[0]);
    default: return {{}, true};
  }
}

/// The fewest and the most code points that a match takes.
std::pair<std::uint64_t, std::uint64_t> width_of(const RegexNode& node) {
  switch (node.kind) {
    case Kind::set: return {1, 1};
    case Kind::atomic: return width_of(node.children[0]);
    case Kind::repeat: {
      const auto [low, high] = width_of(node.children[0]);
      return {std::min<std::uint64_t>(low * node.min, RegexNode::unbounded),
              std::min<std::uint64_t>(high * node.max, RegexNode::unbounded)};
    }
    case Kind::sequence: {
      std::pair<std::uint64_t, std::uint64_t> sum = {0, 0};
      for (const RegexNode& child : node.children) {
        const auto [low, high] = width_of(child);
        sum = {std::min<std::uint64_t>(sum.first + low, RegexNode::unbounded),
               std::min<std::uint64_t>(sum.second + high, RegexNode::unbounded)};
      }
      return sum;
    }
    case Kind::alternatives: {
      std::pair<std::uint64_t, std::uint64_t> result = {RegexNode::unbounded, 0};
      for (const RegexNode& child : node.children) {
        const auto [low, high] = width_of(child);
        result = {std::min(result.first, low), std::max(result.second, high)};
      }
      return result;
    }
    default: return {0, 0};
  }
}

/// The code points whose UTF-8 starts with `byte`: none for a byte that starts none.
CharSet led_by(unsigned byte) {
  if (byte < 0x80) return CharSet(byte, byte);
  if (byte >= 0xC2 && byte < 0xE0) return CharSet((byte & 0x1F) << 6, ((byte & 0x1F) << 6) + 0x3F);
  if (byte >= 0xE0 && byte < 0xF0) return CharSet(std::max(0x800u, (byte & 0xF) << 12), ((byte & 0xF) << 12) + 0xFFF);
  if (byte >= 0xF0 && byte < 0xF5) return CharSet(std::max(0x10000u, (byte & 7) << 18), ((byte & 7) << 18) + 0x3FFFF);
  return {};
}

std::array<bool, 256> first_bytes(const First& first) {
  std::array<bool, 256> result{};
  for (unsigned byte = 0; byte < 256; ++byte) result[byte] = first.empty || !first.set.intersection(led_by(byte)).empty();
  return result;
}

}  // namespace

class RegexCompiler {
 public:
  RegexCompiler(Regex& regex, std::string_view what) : regex_(regex), what_(what) {}

  void compile(const RegexNode& tree) {
    const First first = first_of(tree);
    regex_.starts_ = first_bytes(first);
    regex_.starts_empty_ = first.empty;
    add(tree);
    emit({.op = Op::match});
    for (Regex::Instruction& each : regex_.program_) {
      if (each.op == Op::run && leads_to_match(static_cast<std::uint32_t>(&each - regex_.program_.data()) + 1)) each.keeps = true;
    }
  }

 private:
  using Op = Regex::Op;

  std::uint32_t here() const { return static_cast<std::uint32_t>(regex_.program_.size()); }
  std::uint32_t emit(Regex::Instruction instruction) {
    if (regex_.program_.size() >= max_instructions) fail("{}: the pattern is too large (allowed: {} steps)", what_, max_instructions);
    regex_.program_.push_back(instruction);
    return here() - 1;
  }

  /// A run after which the match is over is never asked to give something back.
  bool leads_to_match(std::uint32_t pc) const {
    while (regex_.program_[pc].op == Op::jump && regex_.program_[pc].first > pc) pc = regex_.program_[pc].first;
    return regex_.program_[pc].op == Op::match;
  }

  std::uint32_t table(const CharSet& set) {
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      const auto same = [](const CharSet::Range& a, const CharSet::Range& b) { return a.first == b.first && a.last == b.last; };
      if (std::ranges::equal(sets_[i].ranges(), set.ranges(), same)) return static_cast<std::uint32_t>(i);
    }
    sets_.push_back(set);
    regex_.tables_.emplace_back(set);
    return static_cast<std::uint32_t>(sets_.size() - 1);
  }

  void add(const RegexNode& node) {
    switch (node.kind) {
      case Kind::empty: return;
      case Kind::set: emit({.op = Op::one, .first = table(node.set)}); return;
      case Kind::place: emit({.op = Op::place, .first = static_cast<std::uint32_t>(node.place)}); return;
      case Kind::sequence:
        for (const RegexNode& child : node.children) add(child);
        return;
      case Kind::alternatives: add_alternatives(node.children); return;
      case Kind::repeat: add_repeat(node); return;
      case Kind::atomic: add_inner(emit({.op = Op::atomic}), node.children[0], false); return;
      case Kind::look: add_look(node); return;
    }
  }

  /// A program of its own, after which the instruction `from` goes on.
  void add_inner(std::uint32_t from, const RegexNode& child, bool ends_here) {
    add(child);
    if (ends_here) emit({.op = Op::ends_here});
    emit({.op = Op::match});
    regex_.program_[from].first = here();
  }

  void add_look(const RegexNode& node) {
    const auto [low, high] = node.behind ? width_of(node.children[0]) : std::pair<std::uint64_t, std::uint64_t>{0, 0};
    if (high > max_behind) fail("{}: the pattern looks behind over more than {} code points", what_, max_behind);
    const std::uint32_t from = emit({.op = Op::look,
                                     .keeps = node.negated,
                                     .behind = node.behind,
                                     .min = static_cast<std::uint32_t>(low),
                                     .max = static_cast<std::uint32_t>(high)});
    add_inner(from, node.children[0], node.behind);
  }

  std::size_t new_choice() {
    regex_.choices_.emplace_back();
    const auto choice = static_cast<std::uint32_t>(regex_.choices_.size() - 1);
    emit({.op = Op::choose, .first = choice});
    return choice;
  }

  /// From here on comes the program of the next target of `choice`.
  void add_target(std::size_t choice, const First& first) {
    Regex::Choice& to = regex_.choices_[choice];
    const std::uint32_t bit = 1u << to.targets.size();
    to.targets.push_back(here());
    const std::array<bool, 256> bytes = first_bytes(first);
    for (std::size_t byte = 0; byte < 256; ++byte) to.by_byte[byte] |= bytes[byte] ? bit : 0;
    if (first.empty) to.at_end |= bit;
  }

  void add_alternatives(std::span<const RegexNode> children) {
    const std::size_t choice = new_choice();
    std::vector<std::uint32_t> ends;
    const std::size_t direct = children.size() <= max_alternatives ? children.size() : max_alternatives - 1;
    for (const RegexNode& child : children.first(direct)) {
      add_target(choice, first_of(child));
      add(child);
      ends.push_back(emit({.op = Op::jump}));
    }
    if (direct < children.size()) {
      add_target(choice, {{}, true});
      add_alternatives(children.subspan(direct));
    }
    for (const std::uint32_t end : ends) regex_.program_[end].first = here();
  }

  void add_repeat(const RegexNode& node) {
    using Greed = RegexNode::Greed;
    const RegexNode& child = node.children[0];
    if (child.kind == Kind::set && node.greed != Greed::lazy) {
      emit({.op = Op::run, .keeps = node.greed == Greed::possessive, .first = table(child.set), .min = node.min, .max = node.max});
      return;
    }
    if (node.greed == Greed::possessive) {
      RegexNode greedy = node;
      greedy.greed = Greed::greedy;
      add_inner(emit({.op = Op::atomic}), greedy, false);
      return;
    }
    for (std::uint32_t i = 0; i < node.min; ++i) add(child);
    const First first = first_of(child);
    if (node.max == RegexNode::unbounded && first.empty) fail("{}: the pattern repeats without end what can be empty", what_);
    add_optional(node, first);
  }

  /// The repetitions after the first `min`.
  void add_optional(const RegexNode& node, const First& first) {
    const bool endless = node.max == RegexNode::unbounded;
    const bool lazy = node.greed == RegexNode::Greed::lazy;
    std::vector<std::uint32_t> exits;  // jumps to the end
    for (std::uint32_t i = node.min; endless ? i == node.min : i < node.max; ++i) {
      const std::uint32_t again = here();
      const std::size_t choice = new_choice();
      const auto leave = [&] {
        add_target(choice, {{}, true});
        exits.push_back(emit({.op = Op::jump}));
      };
      if (lazy) leave();
      add_target(choice, first);
      if (lazy || endless) {
        add(node.children[0]);
        if (endless) emit({.op = Op::jump, .first = again});
        if (!lazy) leave();
        continue;
      }
      // Greedy and bounded: the way out comes before the body, so that bodies follow one another.
      regex_.choices_[choice].targets.back() = here() + 1;
      regex_.choices_[choice].targets.push_back(here());
      for (std::uint32_t& bits : regex_.choices_[choice].by_byte) bits |= 2;
      regex_.choices_[choice].at_end |= 2;
      exits.push_back(emit({.op = Op::jump}));
      add(node.children[0]);
    }
    for (const std::uint32_t exit : exits) regex_.program_[exit].first = here();
  }

  Regex& regex_;
  std::string_view what_;
  std::vector<CharSet> sets_;
};

Regex::Regex(std::string_view pattern, std::string_view what) { RegexCompiler(*this, what).compile(parse_regex(pattern, what)); }

}  // namespace rlx
