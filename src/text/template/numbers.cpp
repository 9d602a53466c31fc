#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

#include "text/template/python_text.h"
#include "text/template/renderer.h"

namespace rlx::jinja {
namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_ascii_digit(c)) return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z' ? small - 'a' + 10 : 36;
}

/// Without the sign, which is false for minus.
bool take_sign(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  return !negative;
}

/// The base that a prefix names, which is removed if it may stand there.
int take_base(std::string_view& text, int base) {
  constexpr std::string_view letters = "box";
  constexpr int bases[] = {2, 8, 16};
  const auto letter = text.size() > 1 && text[0] == '0' ? letters.find(static_cast<char>(text[1] | 0x20)) : std::string_view::npos;
  if (letter == std::string_view::npos || (base != 0 && base != bases[letter])) return base == 0 ? 10 : base;
  text.remove_prefix(2);
  if (text.starts_with('_')) text.remove_prefix(1);
  return bases[letter];
}

/// Single underscores between digits go; nothing where they stand elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') out += text[i];
    else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_' || digit_value(text[i - 1]) == 36 || digit_value(text[i + 1]) == 36)
      return std::nullopt;
  }
  return out;
}

}  // namespace

std::optional<Integer> parse_integer(Renderer& run, std::string_view text, int base) {
  text = stripped(text, nullptr, true, true);
  const bool positive = take_sign(text);
  base = take_base(text, base);
  const auto digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  Integer value = 0;
  for (char c : *digits) {
    const int digit = digit_value(c);
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, Integer{base}, &value) || __builtin_add_overflow(value, Integer{digit}, &value))
      run.refuse("int: {} digits do not fit 128 bits", digits->size());
  }
  return positive ? value : -value;
}

std::optional<double> parse_float(std::string_view text) {
  const auto digits = without_underscores(stripped(text, nullptr, true, true));
  if (!digits) return std::nullopt;
  std::string_view rest = *digits;
  const bool positive = take_sign(rest);
  const std::string word = lower(rest);
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (rest.empty() || (!is_ascii_digit(rest[0]) && rest[0] != '.')) return std::nullopt;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end != rest.data() + rest.size() || error == std::errc::invalid_argument) return std::nullopt;
    const bool small = word.find("e-") != std::string::npos;
    if (error == std::errc::result_out_of_range) value = small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return positive ? value : -value;
}

Integer to_integer(Renderer& run, double value) {
  if (!(std::abs(value) < 0x1p126)) run.refuse("{} is no integer of at most 128 bits", float_text(value));
  return static_cast<Integer>(value);
}

}  // namespace rlx::jinja
