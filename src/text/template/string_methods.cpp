#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/names.h"
#include "text/template/functions.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"
#include "text/unicode/unicode.h"

namespace rlx::jinja {
namespace {

constexpr std::size_t npos = std::string_view::npos;

/// The string that the method belongs to; counts a look at all of it.
std::string_view self_of(Renderer& run, const Bound& arguments) {
  const std::string_view text = arguments[0]->as<std::string_view>();
  run.count_scan(text.size());
  return text;
}

std::string_view text_argument(Renderer& run, const Value& value, std::string_view method) {
  if (value.is<Undefined>()) run.refuse("{}", value.as<Undefined>().why);
  if (!value.is<std::string_view>()) run.refuse("{}: an argument is a value of type {} (allowed: str)", method, type_name(value));
  return value.as<std::string_view>();
}

template <bool left, bool right>
Value strip_method(Renderer& run, const Bound& arguments) {
  const std::string_view text = self_of(run, arguments);
  if (!is_given(arguments[1])) return stripped(text, nullptr, left, right);
  const std::string_view characters = text_argument(run, *arguments[1], "strip");
  return stripped(text, &characters, left, right);
}

Value pieces(Renderer& run, const std::vector<std::string_view>& texts) { return run.list(std::vector<Value>(texts.begin(), texts.end())); }

/// Words between white space, at most `most` cuts made from the front; the rest keeps its white space inside.
std::vector<std::string_view> split_words(std::string_view text, std::ptrdiff_t most) {
  std::vector<std::string_view> out;
  for (text = stripped(text, nullptr, true, false); !text.empty(); text = stripped(text, nullptr, true, false)) {
    if (most >= 0 && static_cast<std::ptrdiff_t>(out.size()) == most) {
      out.push_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && !is_space(unicode::decode(text.substr(end)).value)) end += unicode::decode(text.substr(end)).bytes;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

std::vector<std::string_view> split_words_from_end(std::string_view text, std::ptrdiff_t most) {
  std::vector<std::string_view> out;
  for (text = stripped(text, nullptr, false, true); !text.empty(); text = stripped(text, nullptr, false, true)) {
    if (most >= 0 && static_cast<std::ptrdiff_t>(out.size()) == most) {
      out.push_back(text);
      break;
    }
    std::vector<std::string_view> words = split_words(text, -1);
    const std::size_t begin = static_cast<std::size_t>(words.back().data() - text.data());
    out.push_back(words.back());
    text = text.substr(0, begin);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Value split_method(Renderer& run, const Bound& arguments) {
  std::string_view text = self_of(run, arguments);
  const std::ptrdiff_t most = arguments[2] ? as_index(run, *arguments[2], "split: maxsplit") : -1;
  if (!is_given(arguments[1])) return pieces(run, split_words(text, most));
  const std::string_view separator = text_argument(run, *arguments[1], "split");
  if (separator.empty()) run.refuse("split: the separator is empty");
  std::vector<std::string_view> out;
  for (std::size_t at; static_cast<std::ptrdiff_t>(out.size()) != most && (at = text.find(separator)) != npos;) {
    out.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  out.push_back(text);
  return pieces(run, out);
}

Value rsplit_method(Renderer& run, const Bound& arguments) {
  std::string_view text = self_of(run, arguments);
  const std::ptrdiff_t most = arguments[2] ? as_index(run, *arguments[2], "rsplit: maxsplit") : -1;
  if (!is_given(arguments[1])) {
    run.count_scan(most < 0 ? 0 : text.size() * static_cast<std::size_t>(most));
    return pieces(run, most < 0 ? split_words(text, most) : split_words_from_end(text, most));
  }
  const std::string_view separator = text_argument(run, *arguments[1], "rsplit");
  if (separator.empty()) run.refuse("rsplit: the separator is empty");
  std::vector<std::string_view> out;
  for (std::size_t at; static_cast<std::ptrdiff_t>(out.size()) != most && (at = text.rfind(separator)) != npos;) {
    out.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  out.push_back(text);
  std::reverse(out.begin(), out.end());
  return pieces(run, out);
}

Value splitlines_method(Renderer& run, const Bound& arguments) {
  return pieces(run, split_lines(self_of(run, arguments), arguments[1] && truth(*arguments[1])));
}

/// The part of the string that the optional arguments `start` and `end` say, from index `first` of the arguments on; nothing when it would
/// begin behind the end.
std::optional<std::string_view> part_of(Renderer& run, const Bound& arguments, std::size_t first) {
  const std::string_view text = self_of(run, arguments);
  if (!is_given(arguments[first]) && !is_given(arguments[first + 1])) return text;
  if (is_given(arguments[first]) && as_index(run, *arguments[first], "start") > static_cast<std::ptrdiff_t>(*length_of(run, text)))
    return std::nullopt;
  return slice_of(run, text, arguments[first].value_or(None{}), arguments[first + 1].value_or(None{}), None{}).as<std::string_view>();
}

template <bool at_start>
Value affix_method(Renderer& run, const Bound& arguments) {
  const auto part = part_of(run, arguments, 2);
  const auto matches = [&](const Value& affix) {
    const std::string_view text = text_argument(run, affix, at_start ? "startswith" : "endswith");
    return part && (at_start ? part->starts_with(text) : part->ends_with(text));
  };
  const Value& affix = *arguments[1];
  if (!affix.is<Sequence*>() || affix.as<Sequence*>()->kind != Sequence::Kind::tuple) return matches(affix);
  const std::vector<Value>& all = affix.as<Sequence*>()->items;
  return std::any_of(all.begin(), all.end(), matches);
}

/// The index of a code point, of the byte `offset` in `text`.
Value code_point_index(Renderer& run, std::string_view text, std::size_t offset) {
  return Integer{static_cast<std::int64_t>(*length_of(run, text.substr(0, offset)))};
}

template <bool from_end, bool must_be>
Value find_method_of_text(Renderer& run, const Bound& arguments) {
  const std::string_view sought = text_argument(run, *arguments[1], "find");
  const auto part = part_of(run, arguments, 2);
  const std::size_t at = !part ? npos : from_end ? part->rfind(sought) : part->find(sought);
  if (at == npos && must_be) run.refuse("index: {} is not in the string", quote_name(sought));
  if (at == npos) return Integer{-1};
  const std::string_view text = self_of(run, arguments);
  return code_point_index(run, text, static_cast<std::size_t>(part->data() - text.data()) + at);
}

Value count_method(Renderer& run, const Bound& arguments) {
  const std::string_view sought = text_argument(run, *arguments[1], "count");
  const auto part = part_of(run, arguments, 2);
  if (!part) return Integer{0};
  if (sought.empty()) return Integer{static_cast<std::int64_t>(*length_of(run, *part)) + 1};
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = part->find(sought, at)) != npos; at += sought.size()) ++count;
  return Integer{count};
}

Value replace_method(Renderer& run, const Bound& arguments) {
  const std::string_view text = self_of(run, arguments), old = text_argument(run, *arguments[1], "replace");
  const std::ptrdiff_t most = arguments[3] ? as_index(run, *arguments[3], "replace: count") : -1;
  return run.string(replaced(run, text, old, text_argument(run, *arguments[2], "replace"), most));
}

Value join_method(Renderer& run, const Bound& arguments) {
  const std::string_view separator = self_of(run, arguments);
  std::string out;
  bool first = true;
  for (const Value& item : items_of(run, *arguments[1])) {
    const std::string_view text = text_argument(run, item, "join");
    run.memory().charge(separator.size() + text.size());
    if (!std::exchange(first, false)) out += separator;
    out += text;
  }
  return run.string(std::move(out));
}

template <std::string (*change)(std::string_view)>
Value change_method(Renderer& run, const Bound& arguments) {
  return run.string(change(self_of(run, arguments)));
}

bool is_letter(char32_t value) {
  const utf8proc_category_t kind = utf8proc_category(static_cast<utf8proc_int32_t>(value));
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

std::string titled(std::string_view text) {
  return change_words(text, [](char32_t c) { return !is_letter(c); }, capitalized);
}

std::string swapped_case(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, unicode::decode(text).bytes);
    const std::string small = lower(character);
    out += small == character ? upper(character) : small;
    text.remove_prefix(character.size());
  }
  return out;
}

bool is_decimal(char32_t value) { return utf8proc_category(static_cast<utf8proc_int32_t>(value)) == UTF8PROC_CATEGORY_ND; }
bool is_digit_character(char32_t value) {
  const bool raised = value == 0xB2 || value == 0xB3 || value == 0xB9 || value == 0x2070 || (value >= 0x2074 && value <= 0x2079);
  return is_decimal(value) || raised || (value >= 0x2080 && value <= 0x2089);
}
bool is_letter_or_number(char32_t value) { return is_letter(value) || unicode::is_numeric(value); }

template <bool (*holds)(char32_t)>
Value all_method(Renderer& run, const Bound& arguments) {
  const std::u32string text = unicode::to_utf32(self_of(run, arguments));
  return !text.empty() && std::all_of(text.begin(), text.end(), holds);
}

template <std::string (*change)(std::string_view), std::string (*opposite)(std::string_view)>
Value case_method(Renderer& run, const Bound& arguments) {
  const std::string_view text = self_of(run, arguments);
  return change(text) == text && opposite(text) != text;
}

template <bool at_start>
Value remove_method(Renderer& run, const Bound& arguments) {
  const std::string_view text = self_of(run, arguments), affix = text_argument(run, *arguments[1], "removeprefix");
  if (at_start) return text.starts_with(affix) ? text.substr(affix.size()) : text;
  return text.ends_with(affix) ? text.substr(0, text.size() - affix.size()) : text;
}

template <bool from_end>
Value partition_method(Renderer& run, const Bound& arguments) {
  const std::string_view text = self_of(run, arguments), separator = text_argument(run, *arguments[1], "partition");
  if (separator.empty()) run.refuse("partition: the separator is empty");
  const std::size_t at = from_end ? text.rfind(separator) : text.find(separator);
  const std::string_view none;
  if (at == npos) return from_end ? run.tuple({none, none, text}) : run.tuple({text, none, none});
  return run.tuple({text.substr(0, at), separator, text.substr(at + separator.size())});
}

/// 1: text at the left, 2: in the middle, 3: at the right of a field.
template <int place>
Value justify_method(Renderer& run, const Bound& arguments) {
  const std::string_view text = self_of(run, arguments);
  const std::string_view fill = arguments[2] ? text_argument(run, *arguments[2], "a fill character") : " ";
  if (*length_of(run, fill) != 1) run.refuse("the fill character is {} (allowed: one character)", quote_name(fill));
  const auto width = as_index(run, *arguments[1], "a width"), size = static_cast<std::ptrdiff_t>(*length_of(run, text));
  const std::ptrdiff_t room = std::max<std::ptrdiff_t>(0, width - size);
  const std::ptrdiff_t before = place == 1 ? 0 : place == 3 ? room : room / 2 + (room & width & 1);
  run.memory().charge(static_cast<std::size_t>(room) * fill.size());
  std::string out;
  for (std::ptrdiff_t i = 0; i < before; ++i) out += fill;
  out += text;
  for (std::ptrdiff_t i = before; i < room; ++i) out += fill;
  return run.string(std::move(out));
}

Value zfill_method(Renderer& run, const Bound& arguments) {
  const std::string_view text = self_of(run, arguments);
  const auto width = as_index(run, *arguments[1], "a width"), size = static_cast<std::ptrdiff_t>(*length_of(run, text));
  if (width <= size) return text;
  run.memory().charge(static_cast<std::size_t>(width - size));
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  return run.string(
      fmt::format("{}{}{}", text.substr(0, sign), std::string(static_cast<std::size_t>(width - size), '0'), text.substr(sign)));
}

Value format_method(Renderer& run, const Bound& arguments) {
  Arguments given;
  given.positional = arguments[1]->as<Sequence*>()->items;
  for (const auto& [key, value] : arguments[2]->as<Dict*>()->entries) given.named.emplace_back(key.as<std::string_view>(), value);
  return run.string(brace_format(run, self_of(run, arguments), given));
}

constexpr std::array methods = {
    Function{"strip", "self chars", 1, strip_method<true, true>},
    Function{"lstrip", "self chars", 1, strip_method<true, false>},
    Function{"rstrip", "self chars", 1, strip_method<false, true>},
    Function{"split", "self sep maxsplit", 1, split_method},
    Function{"rsplit", "self sep maxsplit", 1, rsplit_method},
    Function{"splitlines", "self keepends", 1, splitlines_method},
    Function{"startswith", "self prefix start end", 2, affix_method<true>},
    Function{"endswith", "self suffix start end", 2, affix_method<false>},
    Function{"find", "self sub start end", 2, find_method_of_text<false, false>},
    Function{"rfind", "self sub start end", 2, find_method_of_text<true, false>},
    Function{"index", "self sub start end", 2, find_method_of_text<false, true>},
    Function{"rindex", "self sub start end", 2, find_method_of_text<true, true>},
    Function{"count", "self sub start end", 2, count_method},
    Function{"replace", "self old new count", 3, replace_method},
    Function{"join", "self iterable", 2, join_method},
    Function{"upper", "self", 1, change_method<upper>},
    Function{"lower", "self", 1, change_method<lower>},
    Function{"casefold", "self", 1, change_method<lower>},
    Function{"title", "self", 1, change_method<titled>},
    Function{"capitalize", "self", 1, change_method<capitalized>},
    Function{"swapcase", "self", 1, change_method<swapped_case>},
    Function{"isdigit", "self", 1, all_method<is_digit_character>},
    Function{"isdecimal", "self", 1, all_method<is_decimal>},
    Function{"isnumeric", "self", 1, all_method<unicode::is_numeric>},
    Function{"isalpha", "self", 1, all_method<is_letter>},
    Function{"isalnum", "self", 1, all_method<is_letter_or_number>},
    Function{"isspace", "self", 1, all_method<is_space>},
    Function{"islower", "self", 1, case_method<lower, upper>},
    Function{"isupper", "self", 1, case_method<upper, lower>},
    Function{"removeprefix", "self prefix", 2, remove_method<true>},
    Function{"removesuffix", "self suffix", 2, remove_method<false>},
    Function{"partition", "self sep", 2, partition_method<false>},
    Function{"rpartition", "self sep", 2, partition_method<true>},
    Function{"ljust", "self width fillchar", 2, justify_method<1>},
    Function{"center", "self width fillchar", 2, justify_method<2>},
    Function{"rjust", "self width fillchar", 2, justify_method<3>},
    Function{"zfill", "self width", 2, zfill_method},
    Function{"format", "self *", 1, format_method},
};

}  // namespace

std::span<const Function> string_methods() { return methods; }

std::string_view stripped(std::string_view text, const std::string_view* characters, bool left, bool right) {
  const auto goes = [&](std::string_view character) {
    return characters ? characters->find(character) != npos : is_space(unicode::decode(character).value);
  };
  while (left && !text.empty()) {
    const std::string_view first = text.substr(0, unicode::decode(text).bytes);
    if (!goes(first)) break;
    text.remove_prefix(first.size());
  }
  while (right && !text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!goes(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, bytes] = unicode::decode(text.substr(at));
    const bool breaks =
        (value >= '\n' && value <= '\r') || (value >= 0x1C && value <= 0x1E) || value == 0x85 || value == 0x2028 || value == 0x2029;
    const std::size_t end = at + bytes + (value == '\r' && text.substr(at + 1).starts_with('\n') ? 1 : 0);
    if (breaks) {
      lines.push_back(text.substr(begin, (keep_ends ? end : at) - begin));
      begin = end;
    }
    at = breaks ? end : at + bytes;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string replaced(Renderer& run, std::string_view text, std::string_view old, std::string_view replacement, std::ptrdiff_t most) {
  std::string out;
  const auto add = [&](std::string_view piece) { run.memory().charge(piece.size()), out += piece; };
  for (std::ptrdiff_t done = 0; done != most; ++done) {
    std::size_t at = text.find(old);
    if (at == npos) break;
    add(text.substr(0, at));
    add(replacement);
    text.remove_prefix(at + old.size());
    if (!old.empty()) continue;
    // Nothing is found before each character and at the end.
    if (text.empty()) return out;
    const std::size_t bytes = unicode::decode(text).bytes;
    add(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  add(text);
  return out;
}

}  // namespace rlx::jinja
