#include "text/unicode/unicode.h"

#include <algorithm>

#include <utf8proc.h>

#include "rlx/error.h"

namespace rlx::unicode {
namespace {

constexpr char32_t replacement = 0xFFFD;

struct Lead {
  std::size_t bytes;        // of the whole sequence, 0 for a byte that starts none
  unsigned char low, high;  // what the second byte may be (Unicode Standard, table 3-7)
};

Lead lead_byte(unsigned char byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0)
    return {3, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80), static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  if (byte < 0xF5)
    return {4, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80), static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

utf8proc_category_t category(char32_t value) { return utf8proc_category(static_cast<utf8proc_int32_t>(value)); }

bool is_ascii_punctuation(char32_t value) {
  return (value >= '!' && value <= '/') || (value >= ':' && value <= '@') || (value >= '[' && value <= '`') ||
         (value >= '{' && value <= '~');
}

/// The code points of category So that have the property Alphabetic: circled and squared Latin letters.
bool is_enclosed_letter(char32_t value) {
  return (value >= 0x24B6 && value <= 0x24E9) || (value >= 0x1F130 && value <= 0x1F149) || (value >= 0x1F150 && value <= 0x1F169) ||
         (value >= 0x1F170 && value <= 0x1F189);
}

}  // namespace

Decoded decode(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const Lead lead = lead_byte(first);
  if (lead.bytes == 0) return {replacement, 1};
  char32_t value = first & (0x7F >> lead.bytes);
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {replacement, i};
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool allowed = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xC0) == 0x80;
    if (!allowed) return {replacement, i};
    value = (value << 6) | (byte & 0x3F);
  }
  return {value, lead.bytes};
}

void append_utf8(std::string& text, char32_t value) {
  const auto tail = [value](int shift) { return static_cast<char>(0x80 | ((value >> shift) & 0x3F)); };
  if (value < 0x80) {
    text += static_cast<char>(value);
  } else if (value < 0x800) {
    text += {static_cast<char>(0xC0 | (value >> 6)), tail(0)};
  } else if (value < 0x10000) {
    text += {static_cast<char>(0xE0 | (value >> 12)), tail(6), tail(0)};
  } else {
    text += {static_cast<char>(0xF0 | (value >> 18)), tail(12), tail(6), tail(0)};
  }
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  auto same = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  while (same > 0 && same < a.size() && !starts_code_point(a[same])) --same;
  return same;
}

std::u32string to_utf32(std::string_view text) {
  std::u32string result;
  while (!text.empty()) {
    const Decoded next = decode(text);
    result += next.value;
    text.remove_prefix(next.bytes);
  }
  return result;
}

bool is_whitespace(char32_t value) {
  if (value < 0x80) return value == ' ' || (value >= '\t' && value <= '\r');
  return value == 0x85 || value == 0xA0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200A) || value == 0x2028 || value == 0x2029 ||
         value == 0x202F || value == 0x205F || value == 0x3000;
}

bool is_punctuation(char32_t value) {
  if (value < 0x80) return is_ascii_punctuation(value);
  const utf8proc_category_t kind = category(value);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_numeric(char32_t value) {
  if (value < 0x80) return value >= '0' && value <= '9';
  const utf8proc_category_t kind = category(value);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t value) {
  if (value < 0x80) {
    return (value >= 'a' && value <= 'z') || (value >= 'A' && value <= 'Z') || (value >= '0' && value <= '9') || value == '_';
  }
  const utf8proc_category_t kind = category(value);
  const bool letter_or_mark = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ME;
  const bool joiner = value == 0x200C || value == 0x200D;
  return letter_or_mark || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_PC || joiner ||
         is_enclosed_letter(value);
}

bool is_control(char32_t value) {
  if (value < 0x80) return value < 0x20 || value == 0x7F;
  const utf8proc_category_t kind = category(value);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO;
}

bool is_nonspacing_mark(char32_t value) { return value >= 0x300 && category(value) == UTF8PROC_CATEGORY_MN; }

bool is_mark(char32_t value) {
  if (value < 0x300) return false;
  const utf8proc_category_t kind = category(value);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_chinese(char32_t value) {
  if (value < 0x3400) return false;
  return (value >= 0x4E00 && value <= 0x9FFF) || value <= 0x4DBF || (value >= 0x20000 && value <= 0x2A6DF) ||
         (value >= 0x2A700 && value <= 0x2B73F) || (value >= 0x2B740 && value <= 0x2B81F) || (value >= 0x2B920 && value <= 0x2CEAF) ||
         (value >= 0xF900 && value <= 0xFAFF) || (value >= 0x2F800 && value <= 0x2FA1F);
}

std::size_t lowercase(char32_t value, std::array<char32_t, 2>& out) {
  if (value < 0x80) {
    out[0] = value >= 'A' && value <= 'Z' ? value + 32 : value;
    return 1;
  }
  if (value == 0x130) {
    out = {0x69, 0x307};
    return 2;
  }
  out[0] = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value)));
  return 1;
}

char32_t uppercase(char32_t value) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(value))); }

std::span<const CategoryRun> category_runs() {
  static const std::vector<CategoryRun> runs = [] {
    std::vector<CategoryRun> result;
    for (char32_t c = 0; c < 0x110000; ++c) {
      const auto kind = static_cast<std::uint8_t>(category(c));
      if (result.empty() || result.back().category != kind) result.push_back({c, kind});
    }
    return result;
  }();
  return runs;
}

bool grapheme_ends(char32_t first, char32_t second, std::int32_t& state) {
  return utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second), &state);
}

int combining_class(char32_t value) {
  if (value < 0x300) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->combining_class;
}

std::size_t decompose(char32_t value, bool compatibility, Decomposition& out) {
  if (value < 0x80) {
    out[0] = value;
    return 1;
  }
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  std::array<utf8proc_int32_t, std::tuple_size_v<Decomposition>> parts{};
  int boundary = 0;  // asked for by the call, used by grapheme options only
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(value), parts.data(),
                                                         static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
  if (count < 0 || static_cast<std::size_t>(count) > parts.size())
    fail_internal("unicode: U+{:04X} has no decomposition", static_cast<unsigned>(value));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) out[i] = static_cast<char32_t>(parts[i]);
  return static_cast<std::size_t>(count);
}

char32_t compose(char32_t first, char32_t second) {
  std::array<utf8proc_int32_t, 2> pair = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(pair.data(), 2, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  return count == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

}  // namespace rlx::unicode
