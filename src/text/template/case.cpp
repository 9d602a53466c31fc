#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "text/template/python_text.h"
#include "text/unicode/unicode.h"

namespace rlx::jinja {
namespace {

struct LongUpper {
  char32_t from;
  std::u32string_view to;
};

/// The characters whose upper case is several (Unicode's SpecialCasing.txt, without conditions), in order.
constexpr LongUpper long_uppers[] = {{0xDF, U"SS"},
                                     {0x149, U"\u02BCN"},
                                     {0x1F0, U"J\u030C"},
                                     {0x390, U"\u0399\u0308\u0301"},
                                     {0x3B0, U"\u03A5\u0308\u0301"},
                                     {0x587, U"\u0535\u0552"},
                                     {0x1E96, U"H\u0331"},
                                     {0x1E97, U"T\u0308"},
                                     {0x1E98, U"W\u030A"},
                                     {0x1E99, U"Y\u030A"},
                                     {0x1E9A, U"A\u02BE"},
                                     {0x1F50, U"\u03A5\u0313"},
                                     {0x1F52, U"\u03A5\u0313\u0300"},
                                     {0x1F54, U"\u03A5\u0313\u0301"},
                                     {0x1F56, U"\u03A5\u0313\u0342"},
                                     {0x1F80, U"\u1F08\u0399"},
                                     {0x1F81, U"\u1F09\u0399"},
                                     {0x1F82, U"\u1F0A\u0399"},
                                     {0x1F83, U"\u1F0B\u0399"},
                                     {0x1F84, U"\u1F0C\u0399"},
                                     {0x1F85, U"\u1F0D\u0399"},
                                     {0x1F86, U"\u1F0E\u0399"},
                                     {0x1F87, U"\u1F0F\u0399"},
                                     {0x1F88, U"\u1F08\u0399"},
                                     {0x1F89, U"\u1F09\u0399"},
                                     {0x1F8A, U"\u1F0A\u0399"},
                                     {0x1F8B, U"\u1F0B\u0399"},
                                     {0x1F8C, U"\u1F0C\u0399"},
                                     {0x1F8D, U"\u1F0D\u0399"},
                                     {0x1F8E, U"\u1F0E\u0399"},
                                     {0x1F8F, U"\u1F0F\u0399"},
                                     {0x1F90, U"\u1F28\u0399"},
                                     {0x1F91, U"\u1F29\u0399"},
                                     {0x1F92, U"\u1F2A\u0399"},
                                     {0x1F93, U"\u1F2B\u0399"},
                                     {0x1F94, U"\u1F2C\u0399"},
                                     {0x1F95, U"\u1F2D\u0399"},
                                     {0x1F96, U"\u1F2E\u0399"},
                                     {0x1F97, U"\u1F2F\u0399"},
                                     {0x1F98, U"\u1F28\u0399"},
                                     {0x1F99, U"\u1F29\u0399"},
                                     {0x1F9A, U"\u1F2A\u0399"},
                                     {0x1F9B, U"\u1F2B\u0399"},
                                     {0x1F9C, U"\u1F2C\u0399"},
                                     {0x1F9D, U"\u1F2D\u0399"},
                                     {0x1F9E, U"\u1F2E\u0399"},
                                     {0x1F9F, U"\u1F2F\u0399"},
                                     {0x1FA0, U"\u1F68\u0399"},
                                     {0x1FA1, U"\u1F69\u0399"},
                                     {0x1FA2, U"\u1F6A\u0399"},
                                     {0x1FA3, U"\u1F6B\u0399"},
                                     {0x1FA4, U"\u1F6C\u0399"},
                                     {0x1FA5, U"\u1F6D\u0399"},
                                     {0x1FA6, U"\u1F6E\u0399"},
                                     {0x1FA7, U"\u1F6F\u0399"},
                                     {0x1FA8, U"\u1F68\u0399"},
                                     {0x1FA9, U"\u1F69\u0399"},
                                     {0x1FAA, U"\u1F6A\u0399"},
                                     {0x1FAB, U"\u1F6B\u0399"},
                                     {0x1FAC, U"\u1F6C\u0399"},
                                     {0x1FAD, U"\u1F6D\u0399"},
                                     {0x1FAE, U"\u1F6E\u0399"},
                                     {0x1FAF, U"\u1F6F\u0399"},
                                     {0x1FB2, U"\u1FBA\u0399"},
                                     {0x1FB3, U"\u0391\u0399"},
                                     {0x1FB4, U"\u0386\u0399"},
                                     {0x1FB6, U"\u0391\u0342"},
                                     {0x1FB7, U"\u0391\u0342\u0399"},
                                     {0x1FBC, U"\u0391\u0399"},
                                     {0x1FC2, U"\u1FCA\u0399"},
                                     {0x1FC3, U"\u0397\u0399"},
                                     {0x1FC4, U"\u0389\u0399"},
                                     {0x1FC6, U"\u0397\u0342"},
                                     {0x1FC7, U"\u0397\u0342\u0399"},
                                     {0x1FCC, U"\u0397\u0399"},
                                     {0x1FD2, U"\u0399\u0308\u0300"},
                                     {0x1FD3, U"\u0399\u0308\u0301"},
                                     {0x1FD6, U"\u0399\u0342"},
                                     {0x1FD7, U"\u0399\u0308\u0342"},
                                     {0x1FE2, U"\u03A5\u0308\u0300"},
                                     {0x1FE3, U"\u03A5\u0308\u0301"},
                                     {0x1FE4, U"\u03A1\u0313"},
                                     {0x1FE6, U"\u03A5\u0342"},
                                     {0x1FE7, U"\u03A5\u0308\u0342"},
                                     {0x1FF2, U"\u1FFA\u0399"},
                                     {0x1FF3, U"\u03A9\u0399"},
                                     {0x1FF4, U"\u038F\u0399"},
                                     {0x1FF6, U"\u03A9\u0342"},
                                     {0x1FF7, U"\u03A9\u0342\u0399"},
                                     {0x1FFC, U"\u03A9\u0399"},
                                     {0xFB00, U"FF"},
                                     {0xFB01, U"FI"},
                                     {0xFB02, U"FL"},
                                     {0xFB03, U"FFI"},
                                     {0xFB04, U"FFL"},
                                     {0xFB05, U"ST"},
                                     {0xFB06, U"ST"},
                                     {0xFB13, U"\u0544\u0546"},
                                     {0xFB14, U"\u0544\u0535"},
                                     {0xFB15, U"\u0544\u053B"},
                                     {0xFB16, U"\u054E\u0546"},
                                     {0xFB17, U"\u0544\u053D"}};

void append_upper(std::string& out, char32_t value) {
  const auto* found = std::lower_bound(std::begin(long_uppers), std::end(long_uppers), value,
                                       [](const LongUpper& row, char32_t sought) { return row.from < sought; });
  if (found != std::end(long_uppers) && found->from == value) {
    for (char32_t part : found->to) unicode::append_utf8(out, part);
  } else {
    unicode::append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(value))));
  }
}

