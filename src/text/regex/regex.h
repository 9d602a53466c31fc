#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/regex/char_set.h"

namespace rlx {

/// A regular expression over code points, compiled for a matcher that goes back where it must. The meaning is Oniguruma's, which
/// `tokenizers` uses: the first alternative that matches wins.
class Regex {
 public:
  /// See parse_regex for the syntax. Throws Error naming `what` for what is malformed, not supported or too large.
  Regex(std::string_view pattern, std::string_view what);

 private:
  friend class RegexCompiler;
  friend class RegexSearch;

  enum class Op : std::uint8_t { one, run, choose, jump, atomic, look, ends_here, place, match };
  /// What `first` and `second` mean: one: table; run: table, then `min` and `max`; choose: choice; jump: where to; atomic and look: where
  /// to go on after the program that follows; place: which.
  struct Instruction {
    Op op;
    bool keeps = false;   // of run: nothing is given back; of look: negated
    bool behind = false;  // of look
    std::uint32_t first = 0;
    std::uint32_t min = 0, max = 0;  // of run, and of a look behind: the code points that it can span
  };
  /// Up to 32 programs that are tried in order; those that cannot start with the byte at hand are left out.
  struct Choice {
    std::vector<std::uint32_t> targets;
    std::array<std::uint32_t, 256> by_byte{};  // bit i: target i
    std::uint32_t at_end = 0;
  };

  std::vector<Instruction> program_;
  std::vector<CharTable> tables_;
  std::vector<Choice> choices_;
  std::array<bool, 256> starts_{};  // whether a match can start with this byte
  bool starts_empty_ = false;       // whether one can be empty
};

/// Finds the matches of a regular expression in a text that is valid UTF-8 and shorter than 4 GiB, one after the other. Both must
/// outlive it.
class RegexSearch {
 public:
  RegexSearch(const Regex& regex, std::string_view text) : regex_(regex), text_(text) {}

  struct Match {
    std::size_t begin, end;
  };
  /// The next match, which starts at or after the end of the one before; an empty one is followed by a search one code point further.
  /// Throws Error for a text on which the pattern takes more than ten million steps back.
  std::optional<Match> next();

 private:
  struct Back {
    std::uint32_t pc, place, rest;  // rest: the choices left, or how far a run may go back
  };

  std::optional<std::size_t> match(std::uint32_t pc, std::size_t at);
  bool step(std::uint32_t& pc, std::size_t& at);
  bool step_run(std::uint32_t& pc, std::size_t& at);
  bool step_look(std::uint32_t& pc, std::size_t& at);
  bool go_back(std::size_t base, std::uint32_t& pc, std::size_t& at);
  bool looks_behind(std::uint32_t pc, std::size_t at, std::uint32_t min, std::uint32_t max);
  bool holds(std::uint32_t place, std::size_t at) const;

  const Regex& regex_;
  std::string_view text_;
  std::size_t from_ = 0;
  std::vector<Back> back_;
  std::size_t behind_end_ = 0;  // where a look behind must end
  std::size_t steps_ = 0;
};

}  // namespace rlx
