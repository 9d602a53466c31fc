#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/names.h"
#include "text/template/functions.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"
#include "text/unicode/unicode.h"

namespace rlx::jinja {
namespace {

/// The text of the filtered value, which need not be a string; counts a look at all of it.
std::string_view text_operand(Renderer& run, const Bound& arguments) {
  const std::string_view text = text_of(run, *arguments[0]);
  run.count_scan(text.size());
  return text;
}

bool flag(const Bound& arguments, std::size_t index) { return arguments[index] && truth(*arguments[index]); }

[[noreturn]] void refuse_type(Renderer& run, std::string_view filter, const Value& value) {
  if (value.is<Undefined>()) run.refuse("{}", value.as<Undefined>().why);
  run.refuse("'{}' is not defined for a value of type {}", filter, type_name(value));
}

Value abs_filter(Renderer& run, const Bound& arguments) {
  const Value& value = *arguments[0];
  if (!value.is_number()) refuse_type(run, "abs", value);
  if (value.is<double>()) return std::abs(value.as<double>());
  const Integer number = *as_integer(value);
  return number < 0 ? unary(run, "-", number) : Value(number);
}

template <std::string (*change)(std::string_view)>
Value change_filter(Renderer& run, const Bound& arguments) {
  return run.string(change(text_operand(run, arguments)));
}

/// Words begin behind white space, hyphens and opening brackets.
std::string titled_words(std::string_view text) {
  const auto is_between = [](char32_t c) { return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; };
  return change_words(text, is_between, [](std::string_view word) {
    const std::size_t first = unicode::decode(word).bytes;
    return upper(word.substr(0, first)) + lower(word.substr(first));
  });
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&#34;";
    else if (c == '\'') out += "&#39;";
    else out += c;
  }
  return out;
}

Value string_filter(Renderer& run, const Bound& arguments) { return text_operand(run, arguments); }

Value trim_filter(Renderer& run, const Bound& arguments) {
  const std::string_view text = text_operand(run, arguments);
  if (!arguments[1] || arguments[1]->is<None>()) return stripped(text, nullptr, true, true);
  const std::string_view characters = text_of(run, *arguments[1]);
  return stripped(text, &characters, true, true);
}

Value replace_filter(Renderer& run, const Bound& arguments) {
  const bool limited = arguments[3] && !arguments[3]->is<None>();
  const std::ptrdiff_t most = limited ? as_index(run, *arguments[3], "replace: count") : -1;
  return run.string(replaced(run, text_operand(run, arguments), text_of(run, *arguments[1]), text_of(run, *arguments[2]), most));
}

Value indent_filter(Renderer& run, const Bound& arguments) {
  if (!arguments[0]->is<std::string_view>()) refuse_type(run, "indent", *arguments[0]);
  const Value width = arguments[1].value_or(Integer{4});
  std::string spaces;
  if (width.is<std::string_view>()) spaces = width.as<std::string_view>();
  else {
    const std::ptrdiff_t count = std::max<std::ptrdiff_t>(0, as_index(run, width, "indent: width"));
    run.memory().charge(static_cast<std::size_t>(count));
    spaces.assign(static_cast<std::size_t>(count), ' ');
  }
  const std::string text = fmt::format("{}\n", text_operand(run, arguments));
  std::string out;
  bool first = true;
  for (std::string_view line : split_lines(text, false)) {
    const bool indents = first ? flag(arguments, 2) : flag(arguments, 3) || !line.empty();
    run.memory().charge(spaces.size() + line.size());
    out += fmt::format("{}{}{}", first ? "" : "\n", indents ? spaces : "", line);
    first = false;
  }
  return run.string(std::move(out));
}

Value truncate_filter(Renderer& run, const Bound& arguments) {
  if (!arguments[0]->is<std::string_view>()) refuse_type(run, "truncate", *arguments[0]);
  const std::string_view text = text_operand(run, arguments), end = arguments[3] ? text_of(run, *arguments[3]) : "...";
  const auto size_argument = [&](std::size_t i, std::ptrdiff_t initial) {
    return arguments[i] ? as_index(run, *arguments[i], "truncate: a length") : initial;
  };
  const std::ptrdiff_t length = size_argument(1, 255), leeway = size_argument(4, 5);
  const auto end_length = static_cast<std::ptrdiff_t>(*length_of(run, end));
  if (length < end_length || leeway < 0)
    run.refuse("truncate: length {} with leeway {} (allowed: at least {} and 0)", length, leeway, end_length);
  if (static_cast<std::ptrdiff_t>(*length_of(run, text)) <= length + leeway) return text;
  std::string_view kept = slice_of(run, text, None{}, Integer{length - end_length}, None{}).as<std::string_view>();
  if (!flag(arguments, 2)) kept = kept.substr(0, kept.rfind(' '));
  return run.string(fmt::format("{}{}", kept, end));
}

Value center_filter(Renderer& run, const Bound& arguments) {
  const Arguments given{{text_operand(run, arguments), arguments[1].value_or(Integer{80})}, {}};
  return call_function(run, *find_method(std::string_view(), "center"), given);
}

Value wordcount_filter(Renderer& run, const Bound& arguments) {
  std::int64_t count = 0;
  bool inside = false;
  for (char32_t value : unicode::to_utf32(text_operand(run, arguments))) {
    const bool word = unicode::is_word(value);
    count += word && !inside ? 1 : 0;
    inside = word;
  }
  return Integer{count};
}

Value format_filter(Renderer& run, const Bound& arguments) {
  const Value& positional = *arguments[1];
  Dict* named = arguments[2]->as<Dict*>();
  if (!named->entries.empty() && !positional.as<Sequence*>()->items.empty()) run.refuse("format takes values or named values, not both");
  return run.string(percent_format(run, text_operand(run, arguments), named->entries.empty() ? positional : Value(named)));
}

Value urlencode_filter(Renderer& run, const Bound& arguments) {
  std::string out;
  for (char c : text_operand(run, arguments)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    if (plain) out += c;
    else out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return run.string(std::move(out));
}

Value int_filter(Renderer& run, const Bound& arguments) {
  const Value& value = *arguments[0];
  const Value initial = arguments[1].value_or(Integer{0});
  if (value.is<Undefined>()) refuse_type(run, "int", value);
  if (const auto number = as_integer(value)) return *number;
  if (value.is<double>()) return std::isnan(value.as<double>()) ? initial : Value(to_integer(run, value.as<double>()));
  if (!value.is<std::string_view>()) return initial;
  const std::ptrdiff_t base = arguments[2] ? as_index(run, *arguments[2], "int: base") : 10;
  if (base != 0 && (base < 2 || base > 36)) run.refuse("int: base {} (allowed: 0, 2..36)", base);
  if (const auto number = parse_integer(run, text_operand(run, arguments), static_cast<int>(base))) return *number;
  const auto number = parse_float(value.as<std::string_view>());
  return number && std::isfinite(*number) ? Value(to_integer(run, *number)) : initial;
}

Value float_filter(Renderer& run, const Bound& arguments) {
  const Value& value = *arguments[0];
  const Value initial = arguments[1].value_or(0.0);
  if (value.is<Undefined>()) refuse_type(run, "float", value);
  if (value.is_number()) return as_float(value);
  if (!value.is<std::string_view>()) return initial;
  const auto number = parse_float(text_operand(run, arguments));
  return number ? Value(*number) : initial;
}

/// To the nearest multiple of 10^-digits, the even one of two, by the number's exact decimal digits.
double rounded(double value, std::ptrdiff_t digits) {
  if (!std::isfinite(value)) return value;
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  return *parse_float(fmt::format("{:.{}f}", value, std::min<std::ptrdiff_t>(digits, 400)));
}

Value round_filter(Renderer& run, const Bound& arguments) {
  const Value& value = *arguments[0];
  if (!value.is_number()) refuse_type(run, "round", value);
  const std::ptrdiff_t digits = arguments[1] ? as_index(run, *arguments[1], "round: precision") : 0;
  const std::string_view method = arguments[2] ? text_of(run, *arguments[2]) : "common";
  if (method == "common") {
    if (!as_integer(value)) return rounded(as_float(value), digits);
    return digits >= 0 ? Value(*as_integer(value)) : Value(to_integer(run, rounded(as_float(value), digits)));
  }
  if (method != "ceil" && method != "floor") run.refuse("round: method {} (allowed: common, ceil, floor)", quote_name(method));
  const double unit = std::pow(10.0, static_cast<double>(digits)), scaled = as_float(value) * unit;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

Value default_filter(Renderer& /*run*/, const Bound& arguments) {
  const bool replaces = arguments[0]->is<Undefined>() || (flag(arguments, 2) && !truth(*arguments[0]));
  return replaces ? arguments[1].value_or(std::string_view()) : *arguments[0];
}

Value tojson_filter(Renderer& run, const Bound& arguments) {
  JsonStyle style;
  style.ascii = flag(arguments, 1), style.sorted = flag(arguments, 4);
  if (arguments[2] && !arguments[2]->is<None>()) {
    const bool text = arguments[2]->is<std::string_view>();
    const std::ptrdiff_t width = text ? 0 : std::clamp<std::ptrdiff_t>(as_index(run, *arguments[2], "tojson: indent"), 0, 1 << 16);
    style.broken = true;
    style.indent = text ? arguments[2]->as<std::string_view>() : run.memory().keep(std::string(static_cast<std::size_t>(width), ' '));
    style.item_separator = ",";
  }
  if (arguments[3] && !arguments[3]->is<None>()) {
    const std::vector<Value> pair = items_of(run, *arguments[3]);
    if (pair.size() != 2) run.refuse("tojson: {} separators (allowed: 2)", pair.size());
    style.item_separator = text_of(run, pair[0]), style.key_separator = text_of(run, pair[1]);
  }
  return run.string(json_text(run, *arguments[0], style));
}

constexpr std::array filters = {
    Function{"abs", "value", 1, abs_filter},
    Function{"capitalize", "value", 1, change_filter<capitalized>},
    Function{"center", "value width", 1, center_filter},
    Function{"d", "value default_value boolean", 1, default_filter},
    Function{"default", "value default_value boolean", 1, default_filter},
    Function{"e", "value", 1, change_filter<escaped>},
    Function{"escape", "value", 1, change_filter<escaped>},
    Function{"forceescape", "value", 1, change_filter<escaped>},
    Function{"float", "value default", 1, float_filter},
    Function{"format", "value *", 1, format_filter},
    Function{"indent", "value width first blank", 1, indent_filter},
    Function{"int", "value default base", 1, int_filter},
    Function{"lower", "value", 1, change_filter<lower>},
    Function{"replace", "value old new count", 3, replace_filter},
    Function{"round", "value precision method", 1, round_filter},
    Function{"safe", "value", 1, string_filter},
    Function{"string", "value", 1, string_filter},
    Function{"title", "value", 1, change_filter<titled_words>},
    Function{"tojson", "value ensure_ascii indent separators sort_keys", 1, tojson_filter},
    Function{"trim", "value chars", 1, trim_filter},
    Function{"truncate", "value length killwords end leeway", 1, truncate_filter},
    Function{"upper", "value", 1, change_filter<upper>},
    Function{"urlencode", "value", 1, urlencode_filter},
    Function{"wordcount", "value", 1, wordcount_filter},
};

}  // namespace

std::span<const Function> text_filters() { return filters; }

}  // namespace rlx::jinja
