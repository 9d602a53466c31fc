#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar/grammar.h"

namespace rlx::grammar {

using CodePoints = std::pair<char32_t, char32_t>;  // first and last
using Sequence = std::vector<Element>;             // without its end

/// Builds a grammar from pieces. Throws Error, after `what`, beyond the limits.
class GrammarBuilder {
 public:
  explicit GrammarBuilder(std::string_view what) : what_(what) {}

  static constexpr std::size_t most_rules = 1 << 16, most_elements = 1 << 20;

  /// The rule of that name, which may be defined later.
  std::uint32_t rule(std::string_view name);
  /// A rule without a name of its own.
  Element unnamed(std::vector<Sequence> alternatives);
  void define(std::uint32_t rule, std::vector<Sequence> alternatives);
  bool is_defined(std::uint32_t rule) const { return !grammar_.rules[rule].alternatives.empty(); }

  Element byte(unsigned char value);
  /// One code point of these ranges, as its bytes.
  Element code_point(std::vector<CodePoints> ranges, bool negated);
  /// `piece` from `least` to `most` times; `most` < 0: any number.
  Sequence repeated(const Sequence& piece, std::int64_t least, std::int64_t most);

  const Grammar& grammar() const { return grammar_; }
  /// Throws Error naming a rule that is left-recursive, or the root where no text ends.
  Grammar finish(std::uint32_t root);

 private:
  Element set(const ByteSet& bytes);
  void add_range(char32_t first, char32_t last, std::vector<Sequence>& alternatives);

  std::string what_;
  Grammar grammar_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
  std::map<std::string, std::uint32_t> known_sets_;
};

}  // namespace rlx::grammar
