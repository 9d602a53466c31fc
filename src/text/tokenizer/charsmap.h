#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// The compiled normalization rules of a sentencepiece model: a double array (Darts) from strings to their replacements.
class Charsmap {
 public:
  /// `bytes`: the size of the array in bytes (u32, little endian), the array, the replacements, each ended by a zero. Throws Error naming
  /// `what` when the sizes disagree or a replacement is not UTF-8.
  Charsmap(std::string_view bytes, std::string_view what);

  struct Match {
    std::size_t length;
    std::string_view replacement;
  };
  /// The rule for the shortest or the longest string that `text` starts with.
  std::optional<Match> shortest(std::string_view text) const { return match(text, true); }
  std::optional<Match> longest(std::string_view text) const { return match(text, false); }

 private:
  std::optional<Match> match(std::string_view text, bool first) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace rlx
