#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/names.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"
#include "text/unicode/unicode.h"

namespace rlx::jinja {
namespace {

constexpr std::ptrdiff_t widest = 1 << 20, most_precise = 400;

/// What a placeholder asks for. `type` is the letter of Python's format language, or 0.
struct FormatSpec {
  std::string fill = " ";
  char align = 0, sign = '-', group = 0, type = 0;
  bool alternate = false, zeros = false;
  std::ptrdiff_t width = 0, precision = -1;
};

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

/// The decimal number at the front, if there is one. Throws Error beyond `most`.
std::optional<std::ptrdiff_t> take_number(Renderer& run, std::string_view& text, std::ptrdiff_t most) {
  if (text.empty() || !is_decimal_digit(text[0])) return std::nullopt;
  std::ptrdiff_t value = 0;
  for (; !text.empty() && is_decimal_digit(text[0]); text.remove_prefix(1)) {
    value = value * 10 + (text[0] - '0');
    if (value > most) run.refuse("a format has a number beyond {}", most);
  }
  return value;
}

std::string padded(Renderer& run, const std::string& sign, const std::string& body, const FormatSpec& spec, char initial_align) {
  const auto size = static_cast<std::ptrdiff_t>(*length_of(run, std::string_view(body)) + sign.size());
  const std::ptrdiff_t room = std::max<std::ptrdiff_t>(0, spec.width - size);
  const char align = spec.align != 0 ? spec.align : initial_align;
  const std::ptrdiff_t before = align == '<' ? 0 : align == '^' ? room / 2 : room;
  std::string left, right;
  for (std::ptrdiff_t i = 0; i < before; ++i) left += spec.fill;
  for (std::ptrdiff_t i = before; i < room; ++i) right += spec.fill;
  return align == '=' ? sign + left + body : left + sign + body + right;
}

/// Puts `mark` between groups of three digits of the integer part.
std::string grouped(std::string digits, char mark) {
  if (mark == 0) return digits;
  const std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, mark);
  return digits;
}

std::string sign_text(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string integer_digits(Integer magnitude, char type, bool alternate) {
  const auto value = static_cast<unsigned __int128>(magnitude);
  switch (type) {
    case 'x': return fmt::format("{}{:x}", alternate ? "0x" : "", value);
    case 'X': return fmt::format("{}{:X}", alternate ? "0X" : "", value);
    case 'o': return fmt::format("{}{:o}", alternate ? "0o" : "", value);
    case 'b': return fmt::format("{}{:b}", alternate ? "0b" : "", value);
    default: return fmt::format("{}", value);
  }
}

std::string float_digits(double magnitude, const FormatSpec& spec) {
  if (spec.type == 0 && spec.precision < 0) return float_text(magnitude);
  const bool percent = spec.type == '%';
  const char type = percent ? 'f' : spec.type == 0 ? 'g' : spec.type;
  const char pattern[] = {
      '%', spec.alternate ? '#' : '.', spec.alternate ? '.' : '*', spec.alternate ? '*' : type, spec.alternate ? type : '\0', '\0'};
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  std::string out(static_cast<std::size_t>(precision) + 340, '\0');
  out.resize(static_cast<std::size_t>(std::snprintf(out.data(), out.size(), pattern, precision, percent ? magnitude * 100 : magnitude)));
  return percent ? out + "%" : out;
}

std::string number_text(Renderer& run, const Value& value, FormatSpec spec) {
  constexpr std::string_view float_types = "eEfFgG%";
  if (spec.zeros && spec.align == 0) spec.fill = "0", spec.align = '=';
  const auto integer = as_integer(value);
  if (integer && float_types.find(spec.type) == std::string_view::npos) {
    if (spec.precision >= 0) run.refuse("a format has a precision, which integers lack");
    return padded(run, sign_text(*integer < 0, spec),
                  grouped(integer_digits(*integer < 0 ? -*integer : *integer, spec.type, spec.alternate), spec.group), spec, '>');
  }
  if (spec.type != 0 && float_types.find(spec.type) == std::string_view::npos)
    run.refuse("format '{}' is not defined for a value of type {}", spec.type, type_name(value));
  const double number = as_float(value);
  const bool negative = std::signbit(number) && !std::isnan(number);
  return padded(run, sign_text(negative, spec), grouped(float_digits(std::abs(number), spec), spec.group), spec, '>');
}

std::string formatted(Renderer& run, const Value& value, const FormatSpec& spec) {
  run.memory().charge(static_cast<std::size_t>(spec.width) * spec.fill.size());
  if (value.is_number() && !(value.is<bool>() && spec.type == 0)) return number_text(run, value, spec);
  if (spec.type != 0 && spec.type != 's') run.refuse("format '{}' is not defined for a value of type {}", spec.type, type_name(value));
  const std::string_view text = text_of(run, value);
  const Value end = spec.precision < 0 ? Value(None{}) : Value(Integer{spec.precision});
  return padded(run, "", std::string(slice_of(run, text, None{}, end, None{}).as<std::string_view>()), spec, '<');
}

/// The value of a placeholder of printf's kind.
class PercentFormat {
 public:
  PercentFormat(Renderer& run, std::string_view format, const Value& value) : run_(run), rest_(format), value_(value) {
    const bool tuple = value.is<Sequence*>() && value.as<Sequence*>()->kind == Sequence::Kind::tuple;
    if (tuple) values_ = value.as<Sequence*>()->items;
    else values_ = {value};
  }

  std::string text() {
    std::string out;
    for (std::size_t at; (at = rest_.find('%')) != std::string_view::npos;) {
      out += rest_.substr(0, at);
      rest_.remove_prefix(at + 1);
      out += placeholder();
    }
    const bool mapping = value_.is<Dict*>();
    if (!mapping && !by_name_ && next_ < values_.size()) run_.refuse("'%': not all values are used by the format");
    return out.append(rest_);
  }

 private:
  const Value& next_value() {
    if (next_ >= values_.size()) run_.refuse("'%': the format has more placeholders than values");
    return values_[next_++];
  }

  Value named_value() {
    const std::size_t end = rest_.find(')');
    if (end == std::string_view::npos || !value_.is<Dict*>()) run_.refuse("'%': a name in the format needs a ')' and a dict");
    const Value* found = find(run_, *value_.as<Dict*>(), rest_.substr(1, end - 1));
    if (!found) run_.refuse("'%': the dict has no {}", quote_name(rest_.substr(1, end - 1)));
    rest_.remove_prefix(end + 1);
    by_name_ = true;
    return *found;
  }

  std::ptrdiff_t size(std::ptrdiff_t most) {
    if (!rest_.starts_with('*')) return take_number(run_, rest_, most).value_or(0);
    rest_.remove_prefix(1);
    return std::clamp<std::ptrdiff_t>(as_index(run_, next_value(), "a width"), -most, most);
  }

  std::string placeholder() {
    std::optional<Value> value;
    if (rest_.starts_with('(')) value = named_value();
    FormatSpec spec;
    for (; !rest_.empty() && std::string_view("#0- +").find(rest_[0]) != std::string_view::npos; rest_.remove_prefix(1)) {
      if (rest_[0] == '#') spec.alternate = true;
      else if (rest_[0] == '0') spec.zeros = true;
      else if (rest_[0] == '-') spec.align = '<';
      else if (rest_[0] == '+' || spec.sign != '+') spec.sign = rest_[0];
    }
    spec.width = size(widest);
    if (spec.width < 0) spec.width = -spec.width, spec.align = '<';
    if (rest_.starts_with('.')) rest_.remove_prefix(1), spec.precision = std::max<std::ptrdiff_t>(0, size(most_precise));
    while (!rest_.empty() && std::string_view("hlL").find(rest_[0]) != std::string_view::npos) rest_.remove_prefix(1);
    if (rest_.empty()) run_.refuse("'%': the format ends in a placeholder");
    const char type = rest_[0];
    rest_.remove_prefix(1);
    if (type == '%') return "%";
    return converted(type, value ? *value : next_value(), spec);
  }

  std::string converted(char type, const Value& value, FormatSpec spec) {
    if (type == 's' || type == 'r' || type == 'a') {
      if (spec.align == 0) spec.align = '>';
      return formatted(run_, type == 's' ? Value(text_of(run_, value)) : run_.string(repr(run_, value)), spec);
    }
    if (type == 'c' && value.is<std::string_view>()) return formatted(run_, value, spec);
    if (!value.is_number()) run_.refuse("'%{}' is not defined for a value of type {}", type, type_name(value));
    constexpr std::string_view integer_types = "diuoxXc", float_types = "eEfFgG";
    if (float_types.find(type) != std::string_view::npos) {
      spec.type = type;
      return formatted(run_, as_float(value), spec);
    }
    if (integer_types.find(type) == std::string_view::npos)
      run_.refuse("'%{}' is no format (allowed: s r a c d i u o x X e E f F g G %)", type);
    spec.type = type == 'i' || type == 'u' || type == 'c' ? 'd' : type;
    const Integer integer = value.is<double>() ? to_integer(run_, value.as<double>()) : *as_integer(value);
    if (type != 'c') return with_digits(integer, spec);
    std::string character;
    if (integer < 0 || integer > 0x10FFFF || (integer >= 0xD800 && integer < 0xE000)) run_.refuse("'%c': {} is no character", integer);
    unicode::append_utf8(character, static_cast<char32_t>(integer));
    return formatted(run_, run_.string(character), FormatSpec{.width = spec.width});
  }

  /// In printf's formats the precision of an integer is its least number of digits.
  std::string with_digits(Integer integer, FormatSpec spec) {
    const std::ptrdiff_t digits = std::exchange(spec.precision, -1);
    if (digits < 0) return formatted(run_, integer, spec);
    std::string text = integer_digits(integer < 0 ? -integer : integer, spec.type, spec.alternate);
    if (static_cast<std::ptrdiff_t>(text.size()) < digits) text.insert(0, static_cast<std::size_t>(digits) - text.size(), '0');
    return padded(run_, sign_text(integer < 0, spec), text, spec, '>');
  }

  Renderer& run_;
  std::string_view rest_;
  const Value& value_;
  std::vector<Value> values_;
  std::size_t next_ = 0;
  bool by_name_ = false;
};

/// str.format: placeholders in braces.
class BraceFormat {
 public:
  BraceFormat(Renderer& run, const Arguments& arguments) : run_(run), arguments_(arguments) {}

  std::string text(std::string_view format, int depth = 0) {
    if (depth > 1) run_.refuse("format: placeholders are nested more than twice");
    std::string out;
    while (!format.empty()) {
      const std::size_t at = std::min(format.find_first_of("{}"), format.size());
      out += format.substr(0, at);
      format.remove_prefix(at);
      if (format.empty()) break;
      if (format.size() > 1 && format[1] == format[0] && depth == 0) {
        out += format[0];
        format.remove_prefix(2);
        continue;
      }
      const std::size_t end = format[0] == '{' ? field_end(format) : std::string_view::npos;
      if (end == std::string_view::npos) run_.refuse("format: a single '{}' (write it twice)", format[0]);
      out += field(format.substr(1, end - 1), depth);
      format.remove_prefix(end + 1);
    }
    return out;
  }

 private:
  static std::size_t field_end(std::string_view format) {
    int open = 0;
    for (std::size_t i = 0; i < format.size(); ++i) {
      if (format[i] == '{') ++open;
      if (format[i] == '}' && --open == 0) return i;
    }
    return std::string_view::npos;
  }

  std::string field(std::string_view field, int depth) {
    const std::size_t name_end = std::min(field.find_first_of("!:"), field.size());
    Value value = named(field.substr(0, name_end));
    field.remove_prefix(name_end);
    if (field.starts_with('!')) {
      const char conversion = field.size() > 1 ? field[1] : '\0';
      if (conversion != 's' && conversion != 'r')
        run_.refuse("format: the conversion {} is not known (allowed: !s, !r)", quote_name(field.substr(0, 2)));
      value = conversion == 's' ? Value(text_of(run_, value)) : run_.string(repr(run_, value));
      field.remove_prefix(2);
    }
    if (field.empty()) return std::string(text_of(run_, value));
    return formatted(run_, value, spec_of(text(field.substr(1), depth + 1)));
  }

  Value named(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, end));
    for (name.remove_prefix(end); !name.empty();) {
      const bool dot = name[0] == '.';
      const std::size_t stop = dot ? std::min(name.find_first_of(".[", 1), name.size()) : name.find(']');
      if (stop == std::string_view::npos) run_.refuse("format: '[' without ']'");
      const std::string_view key = name.substr(1, stop - 1);
      const auto index =
          !key.empty() && std::all_of(key.begin(), key.end(), is_decimal_digit) ? parse_integer(run_, key, 10) : std::nullopt;
      value = dot ? attribute_of(run_, value, key) : item_of(run_, value, index ? Value(*index) : Value(key));
      name.remove_prefix(dot ? stop : stop + 1);
    }
    return value;
  }

