#include "formats/json/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/files/mapped_file.h"
#include "base/names.h"
#include "rlx/error.h"

namespace rlx::json {
namespace {

[[noreturn]] void fail_at(std::string_view text, std::size_t offset, std::string_view what, std::string_view message) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  fail("{}: line {}, column {}: {}", what, line, column, message);
}

/// An input iterator that leaves its position where the event handler can read it.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit Cursor(const char** at) : at_(at) {}
  reference operator*() const { return **at_; }
  Cursor& operator++() { return ++*at_, *this; }
  Cursor operator++(int) { return ++*at_, *this; }  // the parser does not use the old position
  bool operator==(const Cursor& other) const { return *at_ == *other.at_; }
  bool operator!=(const Cursor& other) const { return !(*this == other); }

 private:
  const char** at_;
};

struct NonFinite {
  std::size_t number_index;  // among all numbers of the text
  double value;
};

/// The text with each NaN, Infinity and -Infinity replaced by a number of the same length, so that positions stay true.
struct FiniteText {
  std::string text;
  std::vector<NonFinite> replaced;
};

bool starts_number(char c) { return c == '-' || (c >= '0' && c <= '9'); }
bool continues_number(char c) { return starts_number(c) || c == '+' || c == '.' || c == 'e' || c == 'E'; }
bool continues_word(char c) { return continues_number(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

/// The non-finite word at the front of `text`, or an empty view.
std::string_view non_finite_word(std::string_view text) {
  for (std::string_view word : {"NaN", "Infinity", "-Infinity"})
    if (text.starts_with(word) && (text.size() == word.size() || !continues_word(text[word.size()]))) return text.substr(0, word.size());
  return {};
}

double non_finite_value(std::string_view word) {
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return word[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

FiniteText replace_non_finite(std::string_view text) {
  FiniteText out{std::string(text), {}};
  std::size_t numbers = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = skip_string(text, at);
    } else if (const std::string_view word = non_finite_word(text.substr(at)); !word.empty()) {
      std::fill_n(out.text.begin() + static_cast<std::ptrdiff_t>(at), word.size(), '1');
      out.replaced.push_back({numbers++, non_finite_value(word)});
      at += word.size();
    } else if (continues_word(text[at])) {
      numbers += starts_number(text[at]) ? 1 : 0;
      while (at < text.size() && continues_word(text[at])) ++at;  // "10NaN" must stay one wrong word
    } else {
      ++at;
    }
  }
  return out;
}

/// Builds the value from the parser's events, and enforces what the parser itself lets pass.
class Builder {
 public:
  Builder(std::string_view text, std::string_view what, const Options& options, const std::vector<NonFinite>& non_finite)
      : text_(text), what_(what), options_(options), non_finite_(non_finite), at_(text.data()) {}

  Value build() {
    const char* end = text_.data() + text_.size();
    Value::sax_parse(Cursor(&at_), Cursor(&end), this);
    return std::move(root_);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Value::number_integer_t value) { return add_number(value); }
  bool number_unsigned(Value::number_unsigned_t value) { return add_number(value); }
  bool number_float(double value, const std::string& digits) {
    const bool integer = digits.find_first_of(".eE") == std::string::npos;
    if (integer && !options_.wide_integers) fail_here(fmt::format("the integer {} does not fit 64 bits", quote_name(digits)));
    return add_number(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Value::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Value::object()); }
  bool start_array(std::size_t) { return open(Value::array()); }
  bool end_object() { return open_.pop_back(), true; }
  bool end_array() { return open_.pop_back(), true; }

  bool key(std::string& name) {
    if (!open_.back().keys.insert(name).second) fail_here(fmt::format("duplicate key {}", quote_name(name)));
    key_ = std::move(name);
    return true;
  }

  template <class Exception>
  bool parse_error(std::size_t position, const std::string&, const Exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while parsing value - <reason>; last read: ..."
    std::string_view reason = error.what();
    if (const auto start = reason.find(" - "); start != std::string_view::npos) reason.remove_prefix(start + 3);
    reason = reason.substr(0, reason.find("; last read"));
    std::string line;
    for (char c : reason) line += c >= ' ' && c <= '~' ? c : '?';
    fail_at(text_, position == 0 ? 0 : position - 1, what_, line);
  }

 private:
  using Entries = std::vector<Value::object_t::value_type>;
  struct Open {
    Value* value;
    std::unordered_set<std::string> keys;
  };

  [[noreturn]] void fail_here(std::string_view message) {
    const auto consumed = static_cast<std::size_t>(at_ - text_.data());
    fail_at(text_, consumed == 0 ? 0 : consumed - 1, what_, message);
  }

  template <class T>
  bool add_number(T value) {
    if (next_non_finite_ < non_finite_.size() && non_finite_[next_non_finite_].number_index == numbers_++)
      return add(non_finite_[next_non_finite_++].value);
    return add(value);
  }

  bool add(Value value) { return place(std::move(value)), true; }

  bool open(Value value) {
    if (open_.size() >= static_cast<std::size_t>(options_.max_depth))
      fail_here(fmt::format("nested more than {} deep", options_.max_depth));
    open_.push_back({place(std::move(value)), {}});
    return true;
  }

  /// Where the value came to rest: a container does not grow while one of its children is open.
  Value* place(Value value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Value& parent = *open_.back().value;
    if (parent.is_array()) return &parent.get_ref<Value::array_t&>().emplace_back(std::move(value));
    // The object's own insertion compares with all keys before, which `key` has already done in constant time.
    Entries& entries = parent.get_ref<Value::object_t&>();
    if (entries.size() == entries.capacity()) grow(entries);
    return &entries.emplace_back(std::move(key_), std::move(value)).second;
  }

  /// A vector's own growth would copy the values, because moving a pair with a constant key may throw.
  static void grow(Entries& entries) {
    Entries larger;
    larger.reserve(std::max<std::size_t>(4, entries.size() * 2));
    for (auto& [name, value] : entries) larger.emplace_back(name, std::move(value));
    entries.swap(larger);
  }

  std::string_view text_, what_;
  const Options& options_;
  const std::vector<NonFinite>& non_finite_;
  const char* at_;
  Value root_;
  std::vector<Open> open_;
  std::string key_;
  std::size_t numbers_ = 0, next_non_finite_ = 0;
};

/// JSON leaves them as they are, and Python's splitlines, JavaScript of old and some editors end lines at them.
std::string with_line_ends_escaped(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> ends{
      {{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}}};
  std::string escaped;
  std::size_t copied = 0;
  for (std::size_t at = text.find_first_of("\xC2\xE2"); at != std::string::npos; at = text.find_first_of("\xC2\xE2", at + 1))
    for (const auto& [end, escape] : ends)
      if (text.compare(at, end.size(), end) == 0) {
        escaped.append(text, copied, at - copied).append(escape);
        copied = at + end.size();
      }
  return escaped.append(text, copied);
}

}  // namespace

Value parse(std::string_view text, std::string_view what, Options options) {
  if (text.size() > options.max_bytes) fail("{}: {} bytes of JSON (at most {} are read)", what, text.size(), options.max_bytes);
  if (text.starts_with("\xEF\xBB\xBF")) fail_at(text, 0, what, "starts with a byte-order mark");
  // The parser takes a NUL byte for the end of its input and ignores what follows.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) fail_at(text, nul, what, "a NUL byte is not JSON");
  if (!options.allow_non_finite) return Builder(text, what, options, {}).build();
  const FiniteText finite = replace_non_finite(text);
  return Builder(finite.text, what, options, finite.replaced).build();
}

Value read_file(const std::filesystem::path& path, Options options) {
  const MappedFile file = MappedFile::open(path);
  const auto bytes = file.bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(), options);
}

std::string quote(std::string_view text, std::string_view what) {
  check_utf8(text, what);
  return with_line_ends_escaped(Value(text).dump());
}

std::string line(const Value& value) { return with_line_ends_escaped(value.dump(-1, ' ', false, Value::error_handler_t::replace)); }

}  // namespace rlx::json
