#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// A code point and the bytes [begin, end) of the original text that it comes from.
struct AlignedChar {
  char32_t value;
  std::uint32_t begin;
  std::uint32_t end;
};

/// The code points [begin, end) of an AlignedText.
struct TextRange {
  std::size_t begin;
  std::size_t end;
  bool empty() const { return begin == end; }
};

/// A text on its way through the normalizers: each code point knows where it comes from in the text that the user gave.
using AlignedText = std::vector<AlignedChar>;

/// The code points of `text`, with U+FFFD for each invalid part. Throws Error if the text has 4 GiB or more.
AlignedText align(std::string_view text);

/// The UTF-8 of a range.
std::string to_utf8(std::span<const AlignedChar> text);

}  // namespace rlx