  Value argument(std::string_view name) {
    std::string_view digits = name;
    const auto number = take_number(run_, digits, widest);
    if (name.empty() || (number && digits.empty())) {
      const auto index = static_cast<std::size_t>(name.empty() ? next_++ : *number);
      if (index >= arguments_.positional.size()) run_.refuse("format: placeholder {} has no argument", index);
      return arguments_.positional[index];
    }
    for (const auto& [given, value] : arguments_.named)
      if (given == name) return value;
    run_.refuse("format: there is no argument {}", quote_name(name));
  }

  FormatSpec spec_of(const std::string& text) {
    FormatSpec spec;
    std::string_view rest = text;
    const auto is_align = [](std::string_view at) { return !at.empty() && std::string_view("<>^=").find(at[0]) != std::string_view::npos; };
    const std::size_t first = rest.empty() ? 0 : unicode::decode(rest).bytes;
    if (is_align(rest.substr(first))) spec.fill = rest.substr(0, first), spec.align = rest[first], rest.remove_prefix(first + 1);
    else if (is_align(rest)) spec.align = rest[0], rest.remove_prefix(1);
    const auto take = [&](std::string_view allowed) {
      if (rest.empty() || allowed.find(rest[0]) == std::string_view::npos) return '\0';
      const char taken = rest[0];
      rest.remove_prefix(1);
      return taken;
    };
    if (const char sign = take("+- ")) spec.sign = sign;
    spec.alternate = take("#") != 0;
    spec.zeros = take("0") != 0;
    spec.width = take_number(run_, rest, widest).value_or(0);
    spec.group = take(",_");
    if (take(".") != 0) {
      const auto precision = take_number(run_, rest, most_precise);
      if (!precision) run_.refuse("format: a precision is missing");
      spec.precision = *precision;
    }
    spec.type = take("sdxXobeEfFgG%");
    if (!rest.empty()) run_.refuse("format: {} is no format", quote_name(text));
    return spec;
  }

  Renderer& run_;
  const Arguments& arguments_;
  std::ptrdiff_t next_ = 0;
};

}  // namespace

std::string percent_format(Renderer& run, std::string_view format, const Value& value) { return PercentFormat(run, format, value).text(); }

std::string brace_format(Renderer& run, std::string_view format, const Arguments& arguments) {
  return BraceFormat(run, arguments).text(format);
}

}  // namespace rlx::jinja