bool is_cased(char32_t value) {
  const auto code = static_cast<utf8proc_int32_t>(value);
  return utf8proc_toupper(code) != code || utf8proc_tolower(code) != code;
}

/// Characters between a letter and the end of its word: marks, apostrophes and the like.
bool is_case_ignorable(char32_t value) {
  const utf8proc_category_t kind = utf8proc_category(static_cast<utf8proc_int32_t>(value));
  return unicode::is_nonspacing_mark(value) || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK || value == '\'' || value == '.' || value == ':' || value == 0xB7 ||
         value == 0x2019;
}

/// A capital sigma that ends a word: a cased character before it, none behind it.
bool is_final_sigma(const std::u32string& text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

bool is_space(char32_t value) { return unicode::is_whitespace(value) || (value >= 0x1C && value <= 0x1F); }

std::string upper(std::string_view text) {
  std::string out;
  for (char32_t value : unicode::to_utf32(text)) append_upper(out, value);
  return out;
}

std::string lower(std::string_view text) {
  const std::u32string all = unicode::to_utf32(text);
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::array<char32_t, 2> parts{};
    const std::size_t count = unicode::lowercase(all[i], parts);
    if (all[i] == 0x3A3 && is_final_sigma(all, i)) parts[0] = 0x3C2;
    for (std::size_t part = 0; part < count; ++part) unicode::append_utf8(out, parts[part]);
  }
  return out;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const unicode::Decoded first = unicode::decode(text);
  const auto code = static_cast<utf8proc_int32_t>(first.value);
  std::string out;
  const char32_t title = static_cast<char32_t>(utf8proc_totitle(code));
  if (title != first.value) unicode::append_utf8(out, title);
  else append_upper(out, first.value);
  const std::string all = lower(text);  // of the whole: a final sigma may follow the first letter
  return out + all.substr(lower(text.substr(0, first.bytes)).size());
}

std::string change_words(std::string_view text, bool (*is_between)(char32_t), std::string (*change)(std::string_view word)) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = 0, next = 0;  // of the word, and of what ends it
    while (next < text.size()) {
      const auto [value, bytes] = unicode::decode(text.substr(end));
      next = end + bytes;
      if (is_between(value)) break;
      end = next;
    }
    if (end > 0) out += change(text.substr(0, end));
    out += text.substr(end, next - end);
    text.remove_prefix(next);
  }
  return out;
}

}  // namespace rlx::jinja
