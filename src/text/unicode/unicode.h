#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What tokenizers ask of Unicode. Categories, case and decompositions are those of the utf8proc that RLX is built with (Unicode
/// 15 for utf8proc 2.8). The `tokenizers` library mixes versions (Unicode 7 for punctuation and marks, its compiler's for case), so
/// code points assigned after Unicode 7, in rare scripts mostly, can fall into another class there.
namespace rlx::unicode {

/// One code point and the bytes of the text that hold it.
struct Decoded {
  char32_t value;
  std::size_t bytes;
};

/// The code point at the start of `text` (not empty). Each longest prefix that no valid UTF-8 continues gives one U+FFFD,
/// as the Unicode Standard recommends (section 3.9, "maximal subpart").
Decoded decode(std::string_view text);

void append_utf8(std::string& text, char32_t value);

/// The code point at the start of a text that is known to be UTF-8 (not empty).
inline Decoded decode_valid(const char* text) {
  const auto byte = [text](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// Whether a byte is the first of a code point.
inline bool starts_code_point(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// Where the code point begins that ends at `end`, which is not 0.
inline std::size_t code_point_before(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && !starts_code_point(text[end]));
  return end;
}

/// How many bytes of whole code points two texts begin with.
std::size_t common_prefix(std::string_view a, std::string_view b);

/// The code points of `text`, with U+FFFD for what is not UTF-8.
std::u32string to_utf32(std::string_view text);

/// Property White_Space.
bool is_whitespace(char32_t value);
/// ASCII punctuation (which counts symbols such as `$` and `+`) or general category P*.
bool is_punctuation(char32_t value);
/// General category N*.
bool is_numeric(char32_t value);
/// The class \w of regular expressions (Unicode TR18, annex C).
bool is_word(char32_t value);
/// General category Cc, Cf or Co.
bool is_control(char32_t value);
/// General category Mn.
bool is_nonspacing_mark(char32_t value);
/// General category M*.
bool is_mark(char32_t value);
/// The blocks of Chinese characters that BERT sets apart.
bool is_chinese(char32_t value);

/// Lower case without context: U+0130 gives two code points, every other one gives one, capital sigma always gives U+03C3.
/// Returns how many of `out` are set.
std::size_t lowercase(char32_t value, std::array<char32_t, 2>& out);

/// Upper case of one code point, where that is one.
char32_t uppercase(char32_t value);

int combining_class(char32_t value);

/// The code points from `first` to the next run are of one general category.
struct CategoryRun {
  char32_t first;
  std::uint8_t
      category;  // as utf8proc numbers them: Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co
};

/// All code points, in order.
std::span<const CategoryRun> category_runs();

/// Whether an extended grapheme cluster ends between two code points. `state` is 0 at the start of a text and goes from call to call.
bool grapheme_ends(char32_t first, char32_t second, std::int32_t& state);

/// The longest decomposition: U+FDFA in NFKD.
using Decomposition = std::array<char32_t, 18>;

/// The full canonical decomposition (and the compatibility one, if asked for), unordered. Returns how many of `out` are set.
std::size_t decompose(char32_t value, bool compatibility, Decomposition& out);

/// The primary composite of a pair (Hangul too), or 0 where there is none.
char32_t compose(char32_t first, char32_t second);

}  // namespace rlx::unicode
